"""Show the commands that a use case runs to its caller."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol


class Output(Protocol):
    """Receives what running commands print, and may end them."""

    def say(self, text: str) -> None:
        """Show a line about the commands."""

    def show(self, chunk: bytes) -> None:
        """Show output of a command."""

    def poll(self) -> None:
        """Raise to end the commands; called several times a second."""


# Opens an output for the time in which commands run.
Watch = Callable[[], AbstractContextManager[Output]]


class _Silence:
    def say(self, text: str) -> None:
        pass

    def show(self, chunk: bytes) -> None:
        pass

    def poll(self) -> None:
        pass


@contextlib.contextmanager
def in_silence() -> Iterator[Output]:
    """Show nothing and let every command end by itself."""
    yield _Silence()

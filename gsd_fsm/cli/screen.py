"""Show the output of running commands."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, TextIO

from gsd_fsm.core.text.sanitize import display
from gsd_fsm.interruption import Interruption, interruptible

if TYPE_CHECKING:
    from gsd_fsm.cli.call import Call


class Screen:
    """Show the output of checks. When its reader has left, the checks continue.

    A signal also ends a write that waits for a reader.
    """

    def __init__(self, stream: TextIO | None, interruption: Interruption) -> None:
        self.stream = stream
        self.interruption = interruption

    def say(self, text: str) -> None:
        self.show((display(text) + "\n").encode("utf-8", "replace"))

    def show(self, chunk: bytes) -> None:
        if self.stream is None:
            return
        try:
            self.interruption.run_blocking(partial(_write, self.stream, chunk))
        except OSError:
            self.stream = None

    def poll(self) -> None:
        """Raise Interrupted if a signal was received."""
        self.interruption.poll()


def _write(stream: TextIO, chunk: bytes) -> None:
    stream.flush()
    stream.buffer.write(chunk)
    stream.buffer.flush()


@contextlib.contextmanager
def screen_for(call: Call) -> Iterator[Screen]:
    """Yield a screen on standard output, which --json keeps for its object; a signal ends the block."""
    with interruptible() as interruption:
        yield Screen(sys.stderr if call.json else sys.stdout, interruption)

"""Where a running command can be watched, and what ends it before its time."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

import click

from gsd_fsm.core.sanitize import display

if TYPE_CHECKING:
    from gsd_fsm.cli.call import Call


class Screen:
    """Where a check can be watched. When nobody watches any more, the check goes on."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def say(self, words: str) -> None:
        self.show((display(words) + "\n").encode("utf-8", "replace"))

    def show(self, chunk: bytes) -> None:
        if self.stream is None:
            return
        try:
            self.stream.flush()
            self.stream.buffer.write(chunk)
            self.stream.buffer.flush()
        except OSError:
            self.stream = None


def screen_for(call: Call) -> Screen:
    """The terminal; with --json standard output is kept for the one object."""
    return Screen(sys.stderr if call.json else sys.stdout)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """A signal that ends us ends the running command too, which has a session of its own."""

    def leave(number: int, _frame: object) -> None:
        raise click.exceptions.Exit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

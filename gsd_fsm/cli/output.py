"""Print what a command says, and the output of the commands that it runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, TextIO

import click

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.interruption import Interruption, interruptible

if TYPE_CHECKING:
    from gsd_fsm.cli.call import Call


def say(text: str, *, err: bool = False) -> None:
    """Print a line; that it cannot be printed must not look as if nothing had been recorded."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        raise  # nobody wants to hear it
    except OSError as error:
        raise CannotWrite(
            f"the answer could not be printed: {error.strerror}",
            "do not repeat the command before you have looked: gsd-fsm status",
        ) from error


def warn(text: str) -> None:
    """Tell on standard error what went wrong beside what was asked for."""
    with contextlib.suppress(OSError):
        click.echo(f"gsd-fsm: {display(text)}", err=True)


def counted(number: int, thing: str) -> str:
    """The number and the thing, in the plural where it must be."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


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

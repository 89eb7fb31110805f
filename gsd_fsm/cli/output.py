"""Print results, and the output of checks; words that several commands print."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TextIO

import click

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.evidence.interruption import Interruption, Output

COLOURS = {
    "running": "green",
    "retrying": "yellow",
    "fixing": "yellow",
    "reviewing": "cyan",
    "waiting": "magenta",
    "paused": "red",
    "completed": "green",
    "cancelled": "red",
}


def say(text: str, *, err: bool = False) -> None:
    """Print a line; raise CannotWrite if that fails."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        raise  # nobody reads the output
    except OSError as error:
        raise CannotWrite(
            f"cannot print the result: {error.strerror}",
            "The command may have succeeded. Run: gsd-fsm status",
        ) from error


def warn(text: str) -> None:
    """Print a problem that did not end the command, on standard error."""
    with contextlib.suppress(OSError):
        click.echo(f"gsd-fsm: {display(text)}", err=True)


class Screen(Output):
    """Show the output of checks; they continue even if nobody reads it.

    A signal also ends a write that blocks.
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


def status_word(status: str) -> str:
    return click.style(status, fg=COLOURS.get(status), bold=True)


def spent_words(loop: Loop) -> str:
    """Return the money and tokens spent, and their limits; "" if there are none."""
    parts = []
    budget, most = loop.limits.budget_usd, loop.limits.max_tokens
    if loop.spent_usd or budget:
        parts.append(f"{loop.spent_usd:.2f}{f' of {budget:.2f}' if budget else ''} USD")
    if loop.spent_tokens or most:
        parts.append(f"{loop.spent_tokens}{f' of {most}' if most else ''} tokens")
    return ", ".join(parts)


def retry_words(loop: Loop, task_id: str) -> str:
    """Return which retry follows the last failure of a task."""
    task = loop.tasks[task_id]
    if task.errors[-1].error_class == "transient":
        return "It is retried once."
    return f"Retry {task.retries} of {loop.limits.max_retries}."

"""What a command says, and what becomes of it when it cannot be heard."""

from __future__ import annotations

import contextlib

import click

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.text.sanitize import display


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

"""What a command says, and what becomes of it when it cannot be heard."""

from __future__ import annotations

import click

from gsd_fsm.core.errors import CannotWrite


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


def counted(number: int, thing: str) -> str:
    """The number and the thing, in the plural where it must be."""
    return f"{number} {thing}{'' if number == 1 else 's'}"

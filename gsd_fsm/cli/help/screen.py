"""Compose the help of one command: usage, options, aliases and examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsd_fsm.cli.help.examples import EXAMPLES
from gsd_fsm.cli.help.words import aliases_of

if TYPE_CHECKING:
    import click


def command_help(context: click.Context) -> str:
    """Return the help of the command of this context."""
    parts = [context.get_help()]
    name = context.info_name or ""
    if names := aliases_of(name):
        parts.append(f"Aliases: {', '.join(names)}")
    if examples := EXAMPLES.get(name):
        parts.append("\n  ".join(("Examples:", *examples)))
    return "\n\n".join(parts)

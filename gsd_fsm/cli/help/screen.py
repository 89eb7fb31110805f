"""The help of one command: its usage and options, its other names, and examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsd_fsm.cli.help.examples import EXAMPLES
from gsd_fsm.cli.help.words import other_names

if TYPE_CHECKING:
    import click


def command_help(context: click.Context) -> str:
    """Return the help of the command that this context is for."""
    parts = [context.get_help()]
    name = context.info_name or ""
    if names := other_names(name):
        parts.append(f"Other names: {', '.join(names)}")
    if examples := EXAMPLES.get(name):
        parts.append("\n  ".join(("Examples:", *examples)))
    return "\n\n".join(parts)

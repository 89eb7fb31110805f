"""Print a page for its reader: a person at a terminal, a program or an agent."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from gsd_fsm.cli.display.page import Part
from gsd_fsm.cli.display.plain import render
from gsd_fsm.cli.output import say
from gsd_fsm.config.caller import caller_by_variables

# Wider lines are hard to read.
_WIDEST = 120


def show(page: list[Part]) -> None:
    """Print a page; raise CannotWrite if that fails."""
    if not is_read_by_person(sys.stdout):
        say(render(page))
        return
    import shutil

    from gsd_fsm.cli.display import terminal
    from gsd_fsm.core.clock import now_ms

    width = min(shutil.get_terminal_size().columns, _WIDEST)
    shown = terminal.render(page, width, now_ms(), colour=wants_colour())
    say(shown, colour=True)


def is_read_by_person(stream: TextIO | None) -> bool:
    """Return whether a person reads this stream, at a terminal or as if at one (FORCE_COLOR).

    Agents get plain text.
    """
    if stream is None or caller_by_variables().by == "agent" or os.environ.get("TERM") == "dumb":
        return False
    return os.environ.get("FORCE_COLOR", "0") not in ("", "0") or stream.isatty()


def wants_colour() -> bool:
    return not os.environ.get("NO_COLOR")

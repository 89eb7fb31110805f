"""Scores of goal loops through the command line."""

from __future__ import annotations

from typing import Any

from gsd_fsm.engine.goals import DIMENSIONS
from tests.support.command_line import Here

CLEAR = (2, 2, 2, 2, 2)
REVIEWED = (2, 2, 1, 1, 1)  # spec 7, fit 35
COLLEAGUE = (1, 1, 1, 1, 1)  # spec 5, fit 25


def score_options(*points: int) -> list[str]:
    named = zip(DIMENSIONS, points, strict=True)
    return [text for name, number in named for text in (f"--{name}", str(number))]


def score(here: Here, *points: int, familiarity: int = 0, **how: Any) -> Any:
    """Score the goal; return the JSON answer."""
    more = ("--familiarity", str(familiarity), "--json")
    return here.ok("score", *score_options(*points), *more, **how).json

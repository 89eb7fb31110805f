"""How well a goal is understood, in figures, and how closely a human should follow the work on it."""

from __future__ import annotations

from typing import NamedTuple

# What is scored from 0 (open) over 1 (partly) to 2 (clear).
DIMENSIONS = {
    "outcome": "What will be there afterwards.",
    "scope": "What belongs to it, and what does not.",
    "constraints": "What must not happen, and what must be kept to.",
    "success": "How it is seen to work.",
    "done": "When it is finished.",
}
MOST_POINTS = 2
MOST_FAMILIARITY = 10
# What a goal has adds to the fit, and it has what is clear: a goal that is partly clear in everything
# (spec 5) is one for a colleague.
_BONUS = {"constraints": 5, "success": 5, "done": 5}
_SHAPES = ((40, "tool"), (30, "tool-review"), (25, "colleague"), (0, "blocked"))


class Score(NamedTuple):
    """The spec score (0 to 10), the fit score (0 to 75), and the shape that follows from it."""

    spec: int
    fit: int
    shape: str


def score_of(points: dict[str, int], familiarity: int = 0) -> Score:
    """The score of a goal with these points for each of the DIMENSIONS."""
    spec = sum(points[name] for name in DIMENSIONS)
    fit = (
        spec * 5 + sum(m for name, m in _BONUS.items() if points[name] == MOST_POINTS) + familiarity
    )
    return Score(spec, fit, next(shape for least, shape in _SHAPES if fit >= least))

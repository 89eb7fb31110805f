"""`score`: how well a goal is understood, and what that means for its loop."""

from __future__ import annotations

from collections.abc import Callable

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.engine import goals
from gsd_fsm.scores import DIMENSIONS, MOST_FAMILIARITY, MOST_POINTS

_WORDS = {
    "tool": "It goes on alone; you see it when it is complete.",
    "tool-review": "It waits for you after each wave.",
    "colleague": "It waits for you after each step.",
    "blocked": "It does not begin before the goal is clearer.",
}


def _dimensions(function: Callable[..., None]) -> Callable[..., None]:
    for name, words in reversed(DIMENSIONS.items()):
        points = click.IntRange(0, MOST_POINTS)
        option = click.option(f"--{name}", type=points, required=True, metavar="0-2", help=words)
        function = option(function)
    return function


@click.command()
@_dimensions
@click.option(
    "--familiarity",
    type=click.IntRange(0, MOST_FAMILIARITY),
    default=0,
    metavar="0-10",
    help="How well known this kind of work is.",
)
@verb
def score(call: Call, *, familiarity: int, **points: int) -> None:
    """Record how well the goal is understood, from 0 (open) to 2 (clear) in five respects.

    Spec score: the sum; below 5 the goal stays in intent. Fit score: spec × 5, and 5 for each of
    constraints, success and done that is clear, and familiarity. Shape: tool from 40, tool-review
    from 30, colleague from 25, else blocked.
    """
    scored = goals.score(call.context, points, familiarity)
    found, loop = scored.score, scored.receipt.loop
    # An unclear goal does not continue in any shape.
    asked = loop.question if loop.status == "waiting" else _WORDS[found.shape]
    words = f"Spec {found.spec}/10, fit {found.fit}: {found.shape}. {asked}"
    facts = {"spec_score": found.spec, "fit_score": found.fit, "shape": found.shape}
    call.print_receipt(scored.receipt, words, **facts, stage=loop.stage)

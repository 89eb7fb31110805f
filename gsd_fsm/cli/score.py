"""`score`: how well a goal is understood, and what that means for its loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from gsd_fsm.cli.call import Call, Event, verb
from gsd_fsm.cli.planned import asks
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import LEAST_SPEC, Loop
from gsd_fsm.scores import DIMENSIONS, MOST_FAMILIARITY, MOST_POINTS, score_of

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
    found = score_of(points, familiarity)
    data: dict[str, Any] = {
        "spec": {**points, "familiarity": familiarity},
        "spec_score": found.spec,
        "fit_score": found.fit,
        "shape": found.shape,
    }

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        if loop.kind != "goal":
            raise Refused(f"loop {loop.id} is a loop of kind {loop.kind}: only goals are scored")
        yield call.event("score", loop, data)
        if found.spec < LEAST_SPEC and loop.stage != "intent":
            yield call.event("stage", loop, {"stage": "intent"}, by="cli")
        yield from asks(call, loop)

    journal, loop = call.append(build)
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    words = asked or f" {_WORDS[found.shape]}"  # what is unclear does not go on in any shape
    said = f"Spec {found.spec}/10, fit {found.fit}: {found.shape}.{words}"
    facts = {"spec_score": found.spec, "fit_score": found.fit, "shape": found.shape}
    call.acknowledge(journal, loop, said, **facts, stage=loop.stage)

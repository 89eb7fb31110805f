"""Facts about goals: stages, scores, and the shape that they give to a loop."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.payloads import SHAPES, STAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop

# A goal with a lower spec score is not understood yet.
LEAST_SPEC = 5


def is_unclear(loop: Loop) -> bool:
    """Whether the goal was scored, and found wanting."""
    low = loop.spec_score is not None and loop.spec_score < LEAST_SPEC
    return bool(loop.shape and (low or loop.shape == "blocked"))


def clarify_key(loop: Loop) -> str:
    """The name of the question what an unclear goal means."""
    return "clarify:%d" % loop.scored


def check_stage(loop: Loop, event: dict[str, Any]) -> None:
    wanted = STAGES.index(event["data"]["stage"])
    reached = STAGES.index(loop.stage) if loop.stage else -1
    if wanted > reached + 1:
        raise Refused(
            "stage %s cannot follow %s: no stage is skipped"
            % (STAGES[wanted], loop.stage or "the start"),
            "gsd-fsm stage %s" % STAGES[reached + 1],
        )
    if wanted > reached and wanted and is_unclear(loop):
        raise Refused(
            "loop %s stays in intent: its goal has a spec score of %s, a fit score of %s (%s)"
            % (loop.id, loop.spec_score, loop.fit_score, loop.shape or "no shape"),
            "clarify it with the user, then: gsd-fsm score --help",
        )


def fact_stage(loop: Loop, event: dict[str, Any]) -> None:
    loop.stage = event["data"]["stage"]


def check_score(loop: Loop, event: dict[str, Any]) -> None:
    """A shape that asks less often is a human's to give, unless they have made the goal clearer."""
    shape = event["data"].get("shape")
    looser = loop.shape and shape and SHAPES.index(shape) < SHAPES.index(loop.shape)
    if looser and clarify_key(loop) not in loop.decided:
        needs_human(loop, event, "loosen the shape of")


def fact_score(loop: Loop, event: dict[str, Any]) -> None:
    loop.scored = event["seq"]
    for name in ("spec", "spec_score", "fit_score", "shape"):
        if name in event["data"]:
            setattr(loop, name, event["data"][name])

"""Facts about goals: stages, scores, and the shape that they give to a loop."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop import is_unclear, reach
from gsd_fsm.core.payloads import SHAPES, STAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop


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
    reach(loop, loop.stage)


def check_score(loop: Loop, event: dict[str, Any]) -> None:
    """A shape that asks less often is a human's to give, unless they have made the goal clearer."""
    shape = event["data"].get("shape")
    looser = loop.shape and shape and SHAPES.index(shape) < SHAPES.index(loop.shape)
    heard = loop.spoken or clarify_key(loop) in loop.decided
    if looser and event["by"] == "agent" and not heard:
        raise Refused(
            "an agent may not loosen the shape of loop %s before a human has spoken" % loop.id,
            "ask the user, and score again once they have said more",
        )


def fact_score(loop: Loop, event: dict[str, Any]) -> None:
    reach(loop, "score")
    loop.scored = event["seq"]
    loop.spoken = False
    for name in ("spec", "spec_score", "fit_score", "shape"):
        if name in event["data"]:
            setattr(loop, name, event["data"][name])

"""Goals: the stage they are in, how clear they are, and how closely the user follows."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.schema import (
    COUNT,
    OBJECT,
    SAME,
    Arrow,
    EventType,
    StatusTable,
    Trigger,
    one_of,
)
from gsd_fsm.core.loop.state import LIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event, ScoreData, StageData
    from gsd_fsm.core.loop.state import Loop

STAGES = ("intent", "shape", "decompose", "executing", "review", "complete")
# A stage follows the one before it, and may be entered again from itself and any later one.
STAGE_TABLE = StatusTable(
    *(
        ("stage", STAGES[place - 1 :] if place else ("new", *STAGES), stage)
        for place, stage in enumerate(STAGES)
    )
)
# From the one that asks the user least to the one that asks first.
SHAPES = ("tool", "tool-review", "colleague", "blocked")


def clarify_key(loop: Loop) -> str:
    """Return the key of the question what an unclear goal means."""
    return "clarify:%d" % loop.scored


def enter_stage(loop: Loop, event: Event[StageData]) -> None:
    loop.stage = event["data"]["stage"]
    loop.reach(loop.stage)


def require_next_stage(loop: Loop, event: Event[StageData], loops: Loops) -> None:
    """Refuse to skip a stage, or to leave `intent` with an unclear goal."""
    wanted = event["data"]["stage"]
    following = STAGE_TABLE.following(loop.stage or "new", "stage")
    if wanted not in following:
        raise Refused(
            "stage %s cannot follow %s: no stage may be skipped"
            % (wanted, loop.stage or "the start"),
            "Run: gsd-fsm stage %s" % following[-1],
        )
    goes_on = wanted == following[-1] and wanted not in ("intent", loop.stage)
    if goes_on and loop.is_unclear:
        raise Refused(
            "loop %s stays in intent: its goal has a spec score of %s, a fit score of %s (%s)"
            % (loop.id, loop.spec_score, loop.fit_score, loop.shape or "no shape"),
            "Clarify it with the user, then run: gsd-fsm score --help",
        )


STAGE = EventType(
    "stage",
    Trigger(verb="stage", rules=(require_next_stage,), arrows=(Arrow(LIVE, SAME, enter_stage),)),
    required={"stage": one_of(*STAGES)},
    text="{stage}",
)


def record_score(loop: Loop, event: Event[ScoreData]) -> None:
    data = event["data"]
    loop.reach("score")
    loop.scored = event["seq"]
    loop.human_spoke_since_score = False
    loop.spec = data.get("spec", loop.spec)
    loop.spec_score = data.get("spec_score", loop.spec_score)
    loop.fit_score = data.get("fit_score", loop.fit_score)
    loop.shape = data.get("shape", loop.shape)


def require_human_for_looser_shape(loop: Loop, event: Event[ScoreData], loops: Loops) -> None:
    """Refuse an agent that gives the user less to decide, unless the user made the goal clearer."""
    shape = event["data"].get("shape")
    looser = loop.shape and shape and SHAPES.index(shape) < SHAPES.index(loop.shape)
    heard = loop.human_spoke_since_score or clarify_key(loop) in loop.answered
    if looser and event["by"] == "agent" and not heard:
        raise Refused(
            "agents cannot loosen the shape of loop %s until the user sends a message" % loop.id,
            "Ask the user, then score again.",
        )


def _score_text(data: Any) -> str:
    if "shape" not in data:
        return " ".join(str(v) for v in data.values() if not isinstance(v, (dict, list)))
    return "spec %s/10, fit %s: %s" % (data.get("spec_score"), data.get("fit_score"), data["shape"])


SCORE = EventType(
    "score",
    Trigger(
        verb="score",
        rules=(require_human_for_looser_shape,),
        arrows=(Arrow(LIVE, SAME, record_score),),
    ),
    optional={
        "spec": OBJECT,
        "spec_score": COUNT,
        "fit_score": COUNT,
        "shape": one_of(*SHAPES),
    },
    text=_score_text,
)

"""The table made ready: which check, which condition and which fact belong to which trigger."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.facts import (
    fact_checkpoint,
    fact_issue,
    fact_mode,
    fact_note,
    fact_plan,
    fact_spend,
    fact_stop,
)
from gsd_fsm.core.flow import (
    check_answer,
    check_cancel,
    check_resume,
    check_start,
    fact_answer,
    fact_iteration,
    fact_pause,
    fact_resume,
    fact_session,
    fact_start,
    fact_wait,
    fall_silent,
)
from gsd_fsm.core.gaps import check_gap, fact_gap, leaves_gaps, stops_at_gaps
from gsd_fsm.core.goal import check_score, check_stage, fact_score, fact_stage
from gsd_fsm.core.loop import MAX_HISTORY
from gsd_fsm.core.proof import (
    check_complete,
    check_criterion,
    check_exit,
    check_review_passed,
    fact_criterion,
    fact_exit,
    fact_review,
    fact_verified,
)
from gsd_fsm.core.table import ACTIVE, VERBS, arrows_of, possible_verbs
from gsd_fsm.core.work import (
    check_failure,
    check_task,
    fact_failure,
    fact_task,
    may_retry,
    recovers,
    recovers_with_gaps,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from gsd_fsm.core.loop import Loop

    Event = dict[str, Any]

# Events whose action belongs to their trigger.
_COMPOUND = frozenset(("gap", "review"))


def _came_from(origin: str) -> Callable[[Loop, Event], bool]:
    def came_from(loop: Loop, event: Event) -> bool:
        before = loop.before_wait if loop.status == "waiting" else loop.before_pause
        return bool(before == origin)

    return came_from


CONDITIONS: dict[str, Callable[[Loop, Event], bool]] = {
    "may_retry": may_retry,
    "recovers": recovers,
    "recovers_with_gaps": recovers_with_gaps,
    "stops_at_gaps": stops_at_gaps,
    "leaves_gaps": leaves_gaps,
}
for _origin in (*ACTIVE, "waiting"):
    CONDITIONS["was_" + _origin] = _came_from(_origin)

CHECKS: dict[str, Callable[[Loop, Event], None]] = {
    "start": check_start,
    "task": check_task,
    "failure": check_failure,
    "gap.found": check_gap,
    "gap.reopened": check_gap,
    "gap.closed": check_gap,
    "criterion": check_criterion,
    "exit": check_exit,
    "review.passed": check_review_passed,
    "stage": check_stage,
    "score": check_score,
    "answer": check_answer,
    "resume": check_resume,
    "cancel": check_cancel,
    "complete": check_complete,
}


def _no_fact(loop: Loop, event: Event) -> None:
    """The change of status says it all."""


FACTS: dict[str, Callable[[Loop, Event], None]] = {
    "start": fact_start,
    "iteration": fact_iteration,
    "failure": fact_failure,
    "task": fact_task,
    "gap.found": fact_gap,
    "gap.reopened": fact_gap,
    "gap.closed": fact_gap,
    "review.begun": fact_review,
    "review.passed": fact_review,
    "review.failed": fact_review,
    "review.light": fact_review,
    "wait": fact_wait,
    "answer": fact_answer,
    "resume": fact_resume,
    "pause": fact_pause,
    "complete": _no_fact,
    "cancel": _no_fact,
    "session": fact_session,
    "criterion": fact_criterion,
    "verified": fact_verified,
    "exit": fact_exit,
    "stage": fact_stage,
    "score": fact_score,
    "plan": fact_plan,
    "mode": fact_mode,
    "spend": fact_spend,
    "note": fact_note,
    "issue": fact_issue,
    "stop": fact_stop,
    "checkpoint": fact_checkpoint,
}


# The table made ready for the fold: trigger -> source -> (check, conditions, fact, dest).
# `conditions` is None where the destination is certain, as it mostly is.
PLANS: dict[str, dict[str, tuple[Any, Any, Any, str]]] = {}


def plans_of(trigger: str) -> dict[str, tuple[Any, Any, Any, str]]:
    """The plans of a trigger, made ready when it is first met: most processes meet few."""
    if trigger in PLANS:
        return PLANS[trigger]
    plans = PLANS[trigger] = {}
    for source, arrows in arrows_of(trigger).items():
        choices = [(CONDITIONS[name] if name else None, dest) for name, dest in arrows]
        certain = choices[0][0] is None
        plans[source] = (
            CHECKS.get(trigger),
            None if certain else tuple(choices),
            FACTS[trigger],
            choices[0][1],
        )
    return plans


def trigger_of(event: Event) -> str:
    """The row of the table that this event is about."""
    kind: str = event["type"]
    if kind in _COMPOUND:
        return kind + "." + str(event["data"]["action"])
    return kind


def illegal(loop: Loop, trigger: str) -> Refused:
    """The refusal for a trigger that has no row here: names the state and what is possible."""
    verbs = possible_verbs(loop.status)
    return Refused(
        "loop %s is %s: %s is not possible now"
        % (loop.id, loop.status, VERBS.get(trigger, trigger)),
        "possible now: %s" % ", ".join(verbs)
        if verbs
        else "it is final; a new loop: gsd-fsm start --help",
    )


def arrive(loop: Loop, event: Event, source: str, dest: str) -> None:
    """Write down a change of status."""
    if dest == "paused":
        loop.before_pause = source
        fall_silent(loop)
    loop.status = dest
    data = event["data"]
    about = data.get("task") or data.get("gap") or loop.pause_code or ""
    loop.history.append([event["seq"], event["ts"], source, dest, event["type"], about])
    if len(loop.history) > MAX_HISTORY:
        del loop.history[0]

"""Criteria, the exit signal and reviews: what shows that a goal is reached."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.capacity import require_room_for_review
from gsd_fsm.core.loop.completion import is_missing, latest_tree
from gsd_fsm.core.loop.events.tasks import TASK_TABLE, clear_failed_verifications
from gsd_fsm.core.loop.records import Review
from gsd_fsm.core.loop.schema import (
    AMOUNT,
    COUNT,
    SAME,
    TEXT_OR_NULL,
    Arrow,
    EventType,
    Trigger,
    one_of,
    record,
)
from gsd_fsm.core.loop.state import LIVE, listed, unmet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import CriterionData, Event, ReviewData
    from gsd_fsm.core.loop.state import Loop

EVIDENCE = record(
    "evidence",
    {
        "command": str,
        "exit_code": COUNT,
        "tail": str,
        "digest": str,
        "likeness": str,
        "tree": TEXT_OR_NULL,
        "seconds": AMOUNT,
        "timed_out": bool,
    },
    ("command", "exit_code"),
)


# criterion


def record_criterion(loop: Loop, event: Event[CriterionData]) -> None:
    data = event["data"]
    criterion = loop.criterion(data["criterion"])
    before = latest_tree(loop)
    loop.record_progress("criterion:" + criterion.name)
    loop.drop_proof(criterion)
    criterion.met = data["met"]
    criterion.stale = data.get("stale", False)
    if "evidence" in data:
        criterion.evidence = {**data["evidence"], "seq": event["seq"]}
    if criterion.is_refuted:
        loop.refuted[criterion.name] = None
    if criterion.met and criterion.tree and "evidence" not in data:
        loop.index_trees()  # older evidence counts again, in its place
    else:
        loop.add_proof(criterion)
    if not data["met"]:
        loop.exit_signal = False
        loop.failed_verifications += "evidence" in data
    else:
        clear_failed_verifications(loop)
    settle_gate_tasks(loop, _changed_conditions(loop, criterion.name, before))


def _changed_conditions(loop: Loop, name: str, tree_before: str | None) -> list[str] | None:
    """Return the criteria whose condition may hold since an event about this one; None for all."""
    tree = latest_tree(loop)
    names = [name]
    if tree is not None and tree != tree_before:  # evidence from this content is not stale now
        fresh = loop.proven_by_tree[tree]
        if len(fresh) > len(loop.criterion_tasks):
            return None
        names += fresh
    return ["criterion:" + each for each in names]


def settle_gate_tasks(loop: Loop, changed: list[str] | None = None) -> None:
    """Complete the tasks whose completion condition holds by now.

    `changed`: the only criteria that may have changed; None for all of them.
    """
    open_ = loop.criterion_tasks
    keys = open_ if changed is None else [key for key in changed if key in open_]
    waiting = [(key, [*open_[key]]) for key in keys]
    waiting += [(key, [*names]) for key, names in loop.gate_tasks.items()]
    for key, names in waiting:
        # Only a passed review shows that a blocker is gone.
        if is_missing(loop, "review" if key == "blocker" else key):
            continue
        for name in names:
            task = loop.tasks[name]
            if TASK_TABLE.allows("condition", task.status, "complete"):
                loop.set_task_status(task, "complete")


def require_passing_check(loop: Loop, event: Event[CriterionData], loops: Loops) -> None:
    """Refuse to call a criterion met whose check did not pass."""
    data = event["data"]
    criterion = loop.criterion(data["criterion"])
    if criterion.check is None or not data["met"]:
        return
    evidence = data.get("evidence")
    if evidence is None or evidence["command"] != criterion.check or evidence["exit_code"] != 0:
        raise Refused(
            "criterion %r has a check and is met only when that passes" % criterion.name,
            "Run: gsd-fsm check",
        )


def _criterion_text(data: Any) -> str:
    proof = data.get("evidence")
    shown = ", exit code %s" % proof["exit_code"] if proof else ""
    state = "stale" if data.get("stale") else "met" if data["met"] else "unmet"
    return "%s %s%s" % (data["criterion"], state, shown)


CRITERION = EventType(
    "criterion",
    Trigger(
        verb="criterion",
        rules=(require_passing_check,),
        arrows=(Arrow(LIVE, SAME, record_criterion),),
    ),
    required={"criterion": str, "met": bool},
    optional={"stale": bool, "evidence": EVIDENCE},
    text=_criterion_text,
)


# exit


def give_exit_signal(loop: Loop, event: Event[Any]) -> None:
    loop.exit_signal = True
    settle_gate_tasks(loop)


def require_criteria_met(loop: Loop, event: Event[Any], loops: Loops) -> None:
    """Refuse the exit signal while a criterion is unmet."""
    left = unmet(loop)
    if left:
        raise Refused(
            "loop %s is %s: the exit signal needs every criterion met; unmet: %s"
            % (loop.id, loop.status, listed(left)),
            "Run: gsd-fsm check, or: gsd-fsm criterion ID met",
        )


EXIT = EventType(
    "exit",
    Trigger(
        verb="exit-signal",
        rules=(require_criteria_met,),
        arrows=(Arrow(LIVE, SAME, give_exit_signal),),
    ),
    optional={"reason": str},
    text="[{reason}]",
)


# review


def record_light_review(loop: Loop, event: Event[ReviewData]) -> None:
    data = event["data"]
    review = Review()
    review.score = data.get("score")
    review.issues = data.get("issues")
    review.blockers = data.get("blockers")
    name = "wave_%d" % data.get("wave", 0)
    loop.reviews[name] = review
    loop.reach(name)


def record_review(loop: Loop, event: Event[ReviewData]) -> None:
    data = event["data"]
    action = data["action"]
    loop.reach("review " + action)
    loop.review_outdated = False
    loop.review_needed = True
    review = loop.reviews["thorough"] = Review()
    review.passed = action == "passed"
    review.blockers_remaining = data.get("blockers", 0 if review.passed else None)
    review.score = data.get("score")
    review.issues = data.get("issues")
    if action == "failed":
        loop.failed_verifications += 1
    elif review.passed:
        clear_failed_verifications(loop)
    settle_gate_tasks(loop)


def require_no_blockers(loop: Loop, event: Event[ReviewData], loops: Loops) -> None:
    """Refuse to pass a review that has blockers."""
    if event["data"].get("blockers"):
        raise Refused("a review with blockers has not passed", "Run: gsd-fsm review failed")


def _review_text(data: Any) -> str:
    found = [
        "%s %s" % (name, data[name]) for name in ("score", "issues", "blockers") if name in data
    ]
    wave = " wave %d" % data["wave"] if "wave" in data else ""
    return ("%s%s %s %s" % (data["action"], wave, ", ".join(found), data.get("report", ""))).strip()


REVIEW = EventType(
    "review",
    Trigger(
        "begun",
        verb="review begun",
        arrows=(Arrow(("running", "fixing"), "reviewing", record_review),),
    ),
    Trigger(
        "passed",
        verb="review passed",
        rules=(require_no_blockers,),
        arrows=(Arrow(("reviewing",), "running", record_review),),
    ),
    Trigger(
        "failed",
        verb="review failed",
        arrows=(Arrow(("reviewing",), "fixing", record_review),),
    ),
    Trigger(
        "light",
        verb="review light",
        rules=(require_room_for_review,),
        arrows=(Arrow(LIVE, SAME, record_light_review),),
    ),
    required={"action": one_of("begun", "passed", "failed", "light")},
    optional={
        "wave": COUNT,
        "score": AMOUNT,
        "issues": COUNT,
        "blockers": COUNT,
        "report": str,
    },
    text=_review_text,
)

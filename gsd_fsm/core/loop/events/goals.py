"""What shows that a goal is reached: criteria, the exit signal, reviews, stages and scores."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.completion import is_missing, latest_tree
from gsd_fsm.core.loop.events.sessions import RELAYED
from gsd_fsm.core.loop.events.tasks import TASK_TABLE, clear_failed_verifications
from gsd_fsm.core.loop.limits import require_room
from gsd_fsm.core.loop.protection import EVIDENCE_FIELDS
from gsd_fsm.core.loop.records import Review
from gsd_fsm.core.loop.schema import (
    AMOUNT,
    COUNT,
    OBJECT,
    SAME,
    TEXT_OR_NULL,
    TEXTS,
    Arrow,
    EventType,
    StatusTable,
    Trigger,
    one_of,
    record,
)
from gsd_fsm.core.loop.state import LIVE, listed, unmet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import CriterionData, Event, ReviewData, ScoreData, StageData
    from gsd_fsm.core.loop.state import Loop

EVIDENCE = record(
    "evidence",
    {
        "command": str, "exit_code": COUNT, "tail": str, "digest": str, "likeness": str,
        "tree": TEXT_OR_NULL, "before": str, "changed": TEXTS, "seconds": AMOUNT,
        "timed_out": bool, "reruns": COUNT, "flaky": bool, "shell": str, **EVIDENCE_FIELDS,
    },
    ("command", "exit_code"),
)  # fmt: skip


# criterion


def record_criterion(loop: Loop, event: Event[CriterionData]) -> None:
    data = event["data"]
    criterion = loop.criterion(data["criterion"])
    if "evidence" in data and not data["evidence"].get("clean"):
        criterion.record_outcome(data["evidence"])
        loop.protection.record_run(criterion.name, data["evidence"])
    if data.get("baseline"):
        _record_baseline(loop, event)
        return
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
        loop.failed_verifications += _has_failed(data)
    else:
        clear_failed_verifications(loop)
    settle_gate_tasks(loop, _changed_conditions(loop, criterion.name, before))


def _has_failed(data: CriterionData) -> bool:
    """Return whether a check failed, or was refused: not if it passed on other content or files."""
    proof = data.get("evidence")
    if proof is None or data.get("stale"):
        return False
    return bool(proof["exit_code"] or not proof.get("altered"))


def _record_baseline(loop: Loop, event: Event[CriterionData]) -> None:
    """Keep what a check returned before any work: it meets no criterion and revokes nothing."""
    data = event["data"]
    criterion = loop.criterion(data["criterion"])
    if "evidence" in data:
        loop.baseline[criterion.name] = data["evidence"]["exit_code"] == 0
        if criterion.evidence is None:
            criterion.evidence = {**data["evidence"], "seq": event["seq"], "baseline": True}


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
    if loop.rules is not None and loop.rules.tree and not evidence.get("tree"):
        raise Refused(
            "criterion %r is met only on known content, and this evidence has no tree"
            % criterion.name,
            "Run: gsd-fsm check",
        )


def _criterion_text(data: Any) -> str:
    proof = data.get("evidence")
    shown = ", exit code %s" % proof["exit_code"] if proof else ""
    for word in ("flaky", "altered", "accepted"):
        shown += ", " + word if proof and proof.get(word) else ""
    state = "stale" if data.get("stale") else "met" if data["met"] else "unmet"
    state = "before any work" if data.get("baseline") else state
    return "%s %s%s" % (data["criterion"], state, shown)


CRITERION = EventType(
    "criterion",
    Trigger(
        verb="criterion",
        rules=(require_passing_check,),
        arrows=(Arrow(LIVE, SAME, record_criterion),),
    ),
    required={"criterion": str, "met": bool},
    optional={"stale": bool, "baseline": bool, "evidence": EVIDENCE},
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
    name = "wave_%d" % data.get("wave", 0)
    review = loop.reviews[name] = Review(data)
    review.blockers = data.get("blockers")
    loop.reach(name)


def record_review(loop: Loop, event: Event[ReviewData]) -> None:
    data = event["data"]
    action = data["action"]
    loop.reach("review " + action)
    loop.review_outdated = False
    loop.review_needed = True
    passed = action == "passed"
    review = loop.reviews["thorough"] = Review(data)
    review.passed = passed
    review.blockers_remaining = data.get("blockers", 0 if passed else None)
    if passed:
        clear_failed_verifications(loop)
    elif action == "failed":
        loop.failed_verifications += 1
    settle_gate_tasks(loop)


def require_no_blockers(loop: Loop, event: Event[ReviewData], loops: Loops) -> None:
    """Refuse to pass a review that has blockers, or while a blocker of an earlier one is open."""
    if event["data"].get("blockers"):
        raise Refused("a review with blockers has not passed", "Run: gsd-fsm review failed")
    left = loop.gate_tasks.get("blocker")
    if left and loop.rules is not None:
        raise Refused(
            "loop %s is %s: the review cannot pass while a blocker is open: %s"
            % (loop.id, loop.status, listed(left)),
            "Resolve it, then run: gsd-fsm task %s complete" % next(iter(left)),
        )


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
        rules=(require_room,),
        arrows=(Arrow(LIVE, SAME, record_light_review),),
    ),
    required={"action": one_of("begun", "passed", "failed", "light")},
    optional={"wave": COUNT, "score": AMOUNT, "issues": COUNT, "blockers": COUNT, "report": str},
    text=_review_text,
)


# stage

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
    """Return the key of the question of what an unclear goal means."""
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


def loosens_shape(loop: Loop, shape: str | None) -> bool:
    """Return whether this shape gives the user less to decide than one that no answer made clearer."""
    looser = loop.shape and shape and SHAPES.index(shape) < SHAPES.index(loop.shape)
    return bool(looser and clarify_key(loop) not in loop.answered)


def require_human_for_looser_shape(loop: Loop, event: Event[ScoreData], loops: Loops) -> None:
    """Refuse an agent that gives the user less to decide, unless the user made the goal clearer."""
    looser = loosens_shape(loop, event["data"].get("shape"))
    if looser and event["by"] == "agent" and not loop.human_spoke_since_score:
        raise Refused(
            "agents cannot loosen the shape of loop %s until the user sends a message" % loop.id,
            "Ask the user, then score again.",
        )


def _score_text(data: Any) -> str:
    if "shape" not in data or "spec_score" not in data:
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
        "spec": OBJECT, "spec_score": COUNT, "fit_score": COUNT, "shape": one_of(*SHAPES), **RELAYED,
    },
    text=_score_text,
)  # fmt: skip

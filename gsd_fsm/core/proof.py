"""Facts about being done: criteria, verification, exit signal, reviews, stages, and the rule."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop import is_planned, open_gaps, open_tasks, unmet
from gsd_fsm.core.payloads import STAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop


def new_criterion(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": spec["name"],
        "check": spec.get("check"),
        "met": False,
        "stale": False,
        "evidence": None,
    }


def check_criterion(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    criterion = loop.criteria.get(data["criterion"])
    if criterion is None:
        raise Refused(
            "loop %s has no criterion %r" % (loop.id, data["criterion"]),
            "its criteria: %s" % ", ".join(loop.criteria),
        )
    if criterion["check"] is None or not data["met"]:
        return
    evidence = data.get("evidence")
    if evidence is None or evidence["command"] != criterion["check"] or evidence["exit_code"] != 0:
        raise Refused(
            "criterion %r has a check, and only its passing makes it met" % data["criterion"],
            "gsd-fsm check",
        )


def fact_criterion(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    criterion = loop.criteria[data["criterion"]]
    criterion["met"] = data["met"]
    criterion["stale"] = data.get("stale", False)
    if "evidence" in data:
        criterion["evidence"] = {**data["evidence"], "seq": event["seq"]}
    if not data["met"]:
        loop.exit_signal = False
    loop.moved = True


def fact_verified(loop: Loop, event: dict[str, Any]) -> None:
    loop.round += 1
    loop.verified = event["data"]["passed"]


def check_exit(loop: Loop, event: dict[str, Any]) -> None:
    left = unmet(loop)
    if left:
        raise Refused(
            "loop %s is %s: the exit signal needs every criterion met; unmet: %s"
            % (loop.id, loop.status, ", ".join(left)),
            "gsd-fsm check, or gsd-fsm criterion ID met",
        )


def fact_exit(loop: Loop, event: dict[str, Any]) -> None:
    loop.exit_signal = True


def fact_review(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    action = data["action"]
    if action == "light":
        found = {name: data[name] for name in ("score", "issues", "blockers") if name in data}
        loop.reviews["wave_%d" % data.get("wave", 0)] = found
        return
    loop.review_needed = True
    blockers = data.get("blockers", 0 if action == "passed" else None)
    loop.reviews["thorough"] = {"passed": action == "passed", "blockers_remaining": blockers}
    for name in ("score", "issues"):
        if name in data:
            loop.reviews["thorough"][name] = data[name]


def check_review_passed(loop: Loop, event: dict[str, Any]) -> None:
    if event["data"].get("blockers"):
        raise Refused("a review with blockers has not passed", "gsd-fsm review failed")


def check_stage(loop: Loop, event: dict[str, Any]) -> None:
    wanted = STAGES.index(event["data"]["stage"])
    reached = STAGES.index(loop.stage) if loop.stage else -1
    if wanted > reached + 1:
        raise Refused(
            "stage %s cannot follow %s: no stage is skipped"
            % (STAGES[wanted], loop.stage or "the start"),
            "gsd-fsm stage %s" % STAGES[reached + 1],
        )


def fact_stage(loop: Loop, event: dict[str, Any]) -> None:
    loop.stage = event["data"]["stage"]


def fact_score(loop: Loop, event: dict[str, Any]) -> None:
    for name in ("spec_score", "fit_score", "shape"):
        if name in event["data"]:
            setattr(loop, name, event["data"][name])


def missing(loop: Loop, tree: str | None = None) -> list[str]:
    """What the completion rule still wants, in words; nothing when the loop may complete."""
    wants = ["criterion not met: %s" % name for name in unmet(loop)]
    wants += ["evidence is stale: %s" % name for name in stale(loop, tree)]
    if loop.kind == "execute":
        if not loop.tasks:
            wants.append("no task was recorded")
        wants += ["task %s is %s" % (t, loop.tasks[t]["status"]) for t in open_tasks(loop)]
        if is_planned(loop) and len(loop.tasks) < loop.plan["tasks"]:
            wants.append(
                "only %d of the %d tasks of the plan are recorded"
                % (len(loop.tasks), loop.plan["tasks"])
            )
    elif loop.kind == "verify":
        wants += ["gap %s is open" % gap_id for gap_id in open_gaps(loop)]
        if not loop.verified:
            wants.append("no verification has passed since the last gap was closed")
    else:
        if not loop.exit_signal:
            wants.append("no exit signal")
        reviewed = loop.reviews.get("thorough", {}).get("passed", False)
        if (loop.review_needed or loop.stage or loop.spec_score is not None) and not reviewed:
            wants.append("the thorough review has not passed")
    return wants


def stale(loop: Loop, tree: str | None) -> list[str]:
    """Met criteria whose evidence was taken from other content than this tree."""
    return [
        name
        for name, criterion in loop.criteria.items()
        if criterion["met"]
        and criterion["evidence"]
        and criterion["evidence"].get("tree") not in (None, tree)
    ]


def has_tree(loop: Loop) -> bool:
    """Whether completing needs the content of the work tree, which only the CLI can take."""
    return any(
        criterion["evidence"] and criterion["evidence"].get("tree")
        for criterion in loop.criteria.values()
    )


def ends_by_command(loop: Loop) -> bool:
    """Whether completing takes what only the CLI can do: git, or the documents of a phase."""
    return has_tree(loop) or (loop.kind == "execute" and is_planned(loop))


def latest_tree(loop: Loop) -> str | None:
    """The content that the latest evidence was taken from.

    Only `complete` takes the content again; until then the latest evidence counts as fresh.
    """
    taken = [
        (proof["seq"], proof["tree"])
        for proof in (c["evidence"] for c in loop.criteria.values() if c["met"])
        if proof and proof.get("tree")
    ]
    return max(taken)[1] if taken else None


def check_complete(loop: Loop, event: dict[str, Any]) -> None:
    wants = missing(loop, event["data"].get("tree"))
    if wants:
        raise Refused(
            "loop %s is %s and not done: %s" % (loop.id, loop.status, "; ".join(wants)),
            "gsd-fsm next tells what to do",
        )

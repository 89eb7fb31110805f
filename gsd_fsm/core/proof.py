"""Facts about being done: criteria, verification, exit signal, reviews, and the rule."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop import is_planned, is_unclear, open_gaps, open_tasks, reach, unmet
from gsd_fsm.core.work import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop


# A task of the gate that failed is mended like every failed task.
_OPEN = ("pending", "running", "checkpoint")


def new_criterion(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": spec["name"],
        "check": spec.get("check"),
        "met": spec.get("met", False),
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
        loop.setbacks += "evidence" in data
    elif loop.setbacks:
        settle(loop)
    loop.moved = True
    _settle_gate(loop)


def _settle_gate(loop: Loop) -> None:
    """Complete the tasks whose condition of the gate holds by now."""
    if not loop.gated:
        return
    wanted = {key for key, _ in conditions(loop, latest_tree(loop))}
    if "review" in wanted:
        wanted.add("blocker")  # only a passed review can tell that it is gone
    for task in loop.tasks.values():
        if task["condition"] and task["condition"] not in wanted and task["status"] in _OPEN:
            task["status"] = "complete"


def fact_verified(loop: Loop, event: dict[str, Any]) -> None:
    loop.round += 1
    loop.verified = event["data"]["passed"]
    loop.setbacks = 0 if loop.verified else loop.setbacks + 1


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
    _settle_gate(loop)


def fact_review(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    action = data["action"]
    if action == "light":
        found = {name: data[name] for name in ("score", "issues", "blockers") if name in data}
        wave = "wave_%d" % data.get("wave", 0)
        loop.reviews[wave] = found
        reach(loop, wave)
        return
    reach(loop, "review " + action)
    loop.outdated = False
    loop.review_needed = True
    blockers = data.get("blockers", 0 if action == "passed" else None)
    loop.reviews["thorough"] = {"passed": action == "passed", "blockers_remaining": blockers}
    for name in ("score", "issues"):
        if name in data:
            loop.reviews["thorough"][name] = data[name]
    if action == "failed":
        loop.setbacks += 1
    elif action == "passed" and loop.setbacks:
        settle(loop)
    _settle_gate(loop)


def check_review_passed(loop: Loop, event: dict[str, Any]) -> None:
    if event["data"].get("blockers"):
        raise Refused("a review with blockers has not passed", "gsd-fsm review failed")


def missing(loop: Loop, tree: str | None = None) -> list[str]:
    """What the completion rule still wants, in words; nothing when the loop may complete."""
    return [words for _, words in conditions(loop, tree)]


def conditions(loop: Loop, tree: str | None = None) -> list[tuple[str, str]]:
    """The conditions that the completion rule still misses: the key of each, and its words."""
    wants = [("criterion:" + name, "criterion not met: %s" % name) for name in unmet(loop)]
    wants += [("criterion:" + name, "evidence is stale: %s" % name) for name in stale(loop, tree)]
    if loop.kind == "execute":
        if not loop.tasks:
            wants.append(("tasks", "no task was recorded"))
        wants += [_open_task(loop, name) for name in open_tasks(loop)]
        if is_planned(loop) and len(loop.tasks) < loop.plan["tasks"]:
            most = loop.plan["tasks"]
            words = "only %d of the %d tasks of the plan are recorded" % (len(loop.tasks), most)
            wants.append(("tasks", words))
        return wants
    theirs = [name for name in open_tasks(loop) if loop.tasks[name]["mirrored"]]
    wants += [_open_task(loop, name) for name in theirs]
    if loop.kind == "verify":
        wants += [("gap:" + gap_id, "gap %s is open" % gap_id) for gap_id in open_gaps(loop)]
        if not loop.verified:
            words = "no verification has passed since the last gap was closed"
            wants.append(("verified", words))
        return wants
    if is_unclear(loop):
        wants.append(("clarity", "the goal is not clear"))
    if not loop.exit_signal:
        wants.append(("exit", "no exit signal"))
    if needs_review(loop) and not loop.reviews.get("thorough", {}).get("passed", False):
        wants.append(("review", "the thorough review has not passed"))
    elif loop.outdated:
        wants.append(("rework", "work was done after the thorough review"))
    return wants


def needs_review(loop: Loop) -> bool:
    """Whether a goal is complete only after a thorough review."""
    return bool(loop.review_needed or loop.stage or loop.spec_score is not None)


def _open_task(loop: Loop, task_id: str) -> tuple[str, str]:
    return "task:" + task_id, "task %s is %s" % (task_id, loop.tasks[task_id]["status"])


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
    wanted = conditions(loop, event["data"].get("tree"))
    # These hold up whoever decides now; journals that ended without them are what they are.
    wants = [words for key, words in wanted if key not in ("clarity", "rework")]
    if wants:
        raise Refused(
            "loop %s is %s and not done: %s" % (loop.id, loop.status, "; ".join(wants)),
            "gsd-fsm next tells what to do",
        )

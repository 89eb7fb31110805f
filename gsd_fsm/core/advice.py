"""What to do now: one sentence and one command, from the state alone."""

from __future__ import annotations

from gsd_fsm.core.loop import failed_tasks, open_gaps, open_tasks, unmet
from gsd_fsm.core.proof import has_tree, missing
from gsd_fsm.core.table import FINAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop

_MORE = {
    "iterations": " --add-iterations 10",
    "rounds": " --add-rounds 10",
    "budget": " --add-budget 10",
    "minutes": " --add-minutes 30",
}


def next_step(loop: Loop) -> tuple[str, str]:
    """The next step in words, and the command that goes with it."""
    run = "gsd-fsm --loop %s " % loop.id
    if loop.status in FINAL:
        return "The loop is %s." % loop.status, "gsd-fsm start"
    if loop.status == "paused":
        return _paused(loop, run)
    if loop.status == "waiting":
        if loop.wait_for == "human":
            return "A human must answer: %s" % (loop.question or ""), run + "answer TEXT"
        return "Throttled until %s." % (loop.until or "the client recovers"), run + "resume"
    if not missing(loop, _any_tree(loop)):
        return "Everything is done; complete the loop.", run + "complete"
    if loop.status == "reviewing":
        return "Finish the review.", run + "review passed"
    for advise in (_failed, _gaps, _tasks, _criteria):
        advice = advise(loop, run)
        if advice is not None:
            return advice
    return _closing(loop, run)


def _any_tree(loop: Loop) -> str | None:
    # Only `complete` can tell whether evidence is stale: here the latest counts as fresh.
    proofs = [c["evidence"] for c in loop.criteria.values() if c["met"] and c["evidence"]]
    return (
        max(proofs, key=lambda proof: int(proof["seq"])).get("tree")
        if proofs and has_tree(loop)
        else None
    )


def _paused(loop: Loop, run: str) -> tuple[str, str]:
    words = "Paused (%s): %s." % (loop.pause_code, (loop.pause_reason or "").rstrip("."))
    more = _MORE.get(loop.pause_code, "")
    if loop.pause_code == "retries" and any(
        task["status"] == "failed" and task["retries"] >= loop.limits["max_retries"]
        for task in loop.tasks.values()
    ):
        more = " --add-retries 1"
    return words, run + "resume" + more


def _failed(loop: Loop, run: str) -> tuple[str, str] | None:
    for task_id in failed_tasks(loop):
        task = loop.tasks[task_id]
        words = "Retry task %s (retry %d of %d)" % (
            _named(task), task["retries"], loop.limits["max_retries"],
        )  # fmt: skip
        return words + "; last error: %s" % _short(
            task["errors"]
        ), run + "task %s running" % task_id
    if loop.status == "retrying" and loop.errors:
        return "Fix the last error: %s" % _short(loop.errors), run + "next"
    return None


def _gaps(loop: Loop, run: str) -> tuple[str, str] | None:
    for gap_id in open_gaps(loop):
        gap = loop.gaps[gap_id]
        where = " in %s" % gap["file"] if gap["file"] else ""
        words = "Fix gap %s (%s%s): %s" % (gap_id, gap["kind"], where, gap["description"])
        return words, run + "gap close %s" % gap_id
    return None


def _tasks(loop: Loop, run: str) -> tuple[str, str] | None:
    waiting = open_tasks(loop)
    for task_id in waiting:
        task = loop.tasks[task_id]
        if task["status"] == "running":
            return "Finish task %s." % _named(task), run + "task %s complete" % task_id
        if task["status"] == "checkpoint":
            return "Task %s needs a decision." % _named(task), run + "task %s running" % task_id
    for task_id in waiting:
        task = loop.tasks[task_id]
        if not any(other in waiting for other in task["depends"]):
            return "Start task %s." % _named(task), run + "task %s running" % task_id
    return None


def _criteria(loop: Loop, run: str) -> tuple[str, str] | None:
    for number, (name, criterion) in enumerate(loop.criteria.items(), 1):
        if criterion["met"]:
            continue
        if criterion["check"] is not None:
            return "Make the check %r pass: %s" % (name, criterion["check"]), run + "check"
        return "Meet criterion %d: %s" % (number, name), run + "criterion %d met" % number
    return None


def _closing(loop: Loop, run: str) -> tuple[str, str]:
    if loop.kind == "verify":
        return "Verify everything again.", run + "verified pass"
    if loop.kind == "execute":
        return "Record the tasks of this loop.", run + "task ID running"
    if not loop.exit_signal and not unmet(loop):
        return "Every criterion is met; say that you are done.", run + "exit-signal"
    return "A thorough review must pass.", run + "review begun"


def _named(task: dict[str, Any]) -> str:
    return "%s (%s)" % (task["id"], task["title"]) if task["title"] else str(task["id"])


def _short(errors: list[dict[str, Any]]) -> str:
    text = " ".join(errors[-1]["text"].split()) if errors else ""
    return text if len(text) <= 200 else text[:199] + "…"

"""Facts about work: tasks and failures, and the conditions that depend on them.

Each event has a check, which refuses without touching anything, and a fact, which cannot fail.
"""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop import MAX_ERRORS, is_unclear, open_gaps, work_of_its_own
from gsd_fsm.core.waves import find_circle, lay_waves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop

BREAK_CIRCLE = "let one of them wait for nothing"
# status of a task -> what a `task` event may make of it; failing is an event of its own
TASK_MOVES = {
    "pending": ("running", "skipped"),
    "running": ("running", "complete", "checkpoint", "skipped"),
    "failed": ("running", "skipped"),
    "checkpoint": ("running", "complete", "skipped"),
    "complete": (),
    "skipped": (),
}


def new_task(task_id: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": task_id,
        "title": spec.get("title", ""),
        "wave": spec.get("wave"),
        "depends": list(spec.get("depends", ())),
        "step": spec.get("step", False),
        "mirrored": spec.get("mirrored", False),
        "list": spec.get("list"),
        "named": spec.get("named", False),
        "condition": spec.get("condition"),
        "status": "pending",
        "retries": 0,
        "transient": 0,
        "phase": None,
        "attempts": 0,
        "ref": None,
        "commit": None,
        "question": None,
        "asked": 0,
        "answer": None,
        "locked": None,
        "proven": None,
        "exit_code": None,
        "summary": None,
        "fixes": [],
        "errors": [],
    }


def _known_task(loop: Loop, task_id: str) -> dict[str, Any] | None:
    task: dict[str, Any] | None = loop.tasks.get(task_id)
    if task is None and not loop.accepts_tasks:
        raise Refused(
            "loop %s has no task %s" % (loop.id, task_id),
            "its tasks: %s" % ", ".join(loop.tasks),
        )
    return task


def check_task(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    wanted = data["status"]
    task = loop.tasks.get(data["task"])
    if wanted == "pending":
        _check_new(loop, data, task)
        return
    task = _known_task(loop, data["task"])
    status = task["status"] if task is not None else "pending"
    moves = TASK_MOVES[status]
    if wanted not in moves:
        raise Refused(
            "task %s is %s and cannot become %s" % (data["task"], status, wanted),
            "possible now: %s"
            % (", ".join((*moves, "failed")) if moves else "nothing, it is done"),
        )
    if "phase" in data and wanted != "running":
        raise Refused("a TDD phase belongs to a running task", "task ID running --phase …")
    if wanted == "running":
        if is_unclear(loop):
            raise Refused(
                "the goal of loop %s is blocked: it is not clear enough to be worked on" % loop.id,
                "clarify it with the user, then: gsd-fsm score --help",
            )
        if task is not None and task["depends"]:
            _check_dependencies(loop, task)


def _check_new(loop: Loop, data: dict[str, Any], task: dict[str, Any] | None) -> None:
    """A task is new, or one that has not begun gets more to wait for; never in a circle."""
    depends = data.get("depends", ())
    if task is not None and not (depends and task["status"] == "pending"):
        raise Refused("task %s exists already" % data["task"], "give it another id")
    if depends:
        known = {name: other["depends"] for name, other in loop.tasks.items()}
        known[data["task"]] = [*known.get(data["task"], ()), *depends]
        circle = find_circle(known)
        if circle:
            raise Refused(
                "tasks depend on each other in a circle: %s" % ", ".join(circle), BREAK_CIRCLE
            )


def _check_dependencies(loop: Loop, task: dict[str, Any]) -> None:
    known = [name for name in task["depends"] if name in loop.tasks]
    unfinished = [name for name in known if not is_done(loop.tasks[name])]
    if unfinished:
        raise Refused(
            "task %s depends on %s" % (task["id"], ", ".join(unfinished)),
            "finish that first; 'gsd-fsm next' tells what can start",
        )


def is_done(task: dict[str, Any]) -> bool:
    return task["status"] in ("complete", "skipped")


def fact_task(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    task = loop.tasks.get(data["task"])
    if task is None:
        task = loop.tasks[data["task"]] = new_task(data["task"], data)
        loop.gated = loop.gated or "condition" in data
    elif "depends" in data and data["status"] == "pending":
        task["depends"] += [name for name in data["depends"] if name not in task["depends"]]
    if data["status"] == "pending" and loop.kind == "goal" and "wave" not in data:
        lay_waves({n: other for n, other in loop.tasks.items() if other["condition"] is None})
    status = data["status"]
    begins = "locked" in data and task["locked"] is None  # a test-driven attempt
    if task["status"] == "failed":
        loop.failed -= 1
    task["status"] = status
    if len(data) > 2:
        for name in ("ref", "commit", "question", "locked", "exit_code", "summary", "fixes"):
            if name in data:
                task[name] = data[name]
    if status == "running":
        if data.get("phase") == "green":
            again = task["phase"] == "green" and not begins
            task["attempts"] = task["attempts"] + 1 if again else 1
        task["phase"] = data.get("phase", task["phase"])
    elif status == "checkpoint":
        task["asked"], task["answer"] = event["seq"], None
    elif status in ("complete", "skipped"):
        # Success clears what only mattered while the task failed.
        task["errors"] = []
        task["transient"] = 0
        loop.repeats = 0
        loop.transient = 0
        if work_of_its_own(task):
            loop.advanced = True
            reviewed = status == "complete" and "thorough" in loop.reviews
            loop.outdated = loop.outdated or reviewed
        if loop.setbacks:
            settle(loop)


def check_failure(loop: Loop, event: dict[str, Any]) -> None:
    task_id = event["data"].get("task")
    if task_id is None:
        return
    task = _known_task(loop, task_id)
    if task is not None and is_done(task):
        raise Refused(
            "task %s is %s and cannot fail any more" % (task_id, task["status"]),
            "gsd-fsm fail without a task tells that the loop failed",
        )


def may_retry(loop: Loop, event: dict[str, Any]) -> bool:
    return not retry_refusal(loop, event["data"])


def retry_refusal(loop: Loop, data: dict[str, Any]) -> str:
    """The code of the pause this failure ends in, "" when it is retried."""
    kind = data["class"]
    if kind in ("blocking", "unknown"):
        return str(kind)
    if not loop.auto_loop:
        return "manual"
    task_id = data.get("task")
    task = loop.tasks.get(task_id) if task_id is not None else None
    tried = task["transient"] if task is not None else loop.transient if task_id is None else 0
    if kind == "transient" and tried:
        return "retries"
    if task_id is None:
        return ""
    retries = task["retries"] if task is not None else 0
    return "" if retries < loop.limits["max_retries"] else "retries"


def fact_failure(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    code = retry_refusal(loop, data)
    task_id = data.get("task")
    error = {
        "seq": event["seq"],
        "text": data["error"],
        "class": data["class"],
        "signature": data.get("signature", data["error"]),
        "analysis": data.get("analysis"),
        "fix": data.get("fix"),
        "attempts": 0,
    }
    loop.last_error = data["error"]
    transient = data["class"] == "transient"
    loop.setbacks += not transient  # what passes by itself asks for no other way
    if task_id is None:
        same = bool(loop.errors) and loop.errors[-1]["signature"] == error["signature"]
        loop.repeats = loop.repeats + 1 if same and loop.repeats else 1
        loop.transient += transient
    else:
        task = loop.tasks.get(task_id)
        if task is None:
            task = loop.tasks[task_id] = new_task(task_id, {})
        if task["status"] != "failed":
            loop.failed += 1
        task["status"] = "failed"
        task["transient"] += transient
        # What was locked belongs to this attempt; tests once seen to fail need not fail again.
        proven = task["locked"] if task["phase"] in ("green", "refactor") else None
        task["proven"] = proven or task["proven"]
        error["attempts"], task["locked"] = task["attempts"], None
        if not code:
            task["retries"] += 1
        _keep_error(task["errors"], error)
    _keep_error(loop.errors, error)
    if code:
        loop.pause_code = code
        loop.pause_reason = _pause_reason(loop, data, code)


def _keep_error(errors: list[dict[str, Any]], error: dict[str, Any]) -> None:
    # A repeated error moves to the end instead of pushing out a different one.
    if errors and errors[-1]["signature"] == error["signature"]:
        errors[-1] = error
        return
    errors[:] = [e for e in errors if e["signature"] != error["signature"]][1 - MAX_ERRORS :]
    errors.append(error)


def _pause_reason(loop: Loop, data: dict[str, Any], code: str) -> str:
    what = "Task %s" % data["task"] if "task" in data else "The loop"
    if code == "retries":
        times = loop.tasks[data["task"]]["transient"] if "task" in data else loop.transient
        if times > 1 and data["class"] == "transient":
            return "%s failed again with a transient error" % what
        most = loop.limits["max_retries"]
        return "%s failed after %d %s" % (what, most, "retry" if most == 1 else "retries")
    if code == "manual":
        return "%s failed and auto_loop is off" % what
    return "%s failed with %s error" % (what, "a blocking" if code == "blocking" else "an unknown")


def settle(loop: Loop) -> None:
    """Forget the setbacks once all that has failed has succeeded."""
    review = loop.reviews.get("thorough")
    failing = [task for task in loop.tasks.values() if task["errors"]]
    refuted = [
        criterion
        for criterion in loop.criteria.values()
        if not criterion["met"] and criterion["evidence"] and criterion["evidence"]["exit_code"]
    ]
    if not failing and not refuted and (review is None or review["passed"]):
        loop.setbacks = 0


def recovers(loop: Loop, event: dict[str, Any]) -> bool:
    """Whether no task is failed any more after this event; a task of somebody else mends nothing."""
    if "condition" in event["data"] or event["data"].get("mirrored"):
        return False
    task = loop.tasks.get(event["data"]["task"])
    return bool(loop.failed == (task is not None and task["status"] == "failed"))


def recovers_with_gaps(loop: Loop, event: dict[str, Any]) -> bool:
    return bool(loop.gaps) and recovers(loop, event) and bool(open_gaps(loop))

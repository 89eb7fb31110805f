"""Tasks and failures: what is worked on, and what went wrong."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.limits import require_room
from gsd_fsm.core.loop.records import DONE, Failure, Task
from gsd_fsm.core.loop.schema import (
    COUNT,
    DIGESTS,
    ID,
    IDS,
    SAME,
    TEXTS,
    Arrow,
    EventType,
    StatusTable,
    Trigger,
    one_of,
)
from gsd_fsm.core.loop.state import ACTIVE
from gsd_fsm.core.loop.waves import can_start, dependencies_of, find_cycle, lay_waves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event, FailureData, TaskData
    from gsd_fsm.core.loop.state import Loop

ERROR_CLASSES = ("transient", "logic", "blocking", "unknown")
TDD_PHASES = ("red", "green", "refactor")
_UNFINISHED = ("pending", "running", "failed", "checkpoint")
TASK_TABLE = StatusTable(
    ("start", ("new",), "pending"),
    ("plan", ("new", "pending"), "pending"),
    ("task", ("new", "pending"), "pending"),
    ("task", ("new", *_UNFINISHED), "running"),
    ("task", ("running", "checkpoint"), "complete"),
    ("task", ("running",), "checkpoint"),
    ("task", ("new", *_UNFINISHED), "skipped"),
    ("failure", ("new", *_UNFINISHED), "failed"),
    # The completion condition that the task stands for holds.
    ("condition", ("pending", "running", "checkpoint"), "complete"),
    # A rollback undoes the task; a gap that comes back needs another fix.
    ("checkpoint", (*_UNFINISHED, *DONE), "pending"),
    ("gap.reopened", DONE, "pending"),
)
# Different errors of a task that are kept at least, and at most.
KEPT_ERRORS = 3
MOST_ERRORS = 20
# What a task takes over from each of its events.
_DETAILS = frozenset(("ref", "commit", "question", "locked", "exit_code", "summary", "fixes"))
BREAK_CYCLE = "Remove one of these dependencies."


# task


def record_task(loop: Loop, event: Event[TaskData]) -> None:
    data = event["data"]
    status = data["status"]
    task = loop.tasks.get(data["task"]) if status == "pending" else loop.task(data["task"])
    if task is None:
        task = Task(data["task"], data)
        loop.put_task(task)
    elif "depends" in data and status == "pending":
        if loop.waves_due and "wave" in data:
            lay_waves(loop)  # the new dependencies do not count yet
        loop.add_dependencies(task, data["depends"])
    if status == "pending" and loop.kind == "goal" and "wave" not in data:
        loop.waves_due = len(loop.tasks)
    begins_attempt = "locked" in data and task.locked is None
    loop.set_task_status(task, status)
    for name in _DETAILS.intersection(data):
        setattr(task, name, data[name])  # type: ignore[literal-required]
    if status == "running":
        if data.get("phase") == "green":
            again = task.phase == "green" and not begins_attempt
            task.attempts = task.attempts + 1 if again else 1
        task.phase = data.get("phase", task.phase)
    elif status == "checkpoint":
        task.asked, task.answer = event["seq"], None
    elif status in ("complete", "skipped"):
        _finish(loop, task)


def _finish(loop: Loop, task: Task) -> None:
    """Clear what only mattered while the task failed."""
    task.errors = []
    task.transient = 0
    loop.erring.pop(task.id, None)
    loop.transient_tasks.pop(task.id, None)
    loop.repeated_errors = 0
    loop.transient = 0
    if task.is_work:
        loop.progressed = True
        if task.status == "complete" and "thorough" in loop.reviews:
            loop.review_outdated = True
    clear_failed_verifications(loop)


def clear_failed_verifications(loop: Loop) -> None:
    """Reset the count once everything that failed has succeeded."""
    review = loop.reviews.get("thorough")
    if not loop.erring and not loop.refuted and (review is None or review.passed):
        loop.failed_verifications = 0


def recovers(loop: Loop, event: Event[TaskData]) -> bool:
    """Return whether no task is failed any more after this event.

    A mirrored task, and one that stands for a completion condition, ends no retry.
    """
    if "condition" in event["data"] or event["data"].get("mirrored"):
        return False
    return len(loop.failed) == (event["data"]["task"] in loop.failed)


def recovers_with_gaps(loop: Loop, event: Event[TaskData]) -> bool:
    return loop.open_gap_count > 0 and recovers(loop, event)


def require_task_move(loop: Loop, event: Event[TaskData], loops: Loops) -> None:
    """Refuse a status that the task cannot get now."""
    data = event["data"]
    wanted = data["status"]
    task = loop.tasks.get(data["task"]) if wanted == "pending" else loop.task(data["task"])
    status = task.status if task is not None else "new"
    is_allowed = TASK_TABLE.allows("task", status, wanted)
    if wanted == "pending":
        if not is_allowed or (task is not None and not data.get("depends")):
            raise Refused("task %s already exists" % data["task"], "Choose another id.")
    elif not is_allowed:
        if task is None:
            hint = "Run: gsd-fsm task %s running" % data["task"]
            raise Refused("loop %s has no task %s yet" % (loop.id, data["task"]), hint)
        can_run = TASK_TABLE.allows("task", status, "running")
        raise Refused(
            "task %s is %s and cannot become %s" % (data["task"], status, wanted),
            "Run: gsd-fsm task %s running" % data["task"] if can_run else "Run: gsd-fsm next",
        )
    if "phase" in data and wanted != "running":
        raise Refused("only a running task has a TDD phase", "Run: gsd-fsm task --help")


def require_no_cycle(loop: Loop, event: Event[TaskData], loops: Loops) -> None:
    """Refuse a dependency that closes a cycle."""
    data = event["data"]
    if data["status"] != "pending" or not data.get("depends"):
        return
    if data["task"] not in loop.awaited and data["task"] not in data["depends"]:
        return  # no other task waits for it
    if data["task"] not in dependencies_of(loop, data["depends"]):
        return
    known: dict[str, Iterable[str]] = {name: task.depends for name, task in loop.tasks.items()}
    known[data["task"]] = [*known.get(data["task"], ()), *data["depends"]]
    refuse_cycle(known)


def refuse_cycle(depends: Mapping[str, Iterable[str]]) -> None:
    cycle = find_cycle(depends)
    if cycle:
        shown = [*cycle[:20], *(["…"] if len(cycle) > 20 else []), cycle[0]]
        raise Refused("dependency cycle: %s" % " → ".join(shown), BREAK_CYCLE)


def require_clear_goal(loop: Loop, event: Event[TaskData], loops: Loops) -> None:
    """Refuse to start a task of a goal that is not clear."""
    if event["data"]["status"] == "running" and loop.is_unclear:
        raise Refused(
            "the goal of loop %s is blocked: it is not clear enough to be worked on" % loop.id,
            "Clarify it with the user, then run: gsd-fsm score --help",
        )


def require_dependencies(loop: Loop, event: Event[TaskData], loops: Loops) -> None:
    """Refuse to start a task before the tasks that it depends on."""
    data = event["data"]
    task = loop.tasks.get(data["task"])
    if data["status"] != "running" or task is None or can_start(loop, task):
        return
    left = [name for name in task.depends if name in loop.tasks and not loop.tasks[name].is_done]
    raise Refused(
        "task %s depends on unfinished tasks: %s" % (task.id, ", ".join(left[:20])),
        "Run: gsd-fsm next",
    )


TASK = EventType(
    "task",
    Trigger(
        verb="task",
        rules=(
            require_task_move, require_room, require_no_cycle, require_clear_goal,
            require_dependencies,
        ),
        arrows=(
            Arrow(("retrying",), "fixing", record_task, when=recovers_with_gaps),
            Arrow(("retrying",), "running", record_task, when=recovers),
            Arrow(ACTIVE, SAME, record_task),
        ),
    ),
    required={
        "task": ID, "status": one_of("pending", "running", "complete", "checkpoint", "skipped"),
    },
    optional={
        "title": str, "wave": COUNT, "depends": IDS, "commit": str, "ref": str,
        "phase": one_of(*TDD_PHASES), "question": str, "summary": str, "fixes": TEXTS,
        "locked": DIGESTS, "exit_code": COUNT, "undone": bool, "mirrored": bool, "list": str,
        "named": bool, "condition": str,
    },
    text="{task} {status}[ phase {phase}][ ref {ref}][ commit {commit}][: {title}]",
)  # fmt: skip


# failure


def may_retry(loop: Loop, event: Event[FailureData]) -> bool:
    return not retry_refusal(loop, event["data"])


def retry_refusal(loop: Loop, data: FailureData) -> str:
    """Return the code of the pause that this failure causes, "" if it is retried."""
    error_class = data["class"]
    if error_class in ("blocking", "unknown"):
        return error_class
    if not loop.auto_loop:
        return "manual"
    if "task" not in data:
        return "retries" if error_class == "transient" and loop.transient else ""
    task = loop.tasks.get(data["task"])
    if task is None:
        return "" if loop.limits.max_retries else "retries"
    if error_class == "transient" and task.transient:
        return "retries"
    return "" if task.retries < loop.limits.max_retries else "retries"


def record_failure_and_retry(loop: Loop, event: Event[FailureData]) -> None:
    task = _record_failure(loop, event)
    if task is not None:
        task.retries += 1
        task.retry_refused = False
        loop.refused_retries.pop(task.id, None)


def record_failure_and_pause(loop: Loop, event: Event[FailureData]) -> None:
    code = retry_refusal(loop, event["data"])
    task = _record_failure(loop, event)
    if task is not None:
        task.retry_refused = True
        loop.refused_retries[task.id] = None
    loop.pause_code = code
    loop.pause_reason = _pause_reason(loop, event["data"], code)


def _record_failure(loop: Loop, event: Event[FailureData]) -> Task | None:
    """Record the error; return the task that failed, None if it was the loop."""
    data = event["data"]
    if "task" in data:
        loop.task(data["task"])
    error = Failure(event["seq"], data)
    transient = data["class"] == "transient"
    loop.last_error = data["error"]
    loop.failed_verifications += not transient  # a transient error needs no other approach
    task = None
    if "task" in data:
        task = _record_task_failure(loop, data["task"], error, transient)
    else:
        same = bool(loop.errors) and loop.errors[-1].signature == error.signature
        loop.repeated_errors = loop.repeated_errors + 1 if same and loop.repeated_errors else 1
        loop.transient += transient
    _keep_error(loop.errors, error, KEPT_ERRORS)
    return task


def _record_task_failure(loop: Loop, task_id: str, error: Failure, transient: bool) -> Task:
    task = loop.tasks.get(task_id)
    if task is None:
        task = Task(task_id)
        loop.put_task(task)
    loop.set_task_status(task, "failed")
    if transient:
        task.transient += 1
        loop.transient_tasks[task_id] = None
    # Locks belong to this attempt; tests once seen to fail need not fail again.
    if task.phase in ("green", "refactor") and task.locked:
        task.proven = task.locked
    error.attempts, task.locked = task.attempts, None
    # A failure report shows the error of every attempt.
    kept = min(max(KEPT_ERRORS, loop.limits.max_retries + 1), MOST_ERRORS)
    _keep_error(task.errors, error, kept)
    loop.erring[task_id] = None
    return task


def _keep_error(errors: list[Failure], error: Failure, most: int) -> None:
    # A repeated error moves to the end instead of pushing out a different one.
    if errors and errors[-1].signature == error.signature:
        errors[-1] = error
        return
    errors[:] = [known for known in errors if known.signature != error.signature][1 - most :]
    errors.append(error)


def _pause_reason(loop: Loop, data: FailureData, code: str) -> str:
    what = "Task %s" % data["task"] if "task" in data else "The loop"
    if code == "retries":
        times = loop.tasks[data["task"]].transient if "task" in data else loop.transient
        if times > 1 and data["class"] == "transient":
            return "%s failed again with a transient error" % what
        most = loop.limits.max_retries
        return "%s failed after %d %s" % (what, most, "retry" if most == 1 else "retries")
    if code == "manual":
        return "%s failed and auto_loop is off" % what
    return "%s failed with %s error" % (what, "a blocking" if code == "blocking" else "an unknown")


def require_unfinished(loop: Loop, event: Event[FailureData], loops: Loops) -> None:
    """Refuse a failure of a task that is complete or skipped."""
    task = loop.tasks.get(event["data"].get("task", ""))
    if task is not None and not TASK_TABLE.allows("failure", task.status, "failed"):
        raise Refused(
            "task %s is %s and can no longer fail" % (task.id, task.status),
            "To report a failure of the loop, run: gsd-fsm fail --error TEXT",
        )


FAILURE = EventType(
    "failure",
    Trigger(
        verb="fail",
        rules=(require_unfinished, require_room),
        arrows=(
            Arrow(ACTIVE, "retrying", record_failure_and_retry, when=may_retry),
            Arrow(ACTIVE, "paused", record_failure_and_pause),
        ),
    ),
    required={"error": str, "class": one_of(*ERROR_CLASSES)},
    optional={"task": ID, "analysis": str, "fix": str, "signature": str},
    text=lambda data: "%s (%s): %s" % (data.get("task", "loop"), data["class"], data["error"]),
)

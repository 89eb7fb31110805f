"""Tasks and failures: what is worked on, and what went wrong."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.limits import require_room
from gsd_fsm.core.loop.protection import EVIDENCE_FIELDS
from gsd_fsm.core.loop.records import DONE, Failure, Task
from gsd_fsm.core.loop.schema import (
    AMOUNT,
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
    record,
)
from gsd_fsm.core.loop.state import ACTIVE, LIVE
from gsd_fsm.core.loop.waves import can_start, dependencies_of, find_cycle, lay_waves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event, FailureData, TaskData
    from gsd_fsm.core.loop.state import Loop

ERROR_CLASSES = ("transient", "logic", "blocking", "unknown")
TDD_PHASES = ("red", "green", "refactor")
VERDICTS = ("complete", "failed", "checkpoint")
_UNFINISHED = ("pending", "running", "reported", "failed", "checkpoint")
TASK_TABLE = StatusTable(
    ("start", ("new",), "pending"),
    ("plan", ("new", "pending"), "pending"),
    ("task", ("new", "pending"), "pending"),
    ("task", ("new", *_UNFINISHED), "running"),
    ("task", ("new", *_UNFINISHED), "reported"),
    ("task", ("running", "reported", "checkpoint"), "complete"),
    ("task", ("running", "reported"), "checkpoint"),
    ("task", ("new", *_UNFINISHED), "skipped"),
    ("failure", ("new", *_UNFINISHED), "failed"),
    # A check that `complete` repeats may fail.
    ("failure.repeated", ("complete",), "failed"),
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
_DETAILS = frozenset((
    "ref", "commit", "question", "locked", "exit_code", "summary", "fixes", "message", "verdict",
    "error",
))  # fmt: skip
# The result of one check of a reported task.
PROOF = record(
    "proof",
    {
        "check": str, "passed": bool, "command": str, "exit_code": COUNT, "evidence": str,
        "seconds": AMOUNT, "timed_out": bool, "reruns": COUNT, "shell": str, "digest": str,
        "tree": str, **EVIDENCE_FIELDS,
    },
    ("check", "passed"),
)  # fmt: skip
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
    if _records_fact(loop, task, event):
        return
    begins_attempt = "locked" in data and task.locked is None
    loop.set_task_status(task, status)
    loop.silent_stops.pop(task.id, None)
    if status in ("running", "reported"):
        _forget_report(task)
    for name in _DETAILS.intersection(data):
        setattr(task, name, data[name])  # type: ignore[literal-required]
    if status == "running":
        if data.get("phase") == "green":
            again = task.phase == "green" and not begins_attempt
            task.attempts = task.attempts + 1 if again else 1
        task.phase = data.get("phase", task.phase)
    elif status == "reported":
        loop.reach("reported %s %d" % (task.id, task.retries))
    elif status == "checkpoint":
        task.asked, task.answer = event["seq"], None
    elif status in ("complete", "skipped"):
        if status == "complete":
            task.proof = "proven" if data.get("proven") else "claimed"
        loop.proof_seconds = max(loop.proof_seconds, data.get("seconds", 0))
        _finish(loop, task)


def _records_fact(loop: Loop, task: Task, event: Event[TaskData]) -> bool:
    """Record what changes no status: a request to skip, a proof, the end of a subagent."""
    data = event["data"]
    if "request" in data:
        task.skip, task.skip_reason, task.skips = event["seq"], data.get("summary"), None
    elif "proof" in data:
        task.proofs[data["proof"]["check"]] = data["proof"]
        task.is_proving = False
        loop.protection.record_run(data["proof"]["check"], data["proof"])
        loop.proof_seconds = max(loop.proof_seconds, data["proof"].get("seconds", 0))
    elif "proving" in data:
        task.is_proving = True
    elif "ended" in data:
        loop.silent_stops[task.id] = 0
    else:
        return False
    return True


def _forget_report(task: Task) -> None:
    """Clear what belongs to an earlier attempt or report."""
    task.verdict = task.error = task.message = None
    task.proofs = {}
    task.is_proving = False
    task.skip, task.skip_reason, task.skips = 0, None, None


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

    A mirrored task, one that stands for a completion condition, and a mere fact end no retry.
    """
    data = event["data"]
    if "condition" in data or data.get("mirrored") or "request" in data or "ended" in data:
        return False
    return len(loop.failed) == (event["data"]["task"] in loop.failed)


def recovers_with_gaps(loop: Loop, event: Event[TaskData]) -> bool:
    return loop.open_gap_count > 0 and recovers(loop, event)


def is_report(loop: Loop, event: Event[TaskData]) -> bool:
    return event["data"]["status"] == "reported"


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
    """Refuse to start or report a task before the tasks that it depends on."""
    data = event["data"]
    task = loop.tasks.get(data["task"])
    begins = data["status"] == "running" or (is_report(loop, event) and loop.is_active)
    if not begins or task is None or can_start(loop, task):
        return
    left = [name for name in task.depends if name in loop.tasks and not loop.tasks[name].is_done]
    raise Refused(
        "task %s depends on unfinished tasks: %s" % (task.id, ", ".join(left[:20])),
        "Run: gsd-fsm next",
    )


def _task_text(data: Any) -> str:
    if "proof" in data:
        proof = data["proof"]
        return "%s check %s %s" % (
            data["task"],
            proof["check"],
            "passed" if proof["passed"] else "failed",
        )
    facts = {
        "request": "skip requested", "proving": "checks begun", "ended": "subagent ended",
    }  # fmt: skip
    words = next((text for name, text in facts.items() if name in data), data["status"])
    if data["status"] == "complete":
        words += " (proven)" if data.get("proven") else " (claimed)"
    details = [
        "%s %s" % (name, data[name])
        for name in ("phase", "ref", "commit", "verdict")
        if name in data
    ]
    title = ": %s" % data["title"] if "title" in data else ""
    return "%s%s" % (" ".join([data["task"], words, *details]), title)


def require_proof(loop: Loop, event: Event[TaskData], loops: Loops) -> None:
    """Refuse to complete a task whose checks have not passed."""
    data = event["data"]
    task = loop.tasks.get(data["task"])
    if task is None or data["status"] != "complete" or not loop.proves_tasks:
        return
    if task.checks and not data.get("proven"):
        raise Refused(
            "task %s has checks and is complete only when they pass" % task.id,
            "Run: gsd-fsm check",
        )


TASK = EventType(
    "task",
    Trigger(
        verb="task",
        rules=(
            require_task_move, require_room, require_no_cycle, require_clear_goal,
            require_dependencies, require_proof,
        ),
        arrows=(
            Arrow(LIVE, SAME, record_task, when=is_report),
            Arrow(("retrying",), "fixing", record_task, when=recovers_with_gaps),
            Arrow(("retrying",), "running", record_task, when=recovers),
            Arrow(ACTIVE, SAME, record_task),
        ),
    ),
    required={
        "task": ID,
        "status": one_of("pending", "running", "reported", "complete", "checkpoint", "skipped"),
    },
    optional={
        "title": str, "wave": COUNT, "depends": IDS, "commit": str, "ref": str,
        "phase": one_of(*TDD_PHASES), "question": str, "summary": str, "fixes": TEXTS,
        "locked": DIGESTS, "exit_code": COUNT, "undone": bool, "mirrored": bool, "list": str,
        "named": bool, "condition": str, "checks": COUNT, "verdict": one_of(*VERDICTS),
        "error": str, "message": str, "proof": PROOF, "proving": bool, "proven": bool,
        "seconds": AMOUNT, "request": bool, "ended": bool, "relayed": bool, "unverified": bool,
        "shell": str,
    },
    text=_task_text,
    is_newer=lambda _loop, data: data["status"] == "reported" or "request" in data,
)  # fmt: skip


def continue_task(loop: Loop, spec: Any) -> None:
    """Let a task be where the tool left it that its loop was imported from."""
    task = loop.tasks[spec["id"]]
    loop.set_task_status(task, spec.get("status", "pending"))
    task.retries = spec.get("retries", 0)
    task.ref, task.commit, task.phase = spec.get("ref"), spec.get("commit"), spec.get("phase")
    if task.status == "reported":
        task.verdict = "complete"


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
    loop.silent_stops.pop(task_id, None)
    if transient:
        task.transient += 1
        loop.transient_tasks[task_id] = None
    # Locks belong to this attempt; tests once seen to fail need not fail again.
    if task.phase in ("green", "refactor") and task.locked:
        task.red_files = task.locked
    error.attempts, task.locked = task.attempts, None
    _forget_report(task)
    task.proof = None
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
    """Refuse a failure of a task that is complete or skipped, unless a check was repeated."""
    data = event["data"]
    task = loop.tasks.get(data.get("task", ""))
    trigger = "failure.repeated" if data.get("repeated") else "failure"
    if task is not None and not TASK_TABLE.allows(trigger, task.status, "failed"):
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
    optional={"task": ID, "analysis": str, "fix": str, "signature": str, "repeated": bool},
    text=lambda data: "%s (%s): %s" % (data.get("task", "loop"), data["class"], data["error"]),
)

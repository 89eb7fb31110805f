"""Record the work of a loop: iterations, tasks and their failures, notes and spending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.loop.completion import latest_tree, missing
from gsd_fsm.core.loop.limits import BUDGET, reached_limit, repeated_error, used_up_limit
from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import pending_question
from gsd_fsm.documents.journal_text import redact_and_truncate, redact_or_reject
from gsd_fsm.engine.context import (
    Context,
    LoopTransaction,
    Receipt,
    alone,
    one_of,
    require_id,
)
from gsd_fsm.engine.planned.checkpoints import finish_task
from gsd_fsm.engine.planned.plan import (
    append_consequences,
    append_wait,
    require_answered_checkpoint,
    require_turn,
)

if TYPE_CHECKING:
    from gsd_fsm.engine.planned.proof import Settled

MAX_DETAIL = 2_000


class TaskChange(NamedTuple):
    """The new status of a task."""

    task: str
    status: str
    receipt: Receipt
    settled: Settled | None = None
    is_request: bool = False


class RecordedFailure(NamedTuple):
    """A failure of a task, or of the loop if `task` is None."""

    task: str | None
    error_class: str
    receipt: Receipt


def iterate(context: Context) -> Receipt:
    """Begin an iteration. If a limit is reached or a question is open, record that and raise Refused."""
    with context.writing() as tx:
        loop = tx.loop
        asked = pending_question(loop) if loop.is_active and loop.shape == "colleague" else None
        # The caller of this function is not idle.
        limit = reached_limit(loop, tx.now, activity=True) if loop.is_active else None
        if asked is not None:
            append_wait(tx, *asked)
        elif limit is not None:
            tx.pause_at(limit)
        else:
            tx.append("iteration", {})
    if asked is not None or limit is not None:
        why = f"paused ({loop.pause_code}): {loop.pause_reason}"
        if loop.status == "waiting":
            why = f"waiting: {loop.question}"
        raise Refused(f"loop {loop.id} is now {why}", f"Run: {next_step(loop)[1]}")
    return tx.receipt


def record_task(
    context: Context,
    task_id: str,
    status: str,
    *,
    title: str | None = None,
    depends: Sequence[str] = (),
    commit: str | None = None,
    ref: str | None = None,
    phase: str | None = None,
    question: str | None = None,
) -> TaskChange:
    """Give a task this status; `pending` adds a task or new dependencies. Tag a completed task.

    A task with checks is reported as complete and proven first. An agent can only request to skip a
    task of an execute loop, unless the user has decided it.
    """
    require_id(task_id, "task")
    if status != "pending" and (depends or title):
        raise UsageError(
            "--title and --blocked-by require the status pending",
            f"Run: gsd-fsm task {task_id} pending --title TEXT --blocked-by ID",
        )
    details = {"title": title, "commit": commit, "ref": ref, "phase": phase, "question": question}
    data: dict[str, Any] = {"task": task_id, "status": status}
    for name, text in details.items():
        if text is not None:
            data[name] = redact_or_reject(text, name, MAX_DETAIL)
    if depends:
        data["depends"] = list(depends)
    if status == "complete" and _needs_proof(context, task_id):
        return _prove(context, task_id, commit)
    with alone(context):
        with context.writing() as tx:
            _require_allowed(context, tx.loop, task_id, status, depends)
            if status == "skipped" and _is_request(context, tx.loop):
                data["request"] = True
            tx.append("task", data)
            append_consequences(tx, context.project)
        if status == "complete" and tx.loop.kind == "execute":
            finish_task(context, tx.loop, task_id)
    return TaskChange(task_id, status, context.receipt(tx.loop), is_request="request" in data)


def _needs_proof(context: Context, task_id: str) -> bool:
    loop = context.working_loop()
    task = loop.tasks.get(task_id)
    return task is not None and task.checks > 0 and loop.proves_tasks and loop.is_live


def _prove(context: Context, task_id: str, commit: str | None) -> TaskChange:
    from gsd_fsm.engine.planned.report import report_complete

    loop = context.working_loop()
    require_answered_checkpoint(context, loop, task_id)
    settled = report_complete(context, loop, task_id, commit=commit)
    proof = context.receipt(loop)
    return TaskChange(task_id, proof.loop.tasks[task_id].status, proof, settled)


def _is_request(context: Context, loop: Loop) -> bool:
    """Return whether the caller can only ask for a task to be skipped."""
    return loop.rules is not None and loop.kind == "execute" and not context.may_decide(loop)


def _require_allowed(
    context: Context, loop: Loop, task_id: str, status: str, depends: Sequence[str]
) -> None:
    """Refuse a status that the caller cannot give to this task now."""
    require_answered_checkpoint(context, loop, task_id)
    if status == "pending":
        _require_extensible(loop, depends)
    else:
        _require_own(context, loop, task_id)
    if status == "running":
        require_turn(loop, task_id)
    elif status == "skipped" and loop.is_planned and loop.rules is None:
        context.require_human(loop, f"skip task {task_id} of")


def _require_extensible(loop: Loop, depends: Sequence[str]) -> None:
    """Refuse new tasks of a planned loop, and unknown dependencies."""
    if loop.is_planned:
        raise Refused(
            f"the tasks of loop {loop.id} come from its plan",
            f"Change the plan, then run: {command_line('resume', loop.id)}",
        )
    unknown = [name for name in depends if name not in loop.tasks]
    if unknown:
        names = ", ".join(unknown[:20])
        raise UsageError(f"loop {loop.id} has no task {names}", one_of(loop.tasks))


def _require_own(context: Context, loop: Loop, task_id: str) -> None:
    """Refuse a task that follows the client's list or a completion condition."""
    task = loop.tasks.get(task_id)
    if task is None:
        return
    if task.mirrored and context.author.by == "agent" and _is_listed(loop, task):
        raise Refused(
            f"task {task.id} belongs to the client's task list",
            "Change it there; the hook reads the list at the next stop.",
        )
    if not task.is_work:
        raise Refused(
            f"task {task.id} is complete once its condition holds: {task.title}",
            "Run: gsd-fsm next",
        )


def _is_listed(loop: Loop, task: Task) -> bool:
    """Return whether the client still shows the list of this task."""
    from gsd_fsm.core.usage.task_list import list_of

    now = list_of(loop, loop.owner or "")
    return now is not None and task.list_name in (None, now.name)


# failures


def record_failure(
    context: Context,
    task_id: str | None,
    error: str,
    *,
    error_class: str | None = None,
    analysis: str | None = None,
    fix: str | None = None,
) -> RecordedFailure:
    """Record that a task or the loop failed; it is retried, or the loop is paused."""
    if task_id is not None:
        require_id(task_id, "task")
    if not error.strip():
        raise UsageError(
            "a failure needs an error message",
            "Run: gsd-fsm fail [ID] --error TEXT | --error-file FILE|-",
        )
    from gsd_fsm.evidence.failure import failure_data

    data = failure_data(task_id, error, error_class, analysis, fix)
    with context.writing() as tx:
        if task_id is not None:
            require_answered_checkpoint(context, tx.loop, task_id)
            _require_own(context, tx.loop, task_id)
        tx.append("failure", data)
        tx.pause_at(repeated_error(tx.loop) if task_id is None else None)
        append_consequences(tx, context.project)
    return RecordedFailure(task_id, data["class"], tx.receipt)


# notes and spending


def leave_note(context: Context, text: str) -> Receipt:
    """Append a note; the next block delivers it."""
    return context.append("note", {"text": redact_and_truncate(text, 4_000)})


def spend(
    context: Context, usd: float | None = None, tokens: int | None = None, what: str | None = None
) -> Receipt:
    """Record money or tokens spent on a loop."""
    about = redact_and_truncate(what, 1_000) if what else None
    given = {"usd": usd, "tokens": tokens, "what": about}
    with context.writing() as tx:
        append_spending(tx, {name: it for name, it in given.items() if it is not None})
    return tx.receipt


def append_spending(tx: LoopTransaction, data: Mapping[str, object]) -> None:
    """Append a `spend` event; pause a loop that is not done and has used up its budget."""
    tx.append("spend", data)
    limit = used_up_limit(tx.loop, tx.loop.limits, tx.now, BUDGET)
    if limit is not None and missing(tx.loop, latest_tree(tx.loop)):
        tx.pause_at(limit)

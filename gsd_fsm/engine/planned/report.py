"""Record the report of a subagent about its task or fix, then settle it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import MAX_KEPT, Loop
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, alone
from gsd_fsm.engine.effects import require_rolled_back
from gsd_fsm.engine.planned.checkpoints import finish_task, finish_tasks
from gsd_fsm.engine.planned.commits import Work, commit_work, resolved_commit
from gsd_fsm.engine.planned.plan import (
    append_consequences,
    frozen_plan,
    has_changed,
    require_turn,
    unknown_work,
)
from gsd_fsm.engine.planned.proof import Settled, settle, tdd_problem
from gsd_fsm.evidence.failure import failure_data
from gsd_fsm.evidence.interruption import Watch, in_silence
from gsd_fsm.plans.tdd_files import changed

if TYPE_CHECKING:
    from gsd_fsm.subagents.report_parser import Issue, Report

MAX_FIXES = 20


class Reported(NamedTuple):
    """A recorded report, redacted, and what it came to.

    `settled` is None for a fix, in a loop of version 1, and if the loop waits or is paused.
    `repeated`: the task was already complete, so that only new issues were recorded.
    """

    task: str
    result: Report
    receipt: Receipt
    commit: str | None = None
    tag: str | None = None
    repeated: bool = False
    settled: Settled | None = None


def report_task(
    context: Context,
    task_id: str,
    output: str,
    commit: str | None = None,
    *,
    timeout: float | None = None,
    watch: Watch = in_silence,
) -> Reported:
    """Record the output of the subagent that did a task or fixed a gap, then settle it.

    A task is `reported` first. While the loop waits or is paused, that is all.
    """
    from gsd_fsm.subagents.report_parser import parse_report

    result = _redacted(parse_report(output))
    loop = context.working_loop()
    name = _known(loop, task_id)
    if result.verdict == "complete" and _is_done(loop, name):
        return _repeat(context, loop, name, result)
    if loop.rules is None or name in loop.gaps:
        with alone(context):
            return _record_at_once(context, loop, name, result, commit)
    made = resolved_commit(context, commit) if commit else None
    loop = _report(context, loop, name, result, made)
    if not loop.is_active:
        return Reported(name, result, context.receipt(loop), made)
    settled = settle(context, loop, timeout=timeout, watch=watch)
    done = settled.receipt
    commit = settled.commits.get(name) or done.loop.tasks[name].commit
    return Reported(name, result, done, commit, settled.tags.get(name), settled=settled)


def report_complete(
    context: Context, loop: Loop, name: str, summary: str = "", commit: str | None = None
) -> Settled | None:
    """Report a task as complete and settle it; return None if the loop waits or is paused."""
    from gsd_fsm.subagents.report_parser import Report

    made = resolved_commit(context, commit) if commit else None
    loop = _report(context, loop, name, Report("complete", "", summary), made)
    return settle(context, loop) if loop.is_active else None


def _report(context: Context, loop: Loop, name: str, result: Report, commit: str | None) -> Loop:
    """Append the report; raise Refused if a TDD task claims to be complete too early."""
    if result.verdict == "complete":
        _require_green(context, loop, name)
    require_rolled_back(context, loop)
    with context.writing(loop) as tx:
        task = tx.loop.tasks.get(name)
        if tx.loop.is_active and (task is None or task.status != "running"):
            require_turn(tx.loop, name)
        _append_issues(tx, name, result)
        tx.append("task", _reported_data(name, result, commit))
        task = tx.loop.tasks[name]
        if tx.loop.is_active and result.verdict == "failed":
            error, why = _error(result), (result.analysis, result.suggested_fix)
            tx.append("failure", failure_data(name, error, None, *why, alike=result.reason))
        elif tx.loop.is_active and result.verdict == "checkpoint":
            tx.append("task", {"task": name, "status": "checkpoint", "question": _question(result)})
        append_consequences(tx, context.project)
    return tx.loop


def _reported_data(name: str, result: Report, commit: str | None) -> dict[str, Any]:
    title = result.commit_message
    given = {
        "verdict": result.verdict,
        "commit": commit,
        "summary": result.details and redact_and_truncate(result.details, 2_000),
        "message": title and redact_and_truncate(title, 500),
        "fixes": list(result.fixes),
        "error": _error(result) if result.verdict == "failed" else "",
        "question": _question(result) if result.verdict == "checkpoint" else "",
    }
    known = {member: value for member, value in given.items() if value}
    return {"task": name, "status": "reported", **known}


def _error(result: Report) -> str:
    return redact_and_truncate(f"{result.reason}\n\n{result.details}".strip())


def _require_green(context: Context, loop: Loop, name: str) -> None:
    """Raise Refused if this is a TDD task whose tests have not failed first and passed then."""
    if not loop.is_planned or loop.kind != "execute" or not loop.proves_tasks:
        return
    if has_changed(context.project, loop):
        return  # the loop pauses before anything of the new plan counts
    plan_task = frozen_plan(context.project, loop, [name]).task(name)
    task = loop.tasks[name]
    if plan_task is None or plan_task.test_required == "false" or task.phase == "refactor":
        return
    if changed(context.project, task.locked or {}):
        return  # that is a failure of the task
    raise Refused(
        f"task {name} is a TDD task, and {tdd_problem(context, task, plan_task)}",
        f"Run: {command_line('tdd', loop.id, f'{name} --run')}",
    )


# loops of version 1, and fixes of gaps


def _record_at_once(
    context: Context, loop: Loop, name: str, result: Report, commit: str | None
) -> Reported:
    """Record the result; commit completed work first, because its event carries the commit.

    A dry run precedes the commit: the journal must accept the report. If appending fails after it,
    report the task again: the commit is then found instead of made.
    """
    result = _checked_locks(context, loop, name, result)
    made = resolved_commit(context, commit) if commit else None
    if made is not None:
        require_rolled_back(context, loop)
    elif result.verdict == "complete":
        if loop.is_planned and context.repository_or_none() is not None:
            with context.dry_run(loop) as tx:
                _append_result(tx, name, result, made)
        work = Work(result.commit_message, result.details, result.files)
        made = commit_work(context, loop, name, work)
    with context.writing(loop) as tx:
        _append_result(tx, name, result, made)
        append_consequences(tx, context.project)
    tag = None
    if result.verdict == "complete" and name in tx.loop.tasks and tx.loop.kind == "execute":
        tag = finish_task(context, tx.loop, name)
    return Reported(name, result, context.receipt(tx.loop), made, tag)


def _repeat(context: Context, loop: Loop, name: str, result: Report) -> Reported:
    """Record what is new in the report of a completed task, and set its checkpoint if missing."""
    with context.writing(loop) as tx:
        _append_issues(tx, name, result)
    tag = finish_tasks(context, tx.loop).get(name)
    done = context.receipt(tx.loop)
    return Reported(name, result, done, done.loop.tasks[name].commit, tag, repeated=True)


def _checked_locks(context: Context, loop: Loop, name: str, result: Report) -> Report:
    """Return the result; turn success into failure if a locked file was changed."""
    locked = loop.tasks[name].locked if name in loop.tasks else None
    if result.verdict != "complete" or not locked:
        return result
    touched = changed(context.project, locked)
    if not touched:
        return result
    reason = f"locked files were changed: {', '.join(touched)}"
    return result._replace(verdict="failed", reason=reason)


def _known(loop: Loop, given: str) -> str:
    """Return the id of this task or gap; T01 may be given as 01, as in its plan."""
    for name in (given, f"T{given}"):
        if name in loop.tasks or name in loop.gaps:
            return name
    if loop.accepts_tasks and loop.kind != "verify" and is_id(given):
        return given
    raise unknown_work(loop, given)


def _redacted(result: Report) -> Report:
    """Return the result as it may enter the journal, a commit and the screen: without secrets."""
    texts: dict[str, Any] = {
        name: redact_and_truncate(text)
        for name, text in result._asdict().items()
        if isinstance(text, str) and text
    }
    return result._replace(
        **texts,
        issues=_redacted_issues(list(dict.fromkeys(result.issues))),
        files=tuple(redact_and_truncate(path, 1_000) for path in result.files),
        fixes=tuple(redact_and_truncate(text, 1_000) for text in result.fixes[:MAX_FIXES]),
        options=tuple(redact_and_truncate(text) for text in result.options),
    )


def _redacted_issues(issues: list[Issue]) -> tuple[Issue, ...]:
    """Return as many issues as a loop keeps; the others are only counted, as each is an event."""
    if len(issues) > MAX_KEPT:
        left = len(issues) - MAX_KEPT + 1
        more = f"{left} more issues were reported and are not kept"
        issues = [*issues[:-left], issues[0]._replace(text=more)]
    return tuple(
        it._replace(
            severity=redact_and_truncate(it.severity, 100), text=redact_and_truncate(it.text)
        )
        for it in issues
    )


def _is_done(loop: Loop, name: str) -> bool:
    """Return whether this task is complete; a fix is so until its gap is opened again."""
    is_open = name in loop.gaps and loop.gaps[name].is_open
    return not is_open and name in loop.tasks and loop.tasks[name].status == "complete"


# events


def _append_result(tx: LoopTransaction, name: str, result: Report, commit: str | None) -> None:
    loop = tx.loop
    task, gap = loop.tasks.get(name), loop.gaps.get(name)
    if gap is not None:
        if not gap.is_open:
            raise Refused(f"gap {name} is already closed", "Run: gsd-fsm verify")
        require_turn(loop, name)
    _append_issues(tx, name, result)
    # A fix that succeeds at once only closes its gap; one that failed before is an open task.
    is_open_task = task is not None and not task.is_done
    is_task = gap is None or result.verdict != "complete" or is_open_task
    if is_task and (task is None or task.status != "running"):
        require_turn(loop, name)
        tx.append("task", {"task": name, "status": "running"})
    if result.verdict == "failed":
        why = (result.analysis, result.suggested_fix)
        tx.append("failure", failure_data(name, _error(result), None, *why, alike=result.reason))
        return
    if result.verdict == "checkpoint":
        tx.append("task", {"task": name, "status": "checkpoint", "question": _question(result)})
        return
    if is_task:
        tx.append("task", _completion(name, result, commit))
    if gap is not None:
        tx.append("gap", {"action": "closed", "gap": name})


def _append_issues(tx: LoopTransaction, name: str, result: Report) -> None:
    """Append each issue once: an interrupted report is given again."""
    known = {(it.task, it.severity, it.text) for it in tx.loop.issues}
    for issue in result.issues:
        if (name, issue.severity, issue.text) not in known:
            tx.append("issue", {"task": name, **issue._asdict()})


def _question(result: Report) -> str:
    question = redact_and_truncate("\n".join((result.reason, *result.options)), 4_000)
    if result.recommendation:
        question += f"\nRecommendation: {redact_and_truncate(result.recommendation, 1_000)}"
    return question


def _completion(name: str, result: Report, commit: str | None) -> dict[str, Any]:
    details = {
        "commit": commit,
        "summary": result.details and redact_and_truncate(result.details, 2_000),
        "fixes": list(result.fixes),
    }
    given = {member: value for member, value in details.items() if value}
    return {"task": name, "status": "complete", **given}

"""Record the report of a subagent about its task or fix, and commit the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import GsdError, Refused, UsageError
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.state import MAX_KEPT, Loop
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import redact_and_truncate, redact_or_reject
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, one_at_a_time
from gsd_fsm.engine.effects import require_rolled_back
from gsd_fsm.engine.planned.checkpoints import commits_since_start, finish_task, finish_tasks
from gsd_fsm.engine.planned.plan import (
    append_consequences,
    frozen_plan,
    require_turn,
    unknown_work,
)
from gsd_fsm.engine.tasks import failure_data

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Repository
    from gsd_fsm.subagents.report_parser import Issue, Report

MAX_FIXES = 20


class Reported(NamedTuple):
    """A recorded report: redacted, and with the commit and tag of a completed task.

    `repeated`: the task was already complete, so that only new issues were recorded.
    """

    task: str
    result: Report
    receipt: Receipt
    commit: str | None = None
    tag: str | None = None
    repeated: bool = False


class _Work(NamedTuple):
    """The files of a task or fix, relative to the project, and the message of its commit."""

    paths: list[str]
    message: str


@one_at_a_time
def report_task(context: Context, task_id: str, output: str, commit: str | None = None) -> Reported:
    """Record the output of the subagent that did a task or fixed a gap.

    The event of a completed task carries its commit, so that the commit is made first. A dry run
    precedes it: the journal must accept the report. If appending fails after the commit, report
    the task again: the commit is then found instead of made.
    """
    from gsd_fsm.subagents.report_parser import parse_report

    result = _redacted(parse_report(output))
    loop = context.loop(context.read())
    name = _known(loop, task_id)
    if result.verdict == "complete" and _is_done(loop, name):
        return _repeat(context, loop, name, result)
    result = _checked_locks(context, loop, name, result)
    made = _resolved(context, commit) if commit else None
    if made is not None:
        require_rolled_back(context, loop)
    elif result.verdict == "complete":
        if loop.is_planned and context.repository_or_none() is not None:
            with context.dry_run(loop) as tx:
                _append_result(tx, name, result, made)
        made = commit_work(context, loop, name, result)
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
    from gsd_fsm.plans.tdd_files import changed

    touched = changed(context.project, locked)
    if not touched:
        return result
    reason = f"locked files were changed: {', '.join(touched)}"
    return result._replace(verdict="failed", reason=reason)


def _resolved(context: Context, given: str) -> str:
    """Return the full name of this commit; without git, the text as it is."""
    repository = context.repository_or_none()
    if repository is None:
        return redact_or_reject(given, "the commit", 100)
    found = repository.resolved(given)
    if found is None:
        raise UsageError(f"not a commit: {display(given)[:80]}", "Run: git log")
    return found


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
        error = f"{result.reason}\n\n{result.details}".strip()
        why = (result.analysis, result.suggested_fix)
        tx.append("failure", failure_data(name, error, None, *why, alike=result.reason))
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


# the commit


def commit_work(context: Context, loop: Loop, name: str, result: Report) -> str | None:
    """Commit the result of a task if the settings allow it; else find the agent's own commit.

    Note in `context` which files were left out. Repeatable: a commit that an interrupted call made
    for this task is returned again.
    """
    require_rolled_back(context, loop)
    repository = context.repository_or_none() if loop.is_planned else None
    work = _work(context, loop, name, result) if repository else None
    if repository is None or work is None:
        return None
    if not context.settings()["commit"]:
        return _own_commit(repository, loop, work)
    left = [file for file in result.files if file not in work.paths]
    if left:
        why = "not committed, because the plan does not name them"
        context.notices.append(f"{why}: {', '.join(left)}")
    made = repository.commit(work.paths, work.message)
    return made or _made_before(repository, loop, work) or _own_commit(repository, loop, work)


def _work(context: Context, loop: Loop, name: str, result: Report) -> _Work | None:
    from gsd_fsm.git.messages import co_author, task_message

    trailer = co_author(context.author.client)
    brief = result.details[:2_000]
    if name in loop.gaps:
        gap = loop.gaps[name]
        # An orphan is fixed in its parent, so the files that the fix names belong to it too.
        paths = [*result.files, *([gap.file] if gap.file else ())]
        title = result.commit_message or gap.description
        return _Work(paths, task_message("fix", loop.phase, name, title, brief, trailer))
    try:
        task = frozen_plan(context.project, loop, [name]).task(name)
    except GsdError:
        task = None  # the plan was changed: the files of the task are no longer certain
    if task is None:
        return None
    title = result.commit_message or redact_and_truncate(task.title, 500)
    message = task_message(task.commit_type, loop.phase, task.number, title, brief, trailer)
    return _Work([*(file.path for file in task.files), *task.test_files], message)


def _made_before(repository: Repository, loop: Loop, work: _Work) -> str | None:
    """Return the commit of a call that ended before it could record its event."""
    subject = work.message.partition("\n")[0]
    recorded = {task.commit for task in loop.tasks.values()}
    for commit in commits_since_start(repository, loop):
        if commit.subject == subject and commit.id not in recorded:
            return commit.id
    return None


def _own_commit(repository: Repository, loop: Loop, work: _Work) -> str | None:
    """Return HEAD if the agent committed some of this work since the last checkpoint."""
    head = repository.head()
    last = next(reversed(loop.checkpoints.values()), None)
    if head is None or last is None or head == last or not repository.contains(last):
        return None
    return head if repository.touched(last, head, work.paths) else None

"""Commit the work of a task or fix, or find the commit that was made for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.core.errors import GsdError, UsageError
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import redact_and_truncate, redact_or_reject
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.effects import require_rolled_back
from gsd_fsm.engine.planned.checkpoints import commits_since_start
from gsd_fsm.engine.planned.plan import frozen_plan

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Repository


class Work(NamedTuple):
    """What a commit contains: its title, if the subagent gave one, details, and named files."""

    title: str | None = None
    details: str = ""
    files: tuple[str, ...] = ()


class _Commit(NamedTuple):
    """The files of a task or fix, relative to the project, and the message of its commit."""

    paths: list[str]
    message: str


def resolved_commit(context: Context, given: str) -> str:
    """Return the full name of this commit; without git, the text as it is."""
    repository = context.repository_or_none()
    if repository is None:
        return redact_or_reject(given, "the commit", 100)
    found = repository.resolved(given)
    if found is None:
        raise UsageError(f"not a commit: {display(given)[:80]}", "Run: git log")
    return found


def commit_work(context: Context, loop: Loop, name: str, done: Work) -> str | None:
    """Commit the result of a task if the settings allow it; else find the agent's own commit.

    Note in `context` which files were left out. Repeatable: a commit that an interrupted call made
    for this task is returned again.
    """
    require_rolled_back(context, loop)
    repository = context.repository_or_none() if loop.is_planned else None
    work = _commit_of(context, loop, name, done) if repository else None
    if repository is None or work is None:
        return None
    if not context.settings()["commit"]:
        return _own_commit(repository, loop, work)
    left = [file for file in done.files if file not in work.paths]
    if left:
        why = "not committed, because the plan does not name them"
        context.notices.append(f"{why}: {', '.join(left)}")
    made = repository.commit(work.paths, work.message)
    return made or _made_before(repository, loop, work) or _own_commit(repository, loop, work)


def _commit_of(context: Context, loop: Loop, name: str, done: Work) -> _Commit | None:
    from gsd_fsm.git.messages import co_author, task_message

    trailer = co_author(context.author.client)
    brief = done.details[:2_000]
    if name in loop.gaps:
        gap = loop.gaps[name]
        # An orphan is fixed in its parent, so the files that the fix names belong to it too.
        paths = [*done.files, *([gap.file] if gap.file else ())]
        title = done.title or gap.description
        return _Commit(paths, task_message("fix", loop.phase, name, title, brief, trailer))
    try:
        task = frozen_plan(context.project, loop, [name]).task(name)
    except GsdError:
        task = None  # the plan was changed: the files of the task are no longer certain
    if task is None:
        return None
    title = done.title or redact_and_truncate(task.title, 500)
    message = task_message(task.commit_type, loop.phase, task.number, title, brief, trailer)
    return _Commit([*(file.path for file in task.files), *task.test_files], message)


def _made_before(repository: Repository, loop: Loop, work: _Commit) -> str | None:
    """Return the commit of a call that ended before it could record its event."""
    subject = work.message.partition("\n")[0]
    recorded = {task.commit for task in loop.tasks.values()}
    for commit in commits_since_start(repository, loop):
        if commit.subject == subject and commit.id not in recorded:
            return commit.id
    return None


def _own_commit(repository: Repository, loop: Loop, work: _Commit) -> str | None:
    """Return HEAD if the agent committed some of this work since the last checkpoint."""
    head = repository.head()
    last = next(reversed(loop.checkpoints.values()), None)
    if head is None or last is None or head == last or not repository.contains(last):
        return None
    return head if repository.touched(last, head, work.paths) else None

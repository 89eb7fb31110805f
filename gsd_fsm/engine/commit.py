"""Commit the work of a task, and finish what follows from its completion: a tag, no TDD copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.checkpoints import (
    Tagged,
    commits_since_start,
    set_checkpoint,
    set_missing_checkpoints,
)
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.effects import finish_loop
from gsd_fsm.engine.follow_plan import frozen_plan, has_changed, repository_of
from gsd_fsm.texts import keep

if TYPE_CHECKING:
    from gsd_fsm.repository.repo import Repository
    from gsd_fsm.results import Result


@dataclass(frozen=True)
class Committed:
    """The commit with the result of a task, None if there is none; and what was left out of it."""

    commit: str | None = None
    warning: str = ""


@dataclass(frozen=True)
class _Work:
    """The files of a task or fix, relative to the project, and the message of its commit."""

    paths: list[str]
    message: str


def commit_work(context: Context, loop: Loop, name: str, result: Result) -> Committed:
    """Commit the result of a task if the settings allow it; else find the agent's own commit.

    Repeatable: a commit that an interrupted call made for this task is returned again.
    """
    finish_loop(context, loop)  # a pending rollback would undo the commit
    repository = repository_of(context.project) if loop.is_planned else None
    work = _work(context, loop, name, result) if repository else None
    if repository is None or work is None:
        return Committed()
    if not context.settings()["commit"]:
        return Committed(_own_commit(repository, loop, work))
    left = [file for file in result.files if file not in work.paths]
    warning = f"not committed, because the plan does not name them: {', '.join(left)}"
    made = repository.commit(work.paths, work.message)
    found = made or _made_before(repository, loop, work) or _own_commit(repository, loop, work)
    return Committed(found, warning if left else "")


def _work(context: Context, loop: Loop, name: str, result: Result) -> _Work | None:
    from gsd_fsm.repository.messages import co_author, fix_message, task_message

    trailer = co_author(context.author.client)
    brief = result.details[:2_000]
    if name in loop.gaps:
        gap = loop.gaps[name]
        # An orphan is fixed in its parent, so the files that the fix names belong to it too.
        paths = [*result.files, *([gap.file] if gap.file else ())]
        title = result.commit_message or gap.description
        return _Work(paths, fix_message(loop.phase, name, title, brief, trailer))
    if has_changed(context.project, loop):
        return None  # the files of the task are no longer certain
    task = frozen_plan(context.project, loop, [name]).task(name)
    if task is None:
        return None
    title = result.commit_message or keep(task.title, 500)
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


# effects of a completed task


def finish_task(context: Context, loop: Loop, task_id: str) -> Tagged:
    """Tag the commit of a completed task, and drop its TDD copies."""
    drop_copies(context, loop)
    return set_checkpoint(context, loop, task_id, task_id, loop.tasks[task_id].commit)


def task_effects(context: Context, loop: Loop) -> list[str]:
    """Carry out the effects of finished tasks that are missing; return why some still are.

    Repeatable: the journal shows which tags are missing, the disk which TDD copies are left.
    """
    drop_copies(context, loop)
    tagged = set_missing_checkpoints(context, loop).values()
    return [it.warning for it in tagged if it.warning]


def drop_copies(context: Context, loop: Loop) -> None:
    """Drop the TDD copies of tasks that are not in progress."""
    from gsd_fsm.tdd import Copies, tasks_with_copies

    for name in tasks_with_copies(context.gsd, loop.id):
        task = loop.tasks.get(name)
        in_progress = task and task.status in ("running", "checkpoint") and loop.is_live
        if task and not in_progress:
            Copies(context.gsd, loop.id, name).drop()

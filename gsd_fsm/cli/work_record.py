"""What a finished task leaves: a commit, where the engine may make one, a tag, and no copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.cli.call import Call
from gsd_fsm.cli.checkpoints import set_checkpoint
from gsd_fsm.cli.planned import frozen_plan, has_changed, project_of, repository_of, values
from gsd_fsm.cli.voice import warn
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.texts import keep

if TYPE_CHECKING:
    from gsd_fsm.repository.repo import Repository
    from gsd_fsm.results import Result


class _Work(NamedTuple):
    """What a task or a fix was to change, relative to the project, and the message of its commit."""

    paths: list[str]
    message: str


def commit_work(call: Call, journal: Journal, loop: Loop, name: str, result: Result) -> str | None:
    """The commit that holds this result: made now if the engine may, else the agent's own."""
    repository = repository_of(journal) if is_planned(loop) else None
    work = _work(call, journal, loop, name, result) if repository else None
    if repository is None or work is None:
        return None
    made = None
    if values(journal)["commit"]:
        left = [file for file in result.files if file not in work.paths]
        if left:
            warn(f"not committed, for the plan does not name them: {', '.join(left)}")
        made = repository.commit(work.paths, work.message)
        made = made or _made_before(repository, work.message)
    return made or _own_commit(repository, loop, work)


def _own_commit(repository: Repository, loop: Loop, work: _Work) -> str | None:
    """The commit that the agent has made itself, if it is one of this work."""
    head = repository.head()
    last = next(reversed(loop.checkpoints.values()), None)
    if head is None or last is None or head == last or not repository.contains(last):
        return None
    return head if repository.touched(last, head, work.paths) else None


def _work(call: Call, journal: Journal, loop: Loop, name: str, result: Result) -> _Work | None:
    from gsd_fsm.repository.messages import co_author, fix_message, task_message

    project = project_of(journal)
    trailer = co_author(call.caller.client)
    brief = result.details[:2_000]
    if name in loop.gaps:
        gap = loop.gaps[name]
        # An orphan is fixed in its parent: what the fix says it changed belongs to it too.
        paths = [*result.files, *([gap["file"]] if gap["file"] else ())]
        title = result.commit_message or gap["description"]
        return _Work(paths, fix_message(loop.phase, name, title, brief, trailer))
    if has_changed(project, loop):
        return None  # what belongs to the task is no longer certain
    task = frozen_plan(project, loop, [name]).task(name)
    if task is None:
        return None
    title = result.commit_message or keep(task.title, 500)
    message = task_message(task.commit_type, loop.phase, task.number, title, brief, trailer)
    return _Work([*(file.path for file in task.files), *task.test_files], message)


def _made_before(repository: Repository, message: str) -> str | None:
    """The commit of a call that was killed before it could tell of it."""
    head = repository.head()
    last = repository.commits("-1", head)[0] if head else None
    return head if last and last.subject == message.partition("\n")[0] else None


def late_checkpoint(call: Call, journal: Journal, loop: Loop) -> str | None:
    """Set the checkpoint that a call was killed before setting, while its commit is the last one."""
    repository = repository_of(journal) if loop.kind == "execute" and is_planned(loop) else None
    head = repository.head() if repository else None
    if head is None or head in loop.checkpoints.values():
        return None
    for name, task in loop.tasks.items():
        if task["status"] == "complete" and task["commit"] == head:
            return set_checkpoint(call, journal, loop, name, name)
    return None


def forget_copies(journal: Journal, loop: Loop, task_id: str) -> None:
    """Drop what a test-driven task had kept for the way back."""
    if loop.tasks[task_id]["phase"] is not None:
        from gsd_fsm.tdd import Copies

        Copies(journal.path, loop.id, task_id).drop()

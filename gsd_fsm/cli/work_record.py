"""What a finished task leaves: a commit, where the user lets the engine commit, and no copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsd_fsm.cli.call import Call
from gsd_fsm.cli.planned import frozen_plan, has_changed, project_of, repository_of, values
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, is_planned

if TYPE_CHECKING:
    from gsd_fsm.repository.repo import Repository
    from gsd_fsm.results import Result


def commit_work(call: Call, journal: Journal, loop: Loop, name: str, result: Result) -> str | None:
    """The commit that holds this result: made now if the engine may, else the agent's own."""
    repository = repository_of(journal) if is_planned(loop) else None
    if repository is None:
        return None
    if values(journal)["commit"]:
        made = _commit(call, journal, loop, (name, result), repository)
        if made is not None:
            return made
    head = repository.head()
    last = next(reversed(loop.checkpoints.values()), None)
    return head if last is not None and head != last else None


def _commit(
    call: Call, journal: Journal, loop: Loop, done: tuple[str, Result], repository: Repository
) -> str | None:
    name, result = done
    from gsd_fsm.repository.messages import co_author, fix_message, task_message

    project = project_of(journal)
    trailer = co_author(call.caller.client)
    brief = result.details[:2_000]
    if name in loop.gaps:
        gap = loop.gaps[name]
        # An orphan is fixed in its parent: what the fix says it changed belongs to it too.
        paths = [*result.files, *([gap["file"]] if gap["file"] else ())]
        message = fix_message(loop.phase, name, gap["description"], brief, trailer)
        return repository.commit([project / path for path in paths], message)
    if has_changed(project, loop):
        return None  # what belongs to the task is no longer certain
    task = frozen_plan(project, loop, [name]).task(name)
    if task is None:
        return None
    paths = [*(file.path for file in task.files), *task.test_files]
    title = result.commit_message or task.title
    message = task_message(task.commit_type, loop.phase, task.number, title, brief, trailer)
    return repository.commit([project / path for path in paths], message)


def forget_copies(journal: Journal, loop: Loop, task_id: str) -> None:
    """Drop what a test-driven task had kept for the way back."""
    if loop.tasks[task_id]["phase"] is not None:
        from gsd_fsm.tdd import Copies

        Copies(journal.path, loop.id, task_id).drop()

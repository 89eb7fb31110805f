"""Tag the commits of a planned loop: before its first task, and after each task."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import CannotWrite, GsdError
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Effect
from gsd_fsm.engine.planned.plan import is_new

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Commit, Repository

# Where to look for the commits of a loop without a checkpoint.
_RECENT = "--max-count=1000"


def set_checkpoint(
    context: Context, loop: Loop, name: str, commit: str | None = None
) -> str | None:
    """Tag this commit, if it is part of the branch, else HEAD; record and return the tag.

    Return None if there is nothing to tag; raise CannotWrite if git or the journal refuses.
    """
    if not loop.is_planned or loop.phase is None or not context.settings()["checkpoints"]:
        return None
    from gsd_fsm.git.checkpoints import checkpoint_tag

    tag = checkpoint_tag(loop.phase, name)
    try:
        repository = context.repository
        found = repository.head() if repository else None
        if repository is None or found is None:
            return None
        if commit not in (None, found) and repository.contains(commit):
            found = repository.resolved(commit)
        repository.tag(tag, found)
        task = {"task": name} if name in loop.tasks else {}
        with context.writing(loop) as tx:
            tx.append("checkpoint", {"name": tag, "commit": found, **task}, by="cli")
    except GsdError as error:
        raise CannotWrite(
            f"checkpoint {tag} was not set: {error.message}", "Run: gsd-fsm resume"
        ) from error
    return tag


def try_checkpoint(
    context: Context, loop: Loop, name: str, commit: str | None = None
) -> str | None:
    """Set a checkpoint whose reason is already durable; a failure is only noted in `context`."""
    try:
        return set_checkpoint(context, loop, name, commit)
    except CannotWrite as error:
        context.notices.append(error.message)
        return None


def awaits_first_checkpoint(loop: Loop) -> bool:
    """Return whether nothing is left to decide before the first task, and `pre` is not set."""
    return loop.kind == "execute" and loop.is_active and is_new(loop)


# effects of a completed task


def finish_task(context: Context, loop: Loop, task_id: str) -> str | None:
    """Drop the TDD copies of a completed task and tag its commit; return the tag."""
    drop_copies(context, loop)
    return try_checkpoint(context, loop, task_id, loop.tasks[task_id].commit)


def finish_tasks(context: Context, loop: Loop) -> dict[str, str | None]:
    """Drop copies and set checkpoints that an interrupted call left; return the tags by task."""
    drop_copies(context, loop)
    missing = missing_checkpoints(context, loop)
    return {name: try_checkpoint(context, loop, name, it) for name, it in missing.items()}


def checkpoint_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the checkpoints of tasks that an interrupted call left out."""
    for name, commit in missing_checkpoints(context, loop).items():
        carry_out = partial(set_checkpoint, context, loop, name, commit)
        yield Effect(f"checkpoint of task {name}", carry_out)


def missing_checkpoints(context: Context, loop: Loop) -> dict[str, str]:
    """Return the tasks without a checkpoint whose commits are on the current branch.

    A tag is set before its event is appended, so the event proves the tag.
    """
    missing = tasks_without_checkpoint(loop)
    if not missing or not context.settings()["checkpoints"]:
        return {}
    repository = context.repository_or_none()
    here = {commit.id for commit in commits_since_start(repository, loop)} if repository else set()
    return {name: commit for name, commit in missing.items() if commit in here}


def tasks_without_checkpoint(loop: Loop) -> dict[str, str]:
    """Return the completed tasks of a live loop whose commits have no checkpoint."""
    if loop.kind != "execute" or not loop.is_planned or not loop.is_live or loop.phase is None:
        return {}
    tagged = set(loop.checkpoints.values())
    return {
        name: task.commit
        for name, task in loop.tasks.items()
        if task.status == "complete" and task.commit and task.commit not in tagged
    }


def commits_since_start(repository: Repository, loop: Loop) -> list[Commit]:
    """Return the commits since the loop's first checkpoint, else since its start; the last first."""
    head = repository.head()
    if head is None:
        return []
    first = next(iter(loop.checkpoints.values()), None)
    if first is not None and repository.has_commit(first):
        return repository.commits(f"^{first}", head)
    began = ms_of(loop.first_ts) // 1000
    recent = repository.commits(_RECENT, head)
    return [commit for commit in recent if commit.seconds >= began]


def drop_copies(context: Context, loop: Loop) -> None:
    """Drop the TDD copies of tasks that are not in progress."""
    from gsd_fsm.plans.tdd_files import Copies, tasks_with_copies

    for name in tasks_with_copies(context.gsd, loop.id):
        task = loop.tasks.get(name)
        in_progress = task and task.status in ("running", "checkpoint") and loop.is_live
        if task and not in_progress:
            Copies(context.gsd, loop.id, name).drop()

"""Tag the commits of a planned loop: before its first task, after each task, and at its end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import CannotWrite, GsdError
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Effect, Receipt, receipt

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Commit, Repository

# Where commits of a loop are looked for that has no checkpoint.
_RECENT = "--max-count=1000"


class Tagged(NamedTuple):
    """The tag that was set, None if git had nothing to tag; and why it could not be set."""

    tag: str | None = None
    warning: str = ""
    receipt: Receipt | None = None


def set_checkpoint(
    context: Context,
    loop: Loop,
    name: str,
    task: str | None = None,
    commit: str | None = None,
) -> Tagged:
    """Tag this commit, else the one that is checked out, and record that.

    The event that justifies the tag is already durable, so a failure is only a warning.
    """
    if not loop.is_planned or loop.phase is None or not context.settings()["checkpoints"]:
        return Tagged()
    from gsd_fsm.git.checkpoints import checkpoint_tag

    tag = checkpoint_tag(loop.phase, name)
    try:
        repository = context.repository()
        found = _commit_to_tag(repository, commit) if repository else None
        if repository is None or found is None:
            return Tagged()
        repository.tag(tag, found)
        data: dict[str, Any] = {"name": tag, "commit": found, **({"task": task} if task else {})}
        with context.transaction() as tx:
            own = tx.loops.by_id[loop.id]
            tx.append(own, "checkpoint", data, by="cli")
    except GsdError as error:
        return Tagged(None, f"checkpoint {tag} was not set: {error.message}")
    return Tagged(tag, "", receipt(tx, own))


def _commit_to_tag(repository: Repository, commit: str | None) -> str | None:
    """Return this commit if it is part of the current branch, else the one that is checked out."""
    head = repository.head()
    if commit in (None, head) or not repository.contains(commit):
        return head
    return repository.resolved(commit)


def set_first_checkpoint(context: Context, loop: Loop) -> Tagged:
    """Set the checkpoint `pre`, once nothing is left to decide before the first task."""
    if loop.kind != "execute" or not loop.is_active or not loop.is_planned or loop.checkpoints:
        return Tagged()
    if any(task.status != "pending" for task in loop.tasks.values()):
        return Tagged()
    return set_checkpoint(context, loop, "pre")


def set_missing_checkpoints(context: Context, loop: Loop) -> dict[str, Tagged]:
    """Set the checkpoints of tasks that an interrupted call left out; return them by task.

    A tag is set before its event is appended, so the event proves the tag. Only commits of the
    current branch are tagged.
    """
    return {
        name: set_checkpoint(context, loop, name, name, commit)
        for name, commit in missing_checkpoints(context, loop).items()
    }


def missing_checkpoints(context: Context, loop: Loop) -> dict[str, str]:
    """Return the tasks without a checkpoint whose commits are on the current branch."""
    missing = tasks_without_checkpoint(loop)
    if not missing or not context.settings()["checkpoints"]:
        return {}
    repository = context.repository_or_none()
    here = {commit.id for commit in commits_since_start(repository, loop)} if repository else set()
    return {name: commit for name, commit in missing.items() if commit in here}


def checkpoint_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the checkpoints of tasks that an interrupted call left out."""
    for name, commit in missing_checkpoints(context, loop).items():
        yield Effect(
            f"checkpoint of task {name}", partial(_require_tag, context, loop, name, commit)
        )


def _require_tag(context: Context, loop: Loop, name: str, commit: str) -> Receipt | None:
    tagged = set_checkpoint(context, loop, name, name, commit)
    if tagged.warning:
        raise CannotWrite(tagged.warning, "Run: gsd-fsm resume")
    return tagged.receipt


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
    from gsd_fsm.plans.tdd_files import Copies, tasks_with_copies

    for name in tasks_with_copies(context.gsd, loop.id):
        task = loop.tasks.get(name)
        in_progress = task and task.status in ("running", "checkpoint") and loop.is_live
        if task and not in_progress:
            Copies(context.gsd, loop.id, name).drop()

"""Save the files of a planned loop in tagged snapshots: before its first task, and after each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import CannotWrite, GsdError, Refused
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Effect
from gsd_fsm.engine.planned.plan import is_new

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Commit, Repository

NO_COMMITS = "the repository has no commits yet"
# Where to look for the commits of a loop without a checkpoint.
_RECENT = "--max-count=1000"


def set_checkpoint(
    context: Context, loop: Loop, name: str, commit: str | None = None
) -> str | None:
    """Tag a snapshot of the files, or this commit if it is an earlier one of the branch.

    Record and return the tag. Return None if none is wanted or there is no repository; raise
    CannotWrite if git or the journal refuses.
    """
    if not loop.is_planned or loop.phase is None or not context.settings()["checkpoints"]:
        return None
    from gsd_fsm.git.checkpoints import checkpoint_tag

    tag = checkpoint_tag(loop.phase, name)
    try:
        repository = context.repository
        if repository is None:
            return None
        data = checkpoint_data(context, repository, tag, commit)
        repository.tag(tag, data.get("snapshot") or data["commit"])
        task = {"task": name} if name in loop.tasks else {}
        with context.writing(loop) as tx:
            tx.append("checkpoint", {**data, **task}, by="cli")
    except GsdError as error:
        raise CannotWrite(
            f"checkpoint {tag} was not set: {error.message}", "Run: gsd-fsm resume"
        ) from error
    return tag


def checkpoint_data(
    context: Context, repository: Repository, tag: str, commit: str | None = None
) -> dict[str, str]:
    """Save the files for this tag; return the data of its event. Raise Refused without a commit.

    Note in `context` which files are left out.
    """
    from gsd_fsm.git.snapshots import take_snapshot

    head, branch = repository.head(), repository.branch()
    if head is None:
        raise Refused(NO_COMMITS, 'Run: git commit --allow-empty -m "Start"')
    data = {"name": tag, "commit": head, **({"branch": branch} if branch else {})}
    if commit and commit != head and repository.contains(commit):
        given = repository.resolved(commit)
        if given not in (None, head):
            return {**data, "commit": given}
    found = take_snapshot(repository, head, f"{tag}\n\nRestore it: gsd-fsm rollback {tag}")
    if found.left_out:
        context.notices.append(f"checkpoint {tag} leaves out {found.omission}")
    return {**data, "snapshot": found.commit}


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
    """Drop the TDD copies of a completed task and set its checkpoint; return the tag."""
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


def missing_checkpoints(context: Context, loop: Loop) -> dict[str, str | None]:
    """Return the tasks without a checkpoint, and their commits, which the current branch has.

    A tag is set before its event is appended, so the event proves the tag.
    """
    missing = tasks_without_checkpoint(loop)
    if not missing or not context.settings()["checkpoints"]:
        return {}
    repository = context.repository_or_none()
    if repository is None:
        return {}
    here = {None, *(commit.id for commit in commits_since_start(repository, loop))}
    return {name: commit for name, commit in missing.items() if commit in here}


def tasks_without_checkpoint(loop: Loop) -> dict[str, str | None]:
    """Return the completed tasks of a live loop without a checkpoint, and their commits.

    A task without a commit is one of them only if the loop has checkpoints at all.
    """
    if loop.kind != "execute" or not loop.is_planned or not loop.is_live or loop.phase is None:
        return {}
    tagged = set(loop.checkpoints.values())
    named = {tag.rpartition("/")[2] for tag in loop.checkpoints}
    return {
        name: task.commit
        for name, task in loop.tasks.items()
        if task.status == "complete"
        and (task.commit not in tagged if task.commit else named and not _is_in(name, named))
    }


def _is_in(task_id: str, named: set[str]) -> bool:
    """Return whether the tag of this task is one of those named."""
    if task_id in named:
        return True
    from gsd_fsm.git.checkpoints import ref_part

    return ref_part(task_id) in named


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


def recorded_commits(loop: Loop) -> dict[str, str]:
    """Return the commits of the complete tasks that have one."""
    return {
        name: task.commit
        for name, task in loop.tasks.items()
        if task.commit and task.status == "complete"
    }


def rewritten_tasks(context: Context, loop: Loop) -> list[str]:
    """Return the complete tasks whose recorded commit HEAD does not contain, in order.

    Their commits were rebased, amended or reset, or are on another branch. Without a repository
    there are none.
    """
    commits = recorded_commits(loop)
    repository = context.repository_or_none() if commits else None
    if repository is None:
        return []
    here = repository.contained(commits.values())
    return [name for name, commit in commits.items() if commit not in here]


def drop_copies(context: Context, loop: Loop) -> None:
    """Drop the TDD copies of tasks that are not in progress."""
    from gsd_fsm.plans.tdd_files import Copies, tasks_with_copies

    for name in tasks_with_copies(context.gsd, loop.id):
        task = loop.tasks.get(name)
        in_progress = task and task.status in ("running", "checkpoint") and loop.is_live
        if task and not in_progress:
            Copies(context.gsd, loop.id, name).drop()

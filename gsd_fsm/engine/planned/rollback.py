"""Roll back to a checkpoint: record it, then restore files and branch; a tag keeps what it leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound, Refused, UsageError
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import IGNORED
from gsd_fsm.core.system import GSD
from gsd_fsm.engine.context import Context, Effect, Receipt, one_at_a_time

if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Rollback
    from gsd_fsm.git.checkpoints import Checkpoint
    from gsd_fsm.git.repo import Repository
    from gsd_fsm.git.snapshots import Restoration, Snapshot

SHOWN = 10
# Marks a rollback that is not finished, in its work tree: first what it leaves, and then, once the
# files are restored, its target.
_UNDER_WAY = "refs/worktree/gsd-rollback"


class Step(NamedTuple):
    """A possible rollback: its target, the commits it leaves and the tasks it resets.

    `now` has the files before it; `uncommitted` are those of them that HEAD does not have. If
    `has_files`, the target has all files of its time, not only committed ones.
    """

    repository: Repository
    phase: str
    target: Checkpoint
    has_files: bool
    branch: str
    leaves: int
    subjects: list[str]
    loop: Loop | None
    reset: list[str]
    now: Snapshot
    uncommitted: list[str]
    files: Restoration

    @property
    def leaves_something(self) -> bool:
        return bool(self.leaves or self.files.changes)

    @property
    def is_needless(self) -> bool:
        return not self.leaves_something and not self.reset


class RolledBack(NamedTuple):
    """A rollback that was carried out; without a receipt if no live loop is of its phase."""

    step: Step
    left: str | None
    receipt: Receipt | None


def list_checkpoints(context: Context, phase: str | None) -> tuple[str, list[Checkpoint]]:
    """Return the name of the phase in tags, and its checkpoints, the newest last."""
    from gsd_fsm.git.checkpoints import checkpoints_of

    loops, repository = _surroundings(context)
    wanted = _phase(context, loops, None, phase)
    return wanted, checkpoints_of(repository, wanted)


def plan_rollback(context: Context, target: str, phase: str | None) -> Step:
    """Return the rollback to this checkpoint; raise Refused if it would lose something."""
    step = _planned(context, target, phase)
    _require_safety(step)
    return step


def _planned(context: Context, target: str, phase: str | None) -> Step:
    loops, repository = _surroundings(context)
    wanted = _phase(context, loops, target, phase)
    loop = _live_loop(context, loops, wanted)
    found = _find(repository, wanted, target)
    has_files = found.has_files(loops.by_id.values())
    return _step(repository, wanted, found, loop, has_files=has_files)


@one_at_a_time
def roll_back(context: Context, target: str, phase: str | None) -> RolledBack:
    """Roll back to this checkpoint: first the event, then files and branch.

    Raises Refused if it would lose something, CannotWrite if git fails after the event: then the
    same call finishes it.
    """
    from gsd_fsm.git.checkpoints import rollback_tag

    step = _planned(context, target, phase)
    if not step.is_needless:
        _require_permission(context)
        step = plan_rollback(context, target, phase)  # an earlier one may be finished by now
    if step.is_needless:
        return RolledBack(step, None, None)
    left = rollback_tag(step.phase, to_iso(now_ms())) if step.leaves_something else None
    if step.loop is None:
        if left is not None:
            _move_unrecorded(step, left)
        return RolledBack(step, left, None)
    with context.writing(step.loop) as tx:
        tx.append("checkpoint", _data(step, left))
    if tx.loop.rollback is not None:
        try:
            _restore(step.repository, tx.loop.rollback, step.target.files)
            _move_branch(step.repository, step.target.commit)
        except GsdError as error:
            raise CannotWrite(
                f"loop {tx.loop.id} records the rollback to {step.target.name}, "
                f"but it is not finished: {error.message}",
                "Fix the cause, then run the same command again.",
            ) from error
    return RolledBack(step, left, tx.receipt)


def _data(step: Step, left: str | None) -> dict[str, Any]:
    target, now = step.target, step.now
    data: dict[str, Any] = {"name": target.tag, "commit": target.commit, "reset": step.reset}
    if step.has_files:
        data["snapshot"] = target.files
    if left is not None:
        data.update(left=left, head=now.head, branch=step.branch)
        data.update({"kept": now.commit} if now.commit != now.head else {})
    return data


def rollback_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the rollback that was recorded and not carried out.

    It was carried out if its tag is there and its mark is not: the mark is set before the tag, and
    removed last.
    """
    rollback, repository = loop.rollback, context.repository_or_none()
    tag, commit = next(reversed(loop.checkpoints.items()))
    if repository is None or rollback is None or commit is None:
        return
    files = loop.snapshots.get(tag, commit)
    is_tagged = repository.resolved(f"refs/tags/{rollback.left}") == rollback.kept
    mark = repository.resolved(_UNDER_WAY) if is_tagged else None
    if is_tagged and mark not in (rollback.kept, files):
        return
    what = f"rollback to {tag.rpartition('/')[2]} ({commit[:7]}) on branch {rollback.branch}"
    has_files = mark == files
    finish = partial(_finish_move, repository, rollback, commit, files, has_files=has_files)
    yield Effect(what, finish)


def _finish_move(
    repository: Repository, rollback: Rollback, commit: str, files: str, *, has_files: bool
) -> None:
    """Carry out the rest of a recorded rollback; raise Refused if the branch was changed since."""
    if repository.branch() != rollback.branch:
        raise Refused(
            f"branch {rollback.branch} is not checked out", f"Run: git checkout {rollback.branch}"
        )
    if repository.head() not in (rollback.head, commit):
        raise Refused(f"branch {rollback.branch} has moved since", "Run the rollback again.")
    if not has_files:
        _restore(repository, rollback, files)
    _move_branch(repository, commit)


def _restore(repository: Repository, rollback: Rollback, files: str) -> None:
    """Tag what is left, then restore the files; can be repeated."""
    from gsd_fsm.git.snapshots import restore_files

    repository.set_ref(_UNDER_WAY, rollback.kept)
    repository.tag(rollback.left, rollback.kept)
    restore_files(repository, rollback.kept, files)
    repository.set_ref(_UNDER_WAY, files)


def _move_branch(repository: Repository, commit: str) -> None:
    repository.move_branch(commit)
    repository.drop_ref(_UNDER_WAY)


def _move_unrecorded(step: Step, left: str) -> None:
    """Tag what is left, then restore files and branch, where no live loop is concerned."""
    from gsd_fsm.git.snapshots import restore_files

    repository, target = step.repository, step.target
    repository.tag(left, step.now.commit)
    try:
        restore_files(repository, step.now.commit, target.files)
        repository.move_branch(target.commit)
    except GsdError as error:
        raise CannotWrite(
            f"the rollback is not finished: {error.message}. The state before it is kept as {left}",
            "Fix the cause, then run the same command again.",
        ) from error


def _require_permission(context: Context) -> None:
    """Refuse an agent without a message of the user: a rollback changes files of all live loops."""
    try:
        live = context.read(trusted=False).live()
    except NotFound:
        return
    for loop in live:
        context.require_human(loop, "roll back")
    if live:
        with context.transaction():
            pass  # trusted, writable, and without unfinished effects


def _surroundings(context: Context) -> tuple[Loops, Repository]:
    """Return loops and repository; tags can be used without a journal too."""
    from gsd_fsm.git.repo import Repository

    try:
        loops, repository = context.read(trusted=False), context.repository
    except NotFound:
        loops, repository = Loops(), Repository.around(Path(context.directory))
    if repository is None:
        raise NotFound("there is no git work tree here", "Run: git init")
    return loops, repository


def _phase(context: Context, loops: Loops, target: str | None, phase: str | None) -> str:
    """Return the phase, as tags name it."""
    from gsd_fsm.git.checkpoints import TAG, phase_part

    named = TAG.fullmatch(target or "")
    if named and phase and phase_part(phase) != named["phase"]:
        raise UsageError(f"{target} is not a checkpoint of phase {phase}", "Omit --phase.")
    if named:
        return named["phase"]
    if phase:
        return phase_part(phase)
    loop = context.loop_or_last(loops)
    if loop.phase is None:
        raise UsageError(f"loop {loop.id} has no phase", "Run: gsd-fsm rollback --phase N")
    return phase_part(loop.phase)


def _live_loop(context: Context, loops: Loops, phase: str) -> Loop | None:
    """Return the live loop of this phase, whose tasks a rollback resets."""
    from gsd_fsm.git.checkpoints import phase_part

    named = context.loop_or_last(loops).id if context.loop_id else None
    live = [
        loop
        for loop in loops.live()
        if loop.phase is not None and phase_part(loop.phase) == phase and named in (None, loop.id)
    ]
    return context.only_one(live)


def _find(repository: Repository, phase: str, target: str) -> Checkpoint:
    from gsd_fsm.git.checkpoints import checkpoint_named, checkpoints_of, ref_part

    known = {it.name: it for it in checkpoints_of(repository, phase)}
    found = checkpoint_named(repository, target)
    found = found or known.get(ref_part(target)) or known.get(ref_part(f"T{target}"))
    if found is None:
        names = f"Checkpoints of phase {phase}: {', '.join(known)}"
        hint = names if known else no_checkpoints(phase)
        raise Refused(f"phase {phase} has no checkpoint {target}", hint)
    return found


def no_checkpoints(phase: str) -> str:
    return f"Phase {phase} has no checkpoints."


def _step(
    repository: Repository, phase: str, target: Checkpoint, loop: Loop | None, *, has_files: bool
) -> Step:
    from gsd_fsm.git.checkpoints import lost_without, undone_by
    from gsd_fsm.git.snapshots import restoration, take_snapshot

    branch, head = repository.branch(), repository.head()
    if not target.contained or head is None:
        raise Refused(
            f"{target.name} ({target.commit[:7]}) is not part of "
            + (f"branch {branch}" if branch else "the current commit"),
            f"Run: git log --oneline HEAD..{target.tag}",
        )
    now = take_snapshot(repository, head, f"Before a rollback to {target.tag}")
    # Of an older version: whether the files that are not committed came later is not known.
    is_there = target.commit == head and not has_files
    if loop is None:
        reset = []
    elif is_there:  # an older version moved the branch first: it may have left tasks to reset
        reset = lost_without(repository, loop, head)
    else:
        reset = undone_by(repository, loop, target)
    way = f"{target.commit}..HEAD"
    newest = repository.commits(f"--max-count={SHOWN}", way)
    return Step(
        repository=repository,
        phase=phase,
        target=target,
        has_files=has_files,
        branch=branch or "HEAD",
        leaves=len(newest) if len(newest) < SHOWN else repository.count(way),
        subjects=[f"{commit.id[:7]} {commit.subject}" for commit in newest],
        loop=loop,
        reset=reset,
        now=now,
        uncommitted=[change.path for change in repository.changes(head, now.commit)],
        files=restoration(repository, now, now.commit if is_there else target.files),
    )


def _require_safety(step: Step) -> None:
    """Raise Refused if the rollback would lose something or cannot be carried out."""
    from gsd_fsm.git.snapshots import listed, require_unblocked, uncommitted

    if not step.leaves_something:
        return
    repository, target = step.repository, step.target
    repository.require_movable()
    if step.uncommitted and not step.has_files:
        raise uncommitted(step.uncommitted)
    staged = repository.staged_only()
    if staged:
        raise Refused(
            f"staged changes differ from the files, and no tag would keep them: {listed(staged)}",
            "Commit them, or run: git stash -u",
        )
    ours = [it.path for it in repository.changes("HEAD", target.commit) if _is_ours(it.path)]
    if ours:
        raise Refused(
            f"git tracks {', '.join(ours)}: a rollback would change the journal itself",
            f"Run: git rm --cached {' '.join(ours)}. Only later checkpoints can be rolled back to.",
        )
    require_unblocked(step.files)


def _is_ours(path: str) -> bool:
    from fnmatch import fnmatchcase

    folder, name = os.path.split(path)
    mine = any(fnmatchcase(name, pattern) for pattern in IGNORED)
    return mine and os.path.basename(folder) == GSD

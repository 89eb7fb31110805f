"""Roll back to a checkpoint: record it, then move the branch; what it leaves keeps a tag."""

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
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.engine.context import Context, Effect, Receipt, one_at_a_time

if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Rollback
    from gsd_fsm.git.checkpoints import Checkpoint
    from gsd_fsm.git.repo import Repository

SHOWN = 10
# Marks the commit that a rollback is about to leave; each work tree has its own.
_UNDER_WAY = "refs/worktree/gsd-rollback"


class Step(NamedTuple):
    """A possible rollback: its target, the commits it leaves and the tasks it resets."""

    repository: Repository
    phase: str
    target: Checkpoint
    branch: str
    leaves: int
    subjects: list[str]
    loop: Loop | None
    reset: list[str]

    @property
    def is_needless(self) -> bool:
        return not self.leaves and not self.reset


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
    loops, repository = _surroundings(context)
    wanted = _phase(context, loops, target, phase)
    loop = _live_loop(context, loops, wanted)
    return _step(repository, wanted, _find(repository, wanted, target), loop)


@one_at_a_time
def roll_back(context: Context, target: str, phase: str | None) -> RolledBack:
    """Roll back to this checkpoint: first the event, then git.

    Raises Refused if it would lose something, CannotWrite if git fails after the event: then the
    same call finishes it.
    """
    from gsd_fsm.git.checkpoints import rollback_tag

    step = plan_rollback(context, target, phase)
    if not step.is_needless:
        _require_permission(context)
        step = plan_rollback(context, target, phase)  # an earlier one may be finished by now
    if step.is_needless:
        return RolledBack(step, None, None)
    left = rollback_tag(step.phase, to_iso(now_ms())) if step.leaves else None
    if step.loop is None:
        _move_unrecorded(step, left)
        return RolledBack(step, left, None)
    data: dict[str, Any] = {"name": step.target.tag, "commit": step.target.commit}
    if left is not None:
        data.update(left=left, head=step.repository.head(), branch=step.branch)
    with context.writing(step.loop) as tx:
        tx.append("checkpoint", {**data, "reset": step.reset})
    if tx.loop.rollback is not None:
        try:
            _move(step.repository, tx.loop.rollback, step.target.commit)
        except GsdError as error:
            raise CannotWrite(
                f"loop {tx.loop.id} records the rollback to {step.target.name}, "
                f"but branch {step.branch} was not moved: {error.message}",
                "Fix the cause, then run the same command again.",
            ) from error
    return RolledBack(step, left, tx.receipt)


def rollback_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the rollback that was recorded and not carried out.

    It was carried out if its tag is there and its mark is not: the mark is set before the branch is
    moved, and removed afterwards.
    """
    rollback, repository = loop.rollback, context.repository_or_none()
    tag, commit = next(reversed(loop.checkpoints.items()))
    if repository is None or rollback is None or commit is None:
        return
    is_tagged = repository.resolved(f"refs/tags/{rollback.left}") == rollback.head
    if is_tagged and repository.resolved(_UNDER_WAY) != rollback.head:
        return
    what = f"rollback to {tag.rpartition('/')[2]} ({commit[:7]}) on branch {rollback.branch}"
    yield Effect(what, partial(_finish_move, repository, rollback, commit))


def _finish_move(repository: Repository, rollback: Rollback, commit: str) -> None:
    """Carry out a recorded rollback; raise Refused if the branch is no longer as it was."""
    if repository.branch() != rollback.branch:
        raise Refused(
            f"branch {rollback.branch} is not checked out", f"Run: git checkout {rollback.branch}"
        )
    head = repository.head()
    if head not in (rollback.head, commit):
        raise Refused(f"branch {rollback.branch} has moved since", "Run the rollback again.")
    if head != commit:
        _require_clean(repository)
    _move(repository, rollback, commit)


def _move(repository: Repository, rollback: Rollback, commit: str) -> None:
    """Tag the commit that is left, and move the branch; can be repeated."""
    repository.set_ref(_UNDER_WAY, rollback.head)
    repository.tag(rollback.left, rollback.head)
    _reset(repository, commit)
    repository.drop_ref(_UNDER_WAY)


def _move_unrecorded(step: Step, left: str | None) -> None:
    """Tag the commit that is left, and move the branch, where no live loop is concerned."""
    if left is None:
        return
    step.repository.tag(left)
    try:
        _reset(step.repository, step.target.commit)
    except GsdError:
        step.repository.untag(left)
        raise


def _reset(repository: Repository, commit: str) -> None:
    """Move the branch; a hook of git that fails after the move does not count."""
    try:
        if repository.head() != commit:
            repository.reset_to(commit)
    except GsdError:
        if repository.head() != commit:
            raise


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


def _step(repository: Repository, phase: str, target: Checkpoint, loop: Loop | None) -> Step:
    from gsd_fsm.git.checkpoints import lost_without, undone_by

    branch = repository.branch()
    if target.commit == repository.head():
        # An older version moved the branch first: it may have left tasks to reset.
        reset = lost_without(repository, loop, target.commit) if loop else []
        return Step(repository, phase, target, branch or "HEAD", 0, [], loop, reset)
    if branch is None:
        raise Refused("no branch is checked out (detached HEAD)", "Run: git checkout BRANCH")
    _require_safety(repository, target, branch)
    way = f"{target.commit}..HEAD"
    newest = repository.commits(f"--max-count={SHOWN}", way)
    subjects = [f"{commit.id[:7]} {commit.subject}" for commit in newest]
    reset = undone_by(repository, loop, target) if loop else []
    return Step(repository, phase, target, branch, repository.count(way), subjects, loop, reset)


def _require_safety(repository: Repository, target: Checkpoint, branch: str) -> None:
    if not target.contained:
        raise Refused(
            f"{target.name} ({target.commit[:7]}) is not part of branch {branch}",
            f"Run: git log --oneline {branch}..{target.tag}",
        )
    _require_clean(repository)
    ours = [path for path in repository.changes_to(target.commit) if _is_ours(path)]
    if ours:
        raise Refused(
            f"git tracks {', '.join(ours)}: a rollback would change the journal itself",
            f"Run: git rm --cached {' '.join(ours)}. Only later checkpoints can be rolled back to.",
        )
    repository.require_reset(target.commit)


def _require_clean(repository: Repository) -> None:
    dirty = repository.dirty()
    if dirty:
        named = clean(", ".join(dirty[:SHOWN]))
        more = f" and {len(dirty) - SHOWN} more" if len(dirty) > SHOWN else ""
        raise Refused(f"uncommitted changes: {named}{more}", "Commit them, or run: git stash -u")


def _is_ours(path: str) -> bool:
    from fnmatch import fnmatchcase

    folder, name = os.path.split(path)
    mine = any(fnmatchcase(name, pattern) for pattern in IGNORED)
    return mine and os.path.basename(folder) == GSD

"""`rollback`: go back to a checkpoint, in git and in the loop."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gsd_fsm.cli.call import Call, require_trust, verb
from gsd_fsm.cli.voice import counted
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound, Refused, UsageError
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.places import GSD, IGNORED
from gsd_fsm.core.sanitize import clean

if TYPE_CHECKING:
    from gsd_fsm.repository import Repository
    from gsd_fsm.repository.checkpoints import Checkpoint

SHOWN = 10


@click.command()
@click.argument("target", metavar="[TARGET]", required=False)
@click.option("--phase", metavar="N", help="The phase; default: that of the loop that is meant.")
@click.option("--yes", is_flag=True, help="Do it. Without this it is only told what would be done.")
@verb
def rollback(call: Call, *, target: str | None, phase: str | None, yes: bool) -> None:
    """Go back to a checkpoint: pre, post, a task (T01), or the whole name of its tag.

    Without TARGET the checkpoints are listed. Nothing is lost: what is left keeps a tag, and changes
    that are not committed are a reason to refuse. Tasks that are undone are pending again.
    """
    from gsd_fsm.repository import Repository

    world, project = _surroundings(call)
    repository = Repository.around(project)
    if repository is None:
        raise NotFound("there is no git work tree here", "a rollback needs git: git init")
    wanted = _phase(call, world, target, phase)
    if target is None:
        _list(call, repository, wanted)
        return
    loop = _live_loop(call, world, wanted)
    step = _Step.to(_find(repository, wanted, target), repository, loop)
    if step.is_needless():
        call.answer(step.facts(), f"Nothing to do: {step.target.name} is what is checked out.")
    elif yes:
        _carry_out(call, step, wanted)
    else:
        again = [call.command, "rollback", shlex.quote(target), "--yes"]
        again += [f"--phase {shlex.quote(phase)}"] if phase else []
        again += [f"--loop {call.loop_id}"] if call.loop_id else []
        call.answer(step.facts(), "\n".join([*step.lines(), f"→ {' '.join(again)}"]))


def _surroundings(call: Call) -> tuple[World, Path]:
    """The loops and the project; tags can be used also where the journal is gone."""
    try:
        journal, world = call.glance()
    except NotFound:
        return World(), Path(call.start_directory)
    return world, Path(journal.path).parent


def _phase(call: Call, world: World, target: str | None, phase: str | None) -> str:
    """The phase that is meant, as tags name it."""
    from gsd_fsm.repository.checkpoints import TAG, phase_part

    told = TAG.fullmatch(target or "")
    if told and phase and phase_part(phase) != told["phase"]:
        raise UsageError(f"{target} is not a checkpoint of phase {phase}", "leave --phase out")
    if told:
        return told["phase"]
    if phase:
        return phase_part(phase)
    loop = call.look_at(world)
    if loop.phase is None:
        raise UsageError(f"loop {loop.id} has no phase", "gsd-fsm rollback --phase N")
    return phase_part(loop.phase)


def _live_loop(call: Call, world: World, phase: str) -> Loop | None:
    """The live loop of this phase, whose tasks a rollback undoes."""
    from gsd_fsm.repository.checkpoints import phase_part

    named = call.look_at(world).id if call.loop_id else None
    found = [
        loop
        for loop in world.live()
        if loop.phase is not None and phase_part(loop.phase) == phase and named in (None, loop.id)
    ]
    own = [loop for loop in found if call.caller.session and loop.owner == call.caller.session]
    if len(found) > 1 and not own:
        names = ", ".join(f"{loop.id} ({loop.kind}, {loop.status})" for loop in found)
        raise UsageError(f"which loop? {names}", "name it: gsd-fsm --loop ID rollback …")
    return next(iter(own + found), None)


def _list(call: Call, repository: Repository, phase: str) -> None:
    from gsd_fsm.phase.name import plainly
    from gsd_fsm.repository.checkpoints import checkpoints_of

    found = checkpoints_of(repository, phase)
    width = max((len(it.name) for it in found), default=0)
    lines = [f"Checkpoints of phase {phase}, the newest last:" if found else _none(phase)]
    lines += [
        f"  {it.name:<{width}}  {it.commit[:7]}  {it.subject}"
        + ("" if it.contained else "  (not part of what is checked out)")
        for it in found
    ]
    facts = {"phase": plainly(phase), "checkpoints": [it._asdict() for it in found]}
    call.answer(facts, "\n".join(lines))


def _none(phase: str) -> str:
    return f"Phase {phase} has no checkpoints."


def _find(repository: Repository, phase: str, target: str) -> Checkpoint:
    from gsd_fsm.repository.checkpoints import checkpoint_named, checkpoints_of, ref_part

    known = {it.name: it for it in checkpoints_of(repository, phase)}
    found = (
        checkpoint_named(repository, target)
        or known.get(ref_part(target))
        or known.get(ref_part(f"T{target}"))
    )
    if found is None:
        hint = f"the checkpoints of phase {phase}: {', '.join(known)}" if known else _none(phase)
        raise Refused(f"phase {phase} has no checkpoint {target}", hint)
    return found


class _Step(NamedTuple):
    """What a rollback does, found out before anything is done."""

    repository: Repository
    target: Checkpoint
    branch: str
    leaves: int
    subjects: list[str]
    loop: Loop | None
    reset: list[str]

    @classmethod
    def to(cls, target: Checkpoint, repository: Repository, loop: Loop | None) -> _Step:
        """The way to this checkpoint; Refused where it would cost something."""
        from gsd_fsm.repository.checkpoints import lost_without, undone_by

        branch = repository.branch()
        if target.commit == repository.head():
            # Only what an earlier rollback could not journal is left to do.
            reset = lost_without(repository, loop, target.commit) if loop else []
            return cls(repository, target, branch or "HEAD", 0, [], loop, reset)
        if branch is None:
            raise Refused("no branch is checked out (detached HEAD)", "git checkout BRANCH")
        _require_safety(repository, target, branch)
        way = f"{target.commit}..HEAD"
        newest = repository.commits(f"--max-count={SHOWN}", way)
        subjects = [f"{commit.id[:7]} {commit.subject}" for commit in newest]
        reset = undone_by(repository, loop, target) if loop else []
        return cls(repository, target, branch, repository.count(way), subjects, loop, reset)

    def is_needless(self) -> bool:
        return not self.leaves and not self.reset

    def facts(self, *, done: bool = False, left: str | None = None) -> dict[str, Any]:
        return {
            "target": self.target.tag,
            "commit": self.target.commit,
            "leaves": self.leaves,
            "reset": self.reset,
            "done": done,
            "left": left,
        }

    def place(self) -> str:
        return f"{self.target.name} ({self.target.commit[:7]})"

    def lines(self) -> list[str]:
        """What would be done, for somebody who decides about it."""
        lines = []
        if self.leaves:
            lines.append(f"Branch {self.branch} would go back to {self.place()}.")
            lines.append(
                f"{counted(self.leaves, 'commit')} would be left, with a tag to find them:"
            )
            lines += [f"  {subject}" for subject in self.subjects]
            lines += [f"  … and {self.leaves - SHOWN} more"] if self.leaves > SHOWN else []
        if self.reset:
            lines.append(f"Tasks that would be pending again: {', '.join(self.reset)}.")
        return [*lines, "Nothing was changed yet."]

    def outcome(self, left: str | None) -> str:
        if left is None:
            return f"Branch {self.branch} was at {self.place()} already."
        commits = counted(self.leaves, "commit")
        return f"Branch {self.branch} is back at {self.place()}. {commits} left, kept as {left}."


def _require_safety(repository: Repository, target: Checkpoint, branch: str) -> None:
    if not target.contained:
        raise Refused(
            f"{target.name} ({target.commit[:7]}) is not part of branch {branch}",
            f"a rollback only goes back; see: git log --oneline {branch}..{target.tag}",
        )
    dirty = repository.dirty()
    if dirty:
        named = clean(", ".join(dirty[:SHOWN]))
        more = f" and {len(dirty) - SHOWN} more" if len(dirty) > SHOWN else ""
        raise Refused(f"not committed: {named}{more}", "commit them, or: git stash -u")
    ours = [path for path in repository.changes_to(target.commit) if _is_ours(path)]
    if ours:
        raise Refused(
            f"git tracks {', '.join(ours)}: going back would change the journal itself",
            "git rm --cached them; a rollback works for checkpoints that are set after that",
        )


def _is_ours(path: str) -> bool:
    from fnmatch import fnmatchcase

    folder, name = os.path.split(path)
    mine = any(fnmatchcase(name, pattern) for pattern in IGNORED)
    return mine and os.path.basename(folder) == GSD


def _carry_out(call: Call, step: _Step, phase: str) -> None:
    """Move, then journal; whatever can refuse is asked before the move."""
    _require_leave(call)
    left = _move(step, phase) if step.leaves else None
    said = step.outcome(left)
    facts = step.facts(done=True, left=left)
    if step.loop is None:
        call.answer(facts, f"{said} No live loop of phase {phase}: nothing was journalled.")
        return
    call.loop_id = step.loop.id
    data: dict[str, Any] = {"name": step.target.tag, "commit": step.target.commit}
    data.update({"left": left} if left else {}, reset=step.reset)
    try:
        journal, loop = call.append(
            lambda loop, _world, _now: [call.event("checkpoint", loop, data)]
        )
    except GsdError as error:
        back = f"; or go back: git merge --ff-only {left}" if left else ""
        raise CannotWrite(
            f"{said} But the journal could not be written: {error.message}",
            f"mend that, then run the same command again{back}",
        ) from error
    again = f" Pending again: {', '.join(step.reset)}." if step.reset else ""
    call.acknowledge(journal, loop, said + again, **facts)


def _require_leave(call: Call) -> None:
    """A rollback moves the ground under every live loop here, whatever phase it is of."""
    try:
        journal, world = call.glance()
    except NotFound:
        return
    for loop in world.live():
        needs_human(loop, call.event("checkpoint", loop, {}), "roll back")
    if world.live():
        journal.transact(lambda _world, _now: [], lambda world: require_trust(world, journal.path))


def _move(step: _Step, phase: str) -> str:
    """Tag what is left, and go back; the tag."""
    from gsd_fsm.repository.checkpoints import rollback_tag

    left = rollback_tag(phase, to_iso(now_ms()))
    step.repository.tag(left)
    try:
        step.repository.reset_to(step.target.commit)
    except GsdError:
        step.repository.untag(left)
        raise
    return left

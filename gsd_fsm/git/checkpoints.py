"""Name and find the git tags of checkpoints, and the tasks that a rollback undoes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from gsd_fsm.core.loop.state import Loop
from gsd_fsm.git.repo import Commit, Repository
from gsd_fsm.git.snapshots import is_snapshot
from gsd_fsm.plans.phase_name import phase_key

FIRST, LAST = "pre", "post"
ROLLBACKS = "gsd/rollback/"
TAG = re.compile("gsd/(?:checkpoint|rollback)/phase-(?P<phase>[^/]+)/(?P<name>[^/]+)")
_NOT_IN_A_REF = re.compile(r"[^A-Za-z0-9._-]+|^\.|\.(?=\.|$)|\.lock$")
_LONGEST = 64  # the limit of ids


class Checkpoint(NamedTuple):
    """A tag set by a loop, and the commit of the branch at that time; `contained` if HEAD has it.

    `snapshot`: the commit of the tag, if it has uncommitted changes besides.
    """

    name: str
    tag: str
    commit: str
    subject: str
    contained: bool
    snapshot: str | None

    @property
    def files(self) -> str:
        """Return the commit that has its files."""
        return self.snapshot or self.commit

    def has_files(self, loops: Iterable[Loop]) -> bool:
        """Return whether that commit has all files of its time, not only committed ones.

        A tag on a commit may be of an older version, which did not save files. A rollback leaves
        such a tag only if everything was committed.
        """
        is_left = self.tag.startswith(ROLLBACKS)
        recorded = any(loop.snapshots.get(self.tag) == self.commit for loop in loops)
        return self.snapshot is not None or is_left or recorded


def checkpoint_tag(phase: int | str, name: str) -> str:
    """Return the tag of a checkpoint: `pre`, `post`, or the id of a task."""
    return f"gsd/checkpoint/phase-{phase_part(phase)}/{ref_part(name)}"


def rollback_tag(part: str, moment: str) -> str:
    """Return the tag that keeps what a rollback at this time leaves."""
    return f"{ROLLBACKS}phase-{part}/{moment.replace('-', '').replace(':', '')}"


def is_rolled_back(repository: Repository, phase: int | str, moment: str) -> bool:
    """Return whether this phase was rolled back after this time."""
    part = phase_part(phase)
    tags = repository.tags(f"{ROLLBACKS}phase-{part}/*")
    return any(tag > rollback_tag(part, moment) for tag in tags)


def phase_part(phase: int | str) -> str:
    """Return the name of a phase in tags, the same for all spellings."""
    return ref_part(phase_key(phase) or str(phase))


def ref_part(text: str) -> str:
    """Return the text if it is valid in a ref, else a similar unique one."""
    safe = _NOT_IN_A_REF.sub("-", text)
    if safe == text and 0 < len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe[: _LONGEST - 9].strip('.-')}-{digest}".lstrip("-")


def checkpoints_of(repository: Repository, part: str) -> list[Checkpoint]:
    """Return the checkpoints of this phase, newest last."""
    return _newest_last(repository, f"gsd/checkpoint/phase-{part}/*")


def checkpoint_named(repository: Repository, tag: str) -> Checkpoint | None:
    """Return the checkpoint with this full tag name, or None."""
    found = _newest_last(repository, tag) if TAG.fullmatch(tag) else []
    return next((it for it in found if it.tag == tag), None)


def _newest_last(repository: Repository, pattern: str) -> list[Checkpoint]:
    tags = repository.tags(pattern)
    if not tags:
        return []
    tagged = _described(repository, tags.values())
    bases = {it.id: it.parents[0] for it in tagged.values() if is_snapshot(it)}
    commits = {**_described(repository, bases.values()), **tagged} if bases else tagged
    here = repository.contained(bases.get(sha, sha) for sha in tags.values())

    def age(it: Checkpoint) -> tuple[int, int, str]:
        # Order checkpoints of the same second, or of the same commit, as they were made.
        return tagged[it.files].seconds, {FIRST: 0, LAST: 2}.get(it.name, 1), it.name

    found = []
    for tag, sha in tags.items():
        base = bases.get(sha, sha)
        snapshot = sha if sha in bases else None
        name, subject = tag.rpartition("/")[2], commits[base].subject
        found.append(Checkpoint(name, tag, base, subject, base in here, snapshot))
    return sorted(found, key=age)


def _described(repository: Repository, shas: Iterable[str]) -> dict[str, Commit]:
    return {it.id: it for it in repository.commits("--no-walk=unsorted", *{*shas})}


def undone_by(repository: Repository, loop: Loop, target: Checkpoint) -> list[str]:
    """Return the complete tasks that a rollback to this checkpoint undoes, in order.

    For the first checkpoint these are all tasks, otherwise those with a later checkpoint, those
    whose commit it does not contain, and, if files are restored, those with neither.
    """
    names = list(loop.checkpoints)
    later = names[names.index(target.tag) + 1 :] if target.tag in names else []
    own = {name: checkpoint_tag(_phase(loop), name) for name in _complete(loop)}
    if target.name == FIRST:
        return list(own)
    undone = {*lost_without(repository, loop, target.commit)}
    undone |= {name for name, tag in own.items() if tag in later}
    if target.tag in loop.snapshots:
        undone |= {it for it in own if own[it] not in names and not loop.tasks[it].commit}
    return [name for name in own if name in undone]


def lost_without(repository: Repository, loop: Loop, commit: str) -> list[str]:
    """Return the complete tasks whose commit this one does not contain, in order."""
    lost = []
    for name in _complete(loop):
        own = checkpoint_tag(_phase(loop), name)
        known = loop.checkpoints.get(own) or loop.tasks[name].commit
        if known and not repository.contains(known, commit):
            lost.append(name)
    return lost


def _complete(loop: Loop) -> list[str]:
    return [name for name, task in loop.tasks.items() if task.status == "complete"]


def _phase(loop: Loop) -> int | str:
    return "" if loop.phase is None else loop.phase

"""Name and find the git tags of checkpoints, and the tasks that a rollback undoes."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from gsd_fsm.core.loop.state import Loop
from gsd_fsm.git.repo import Repository
from gsd_fsm.plans.phase_name import phase_key

FIRST, LAST = "pre", "post"
TAG = re.compile("gsd/(?:checkpoint|rollback)/phase-(?P<phase>[^/]+)/(?P<name>[^/]+)")
_NOT_IN_A_REF = re.compile(r"[^A-Za-z0-9._-]+|^\.|\.(?=\.|$)|\.lock$")
_LONGEST = 64  # the limit of ids


class Checkpoint(NamedTuple):
    """A tag set by a loop; `contained` if its commit is in HEAD."""

    name: str
    tag: str
    commit: str
    subject: str
    contained: bool


def checkpoint_tag(phase: int | str, name: str) -> str:
    """Return the tag of a checkpoint: `pre`, `post`, or the id of a task."""
    return f"gsd/checkpoint/phase-{phase_part(phase)}/{ref_part(name)}"


def rollback_tag(part: str, moment: str) -> str:
    """Return the tag that keeps the commits undone by a rollback at this time."""
    return f"gsd/rollback/phase-{part}/{moment.replace('-', '').replace(':', '')}"


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
    here = repository.tags(pattern, "--merged=HEAD") if repository.head() else {}
    commits = {it.id: it for it in repository.commits("--no-walk=unsorted", *{*tags.values()})}

    def age(it: Checkpoint) -> tuple[int, int, str]:
        # Order checkpoints of the same second, or of the same commit, as they were made.
        return commits[it.commit].seconds, {FIRST: 0, LAST: 2}.get(it.name, 1), it.name

    found = [
        Checkpoint(tag.rpartition("/")[2], tag, sha, commits[sha].subject, tag in here)
        for tag, sha in tags.items()
    ]
    return sorted(found, key=age)


def undone_by(repository: Repository, loop: Loop, target: Checkpoint) -> list[str]:
    """Return the complete tasks that a rollback to this checkpoint undoes, in order.

    For the first checkpoint these are all tasks, otherwise those with a later checkpoint and those
    whose commit it does not contain.
    """
    names = list(loop.checkpoints)
    later = names[names.index(target.tag) + 1 :] if target.tag in names else []
    own = {name: checkpoint_tag(_phase(loop), name) for name in _complete(loop)}
    lost = lost_without(repository, loop, target.commit)
    if target.name == FIRST:
        return list(own)
    return [name for name, tag in own.items() if tag in later or name in lost]


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

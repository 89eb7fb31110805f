"""Checkpoints: tags in git that a loop can go back to, and what going back undoes."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from gsd_fsm.core.loop.state import Loop
from gsd_fsm.git.repo import Repository
from gsd_fsm.phase.name import key_of

FIRST, LAST = "pre", "post"
TAG = re.compile("gsd/(?:checkpoint|rollback)/phase-(?P<phase>[^/]+)/(?P<name>[^/]+)")
_NOT_IN_A_REF = re.compile(r"[^A-Za-z0-9._-]+|^\.|\.(?=\.|$)|\.lock$")
_LONGEST = 64  # as ids have it


class Checkpoint(NamedTuple):
    """A tag that a loop has set, and whether its commit is part of what is checked out."""

    name: str
    tag: str
    commit: str
    subject: str
    contained: bool


def checkpoint_tag(phase: int | str, name: str) -> str:
    """The tag of a checkpoint: `pre`, `post`, or the id of the task it was set after."""
    return f"gsd/checkpoint/phase-{phase_part(phase)}/{ref_part(name)}"


def rollback_tag(part: str, moment: str) -> str:
    """The tag of what a rollback leaves, with its moment as the journal writes it."""
    return f"gsd/rollback/phase-{part}/{moment.replace('-', '').replace(':', '')}"


def phase_part(phase: int | str) -> str:
    """How tags name a phase: all names of one phase give the same."""
    return ref_part(key_of(phase) or str(phase))


def ref_part(text: str) -> str:
    """The text if git takes it as part of a ref, else something like it that no other text has."""
    safe = _NOT_IN_A_REF.sub("-", text)
    if safe == text and 0 < len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe[: _LONGEST - 9].strip('.-')}-{digest}".lstrip("-")


def checkpoints_of(repository: Repository, part: str) -> list[Checkpoint]:
    """All checkpoints of the phase that tags name so, the newest last."""
    return _newest_last(repository, f"gsd/checkpoint/phase-{part}/*")


def checkpoint_named(repository: Repository, tag: str) -> Checkpoint | None:
    """The checkpoint with this whole name."""
    found = _newest_last(repository, tag) if TAG.fullmatch(tag) else []
    return next((it for it in found if it.tag == tag), None)


def _newest_last(repository: Repository, pattern: str) -> list[Checkpoint]:
    tags = repository.tags(pattern)
    if not tags:
        return []
    here = repository.tags(pattern, "--merged=HEAD") if repository.head() else {}
    commits = {it.id: it for it in repository.commits("--no-walk=unsorted", *{*tags.values()})}

    def age(it: Checkpoint) -> tuple[int, int, str]:
        # Commits of one second, or one commit with several tags, in the order of the work.
        return commits[it.commit].seconds, {FIRST: 0, LAST: 2}.get(it.name, 1), it.name

    found = [
        Checkpoint(tag.rpartition("/")[2], tag, sha, commits[sha].subject, tag in here)
        for tag, sha in tags.items()
    ]
    return sorted(found, key=age)


def undone_by(repository: Repository, loop: Loop, target: Checkpoint) -> list[str]:
    """The complete tasks of a loop that a rollback to this checkpoint undoes, in their order.

    Before the first checkpoint that is all of them. Else it is those that had a checkpoint of their
    own after this one, and those whose work is not part of it.
    """
    names = list(loop.checkpoints)
    later = names[names.index(target.tag) + 1 :] if target.tag in names else []
    own = {name: checkpoint_tag(_phase(loop), name) for name in _complete(loop)}
    lost = lost_without(repository, loop, target.commit)
    if target.name == FIRST:
        return list(own)
    return [name for name, tag in own.items() if tag in later or name in lost]


def lost_without(repository: Repository, loop: Loop, commit: str) -> list[str]:
    """The complete tasks whose work is known not to be part of this commit, in their order."""
    lost = []
    for name in _complete(loop):
        own = checkpoint_tag(_phase(loop), name)
        known = loop.checkpoints.get(own) or loop.tasks[name].commit
        if known and not repository.is_within(known, commit):
            lost.append(name)
    return lost


def _complete(loop: Loop) -> list[str]:
    return [name for name, task in loop.tasks.items() if task.status == "complete"]


def _phase(loop: Loop) -> int | str:
    return "" if loop.phase is None else loop.phase

"""Save the files of the work tree as a commit, and restore them from one.

A snapshot has all tracked files, and the untracked ones that git does not ignore, as they are on
disk; files of gsd-fsm are in it as HEAD has them. It is made in an index of its own: branch, index
and stash of the user stay as they are, and no hook runs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.git.repo import NOTHING, Change, Commit, Repository, refused
from gsd_fsm.git.run import WITHOUT_HOOKS, WorkTree, output
from gsd_fsm.git.tree import (
    COMMIT,
    DIFFERING,
    FLAGS,
    UNREADABLE,
    UNTRACKED,
    WorkFiles,
    is_ours,
    new_paths,
    pairs,
)

LARGEST = 10 << 20  # bytes of an untracked file
SHOWN = 10
# A complete index, whatever the user's is: part of a split one would be written beside the user's.
WHOLE_INDEX = ("-c", "core.splitIndex=false")
# Commits need an identity, and the user may have none.
IDENTITY = ("-c", "user.name=gsd-fsm", "-c", "user.email=gsd-fsm@localhost")
AS_IT_IS = ("-c", "core.safecrlf=false")


class Snapshot(NamedTuple):
    """A commit that has the files; HEAD itself if they do not differ from it.

    `left_out`: the files that are not in it, each with the reason.
    """

    commit: str
    head: str
    left_out: dict[str, str]

    @property
    def omission(self) -> str:
        """Return which files are not in it, "" if none."""
        return listed(f"{path} ({why})" for path, why in self.left_out.items())


class Restoration(NamedTuple):
    """What restoring changes: files that it removes and writes, and what it cannot do.

    `submodules` stay as they are. Files `in_the_way` would be overwritten, and are not saved.
    """

    changes: list[Change]
    submodules: list[str]
    in_the_way: list[str]

    @property
    def removed(self) -> list[str]:
        return [change.path for change in self.changes if change.status == "D"]

    @property
    def restored(self) -> list[str]:
        return [change.path for change in self.changes if change.status != "D"]


def take_snapshot(repository: Repository, head: str, about: str) -> Snapshot:
    """Save the files; `about` becomes part of the message. Nothing refers to the commit yet."""
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-") as folder:
        scratch = _Scratch(repository, Path(folder), head)
        tree, left_out = scratch.save()
    # A branch may be moved to a snapshot. A tag on it would be taken for that snapshot, not for
    # the branch.
    if tree == scratch.tree and not is_snapshot(*repository.commits("--no-walk", head)):
        return Snapshot(head, head, left_out)
    message = f"{_subject(head)}\n\n{about}\n".encode("utf-8", "replace")
    command = (*IDENTITY, "commit-tree", "--no-gpg-sign", "-p", head, tree)
    made = output(repository.look(*command, stdin=message), refused)
    return Snapshot(made.decode("ascii").strip(), head, left_out)


def is_snapshot(commit: Commit) -> bool:
    """Return whether `take_snapshot` made this commit; then its parent was HEAD."""
    return len(commit.parents) == 1 and commit.subject == _subject(commit.parents[0])


def _subject(parent: str) -> str:
    return f"gsd-fsm snapshot on {parent}"


def restoration(repository: Repository, now: Snapshot, target: str) -> Restoration:
    """Return what it takes to make the files those of the commit `target`."""
    return _restoration(repository, now.commit, now.left_out, target)


def restore_files(repository: Repository, kept: str, target: str) -> None:
    """Make the files those of the commit `target`; can be repeated after an interruption.

    Raise Refused if a file would be lost: if it is neither as in the commit `kept` nor already
    as in `target`. Ignored files stay.
    """
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-") as folder:
        scratch = _Scratch(repository, Path(folder), "HEAD")
        now, left_out = scratch.save()
        found = _restoration(repository, now, left_out, target)
        since = {change.path for change in repository.changes(kept, now)}
        changed = [change.path for change in found.changes if change.path in since]
        if changed:
            raise uncommitted(changed)
        require_unblocked(found)
        if found.changes:
            scratch.check_out(now, found.changes)


def require_unblocked(found: Restoration) -> None:
    """Raise Refused if files would be overwritten that no snapshot has."""
    if found.in_the_way:
        raise Refused(
            f"these files would be overwritten, and no tag has them: {listed(found.in_the_way)}",
            "Move or remove them.",
        )


def uncommitted(paths: Iterable[str]) -> Refused:
    return Refused(f"uncommitted changes: {listed(paths)}", "Commit them, or run: git stash -u")


def listed(paths: Iterable[str]) -> str:
    """Return the first of these paths, and how many more there are."""
    names = list(paths)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return clean(", ".join(names[:SHOWN])) + more


def _restoration(
    repository: Repository, now: str, left_out: dict[str, str], target: str
) -> Restoration:
    differing = repository.changes(now, target)
    ours = {it.path: it.status for it in differing if is_ours(os.fsencode(it.path))}
    # Of our own files, those that are as in HEAD follow the branch.
    kept = set(repository.states(ours)) if ours else set()
    kept |= {it for it in ours if ours[it] == "A" and os.path.lexists(repository.top / it)}
    changes, submodules = [], []
    for change in differing:
        if change.is_submodule:
            submodules.append(change.path)
        elif change.path not in kept:
            changes.append(change)
    removed = {change.path for change in changes if change.status == "D"}
    in_the_way = [
        f"{change.path} ({left_out.get(change.path, 'ignored')})"
        for change in changes
        if change.path in left_out
        or (change.status == "A" and _is_blocked(repository.top, change.path, removed))
    ]
    return Restoration(changes, submodules, in_the_way)


def _is_blocked(top: Path, path: str, removed: set[str]) -> bool:
    """Return whether a file that is not to be removed is where this one is to be written."""
    for parent in Path(path).parents:
        place = top / parent
        if os.path.lexists(place) and not _is_folder(place):
            return parent.as_posix() not in removed
    place = top / path
    if not _is_folder(place):
        return os.path.lexists(place)
    inside = (it for it in place.rglob("*") if not _is_folder(it))
    return any(it.relative_to(top).as_posix() not in removed for it in inside)


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


class _Scratch:
    """An index of our own, which begins as a copy of the user's: then git knows the same files."""

    def __init__(self, repository: Repository, folder: Path, head: str) -> None:
        self.repository, self.folder = repository, folder
        self.index = folder / "index"
        asked = repository.look("rev-parse", "--git-path", "index", f"{head}^{{tree}}")
        users, self.tree = os.fsdecode(output(asked, refused)).removesuffix("\n").rsplit("\n", 1)
        tree = WorkTree(repository.program, repository.top, repository.algorithm)
        self.content = WorkFiles(tree, refused, self.index)
        if (repository.top / users).exists():
            # With its time, by which git knows recent changes.
            shutil.copy2(repository.top / users, self.index)

    def save(self) -> tuple[str, dict[str, str]]:
        """Write the files to the index and as a tree; return it, and the files left out."""
        content = self.content
        cached = ("diff-index", "--cached", "--raw", "--no-renames", self.tree)
        flags, differing, untracked, staged = content.lists(FLAGS, DIFFERING, UNTRACKED, cached)
        hidden = content.hidden(flags)
        suspects, gone = set(hidden), set[bytes]()
        for status, path in pairs(differing):
            if not is_ours(path):
                (gone if status == b"D" else suspects).add(path)
        ours = [Change.parsed(*it) for it in pairs(staged) if is_ours(it[1])]
        saved, left_out = [], {}
        for path in sorted(suspects | new_paths(untracked)):
            found = content.found(path)
            why = self._omission(path, found, is_new=path not in suspects)
            if why:
                left_out[os.fsdecode(path)] = why
            elif found is None:
                gone.add(path)
            else:
                saved.append(path)
        for bit in ("--no-assume-unchanged", "--no-skip-worktree"):
            self._update(hidden.intersection(saved), bit)
        nothing = "0" * len(self.tree)
        self._put((NOTHING, nothing, path) for path in gone)
        self._put((it.old_mode, it.old_id, os.fsencode(it.path)) for it in ours)
        self._update(saved, "--add", "--remove", "--replace")
        is_changed = staged or gone or saved
        return self._written() if is_changed else self.tree, left_out

    def _omission(self, path: bytes, found: bytes | None, *, is_new: bool) -> str:
        if found == UNREADABLE:
            return "cannot be read"
        if is_new and found and found.startswith(COMMIT):
            return "a repository of its own"
        if is_new and found is not None and self._size(path) > LARGEST:
            return f"over {LARGEST >> 20} MB"
        return ""

    def _size(self, path: bytes) -> int:
        try:
            return self.content.place(path).lstat().st_size
        except OSError:
            return 0  # it vanished meanwhile

    def _put(self, entries: Iterable[tuple[str, str, bytes]]) -> None:
        """Put entries into the index: mode, id and path."""
        lines = b"".join(b"%b %b\t%b\0" % (it[0].encode(), it[1].encode(), it[2]) for it in entries)
        if lines:
            self._save("update-index", "-z", "--index-info", stdin=lines)

    def _update(self, paths: Iterable[bytes], *options: str) -> None:
        names = b"".join(path + b"\0" for path in paths)
        if names:
            self._save("update-index", *options, "-z", "--stdin", stdin=names)

    def _written(self) -> str:
        return self._save("write-tree", "--missing-ok").strip()  # a partial clone lacks files

    def check_out(self, now: str, changes: Iterable[Change]) -> None:
        """Carry out these changes of the tree `now` in the work tree; git refuses to lose files."""
        # Files that were touched but not changed must not pass for changed.
        self.repository.look("update-index", "-q", "--refresh", index=self.index)
        before = self.folder / "before"
        shutil.copy2(self.index, before)
        # What is removed first: a file may be where a folder is to be, or the other way round.
        ordered = sorted(changes, key=lambda it: it.status != "D")
        self._put((it.mode, it.id, os.fsencode(it.path)) for it in ordered)
        target = self._written()
        before.replace(self.index)
        command = ("read-tree", "-m", "-u", "--no-recurse-submodules", now, target)
        self.repository.act(*WITHOUT_HOOKS, *WHOLE_INDEX, *command, index=self.index)

    def _save(self, *command: str, stdin: bytes = b"") -> str:
        command = (*WHOLE_INDEX, *AS_IT_IS, *command)
        done = self.repository.look(*command, stdin=stdin, index=self.index)
        return output(done, refused).decode("ascii")

"""List and digest the files of the work tree, so that evidence can become stale."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import CheckFailed, GsdError
from gsd_fsm.git.run import WorkTree, find_work_tree, output, read, read_all, remedy

FILE, COMMIT = b"10", b"16"  # first digits of git's modes; permissions are not content
LINK = FILE if os.name == "nt" else b"12"  # Windows may check links out as files
TO_BE_HASHED = b""
UNREADABLE = FILE + b" unreadable"
# Views change with every event; see core/views/write.py.
VIEW = re.compile(
    rb"(.*/)?\.loop/(workflow-state\.json|state\.json|PROGRESS\.md)(\.gsd-fsm\.new|\.before-[^/]*)?",
    re.DOTALL,
)
# What we write among the plans of another tool: the state, and the report of a round after its checks.
# Snapshots have these files: the state says more than a loop does.
AMONG_PLANS = re.compile(
    rb"(.*/)?\.opti-gsd/"
    rb"(state\.json(\.before-[^/]*)?|plans/(.*/)?(VERIFICATION(\.agent)?\.md|verification\.json))",
    re.DOTALL,
)
# What git knows about the files: the index, its flags, what differs from it, what it lacks.
INDEXED = ("ls-files", "-s", "-v")
FLAGS = ("ls-files", "-v")
DIFFERING = ("diff-files", "--name-status", "--ignore-submodules=dirty")
UNTRACKED = ("ls-files", "-o", "--exclude-standard")
KEEPS_CRLF = re.compile(rb"i/(crlf|mixed) +w/\S* +attr/(text=auto( eol=\w+)?)? *")


class Content(NamedTuple):
    """The content of a work tree: a digest of everything, and kind and id of each file, by path."""

    tree: str
    files: dict[bytes, bytes]

    def changed_since(self, before: Content) -> list[str]:
        """Return the paths that were added, changed or removed, relative to the work tree."""
        changed = {path for path, _ in self.files.items() ^ before.files.items()}
        return sorted(map(os.fsdecode, changed))


def read_content(root: Path) -> Content | None:
    """Return the content of all files around `root` that git does not ignore.

    The same content has the same digest, staged, committed or neither. `.gsd/`, views of loops, and
    what gsd-fsm writes into `.opti-gsd/` during a phase are left out. Return None without git or a
    work tree. Nothing is written.
    """
    tree = find_work_tree(root, _failed)
    if tree is None:
        return None
    entries = WorkFiles(tree).entries()
    files = {path: entry for path, entry in entries.items() if not AMONG_PLANS.fullmatch(path)}
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(b"%b\t%b\0" % (files[path], path))
    return Content(digest.hexdigest()[:16], files)


class WorkFiles:
    """The files of a work tree that git does not ignore, without those of gsd-fsm.

    They are compared with the user's index, or with this one.
    """

    def __init__(
        self,
        tree: WorkTree,
        error: Callable[[str], GsdError] | None = None,
        index: Path | None = None,
    ) -> None:
        self.program, self.top, self.algorithm = tree
        self.error = error or _failed
        self.index = index

    def lists(self, *commands: tuple[str, ...]) -> list[list[bytes]]:
        """Return the records that each of these commands prints; they run at the same time."""
        done = read_all(self.program, self.top, *((*it, "-z") for it in commands), index=self.index)
        return [output(it, self.error).split(b"\0")[:-1] for it in done]

    def entries(self) -> dict[bytes, bytes]:
        """Return kind and id of each file that is included, by path."""
        indexed, differing, untracked = self.lists(INDEXED, DIFFERING, UNTRACKED)
        entries, suspects = self.compared(indexed, differing)
        files = []
        for path in sorted(suspects | new_paths(untracked)):
            found = self.found(path)
            if found == TO_BE_HASHED:
                files.append(path)
            elif found:
                entries[path] = found
            else:
                entries.pop(path, None)
        changed = self.changed() if entries.keys() & files else {}
        files = [path for path in files if path not in entries or path in changed]
        for keeps_crlf, options in ((False, ()), (True, ("--no-filters",))):
            chosen = [path for path in files if changed.get(path, False) == keeps_crlf]
            entries.update(self.hashed(chosen, *options))
        return {path: entry for path, entry in entries.items() if entry}

    def compared(
        self, indexed: list[bytes], differing: list[bytes]
    ) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the entries of the index, and the paths that may differ on disk."""
        entries: dict[bytes, bytes] = {}
        suspects: set[bytes] = set()
        for record in indexed:
            facts, path = record.split(b"\t", 1)
            tag, mode, blob, stage = facts.split(b" ")
            if is_ours(path + b"/" if mode.startswith(COMMIT) else path):
                continue
            if stage != b"0" or self.is_hidden(tag, path):
                suspects.add(path)
            else:
                entries[path] = b"%b %b" % (LINK if mode == b"120000" else mode[:2], blob)
        for status, path in pairs(differing):
            if status == b"D":  # trust git: behind a symbolic link the file would seem to exist
                entries.pop(path, None)
            elif path in entries:
                suspects.add(path)
        return entries, suspects

    def hidden(self, flags: list[bytes]) -> set[bytes]:
        """Return the files that git was told not to look at."""
        tagged = (it.split(b" ", 1) for it in flags if not it.startswith(b"H"))
        return {path for tag, path in tagged if self.is_hidden(tag, path) and not is_ours(path)}

    def is_hidden(self, tag: bytes, path: bytes) -> bool:
        """Return whether git was told not to look at this file, by the tag of `ls-files -v`.

        Lower case is assume-unchanged, S is skip-worktree, where a file may be missing on purpose.
        """
        if tag in b"Ss":
            return os.path.lexists(self.place(path))
        return tag.islower()

    def place(self, path: bytes) -> Path:
        return self.top / os.fsdecode(path)

    def found(self, path: bytes) -> bytes | None:
        """Return the current entry of a path; None if git would not track it."""
        place = self.place(path)
        try:
            mode = place.lstat().st_mode
            if stat.S_ISLNK(mode):
                target = os.fsencode(place.readlink()).replace(os.sep.encode(), b"/")
                blob = b"blob %d\0%b" % (len(target), target)
                hashed = hashlib.new(self.algorithm, blob, usedforsecurity=False)
                return b"%b %b" % (LINK, hashed.hexdigest().encode())
            if stat.S_ISDIR(mode):
                return self.commit(place / ".git") if os.path.lexists(place / ".git") else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return UNREADABLE
        if not stat.S_ISREG(mode):
            return None  # opening a pipe or a device could block
        return TO_BE_HASHED if os.access(place, os.R_OK) else UNREADABLE

    def commit(self, repository: Path) -> bytes:
        where = f"--git-dir={repository}"
        done = read(self.program, self.top, where, "rev-parse", "--verify", "-q", "HEAD")
        return b"%b %b" % (COMMIT, b"unborn" if done.returncode else done.stdout.strip())

    def changed(self) -> dict[bytes, bool]:
        """Return the tracked files whose content changed, and whether each keeps its CRLF.

        Git does not convert a file whose blob has CRLF. hash-object ignores the index and would
        convert it, so that staging would seem to change the content.
        """
        (listed,) = self.lists(("ls-files", "-m", "--eol"))
        return {
            path: bool(KEEPS_CRLF.fullmatch(facts))
            for facts, path in (it.split(b"\t", 1) for it in listed)
        }

    def hashed(self, paths: list[bytes], *options: str) -> dict[bytes, bytes]:
        """Return the entries of files; empty for a file that vanishes meanwhile."""
        entries: dict[bytes, bytes] = {}
        tries = 3
        while paths:
            command = ("hash-object", "--stdin-paths", *options)
            done = read(self.program, self.top, *command, stdin=b"".join(map(_quoted, paths)))
            ids = done.stdout.splitlines()
            entries.update(zip(paths, (b"%b %b" % (FILE, it) for it in ids), strict=False))
            paths = paths[len(ids) :]
            if not (paths and done.returncode):
                break
            found = self.found(paths[0])  # git stopped at the first file it could not hash
            if found != TO_BE_HASHED:
                entries[paths.pop(0)] = found or b""
            elif tries:
                tries -= 1  # it may have been rewritten meanwhile
            else:
                output(done, self.error)
        return entries


def is_ours(path: bytes) -> bool:
    """Return whether gsd-fsm itself may write this file: it is in `.gsd/`, or a view."""
    return b"/.gsd/" in b"/" + path or VIEW.fullmatch(path) is not None


def pairs(fields: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the facts about each path of a comparison, and the path."""
    return zip(fields[::2], fields[1::2], strict=True)


def new_paths(untracked: list[bytes]) -> set[bytes]:
    """Return the untracked files and nested repositories that git lists."""
    return {
        path.rstrip(b"/") for path in untracked if not is_ours(path)
    }  # a repository has a slash


def _quoted(path: bytes) -> bytes:
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        path = path.replace(plain, escaped)
    return b'"%b"\n' % path


def _failed(message: str) -> CheckFailed:
    return CheckFailed(f"git failed: {message}", remedy(message))

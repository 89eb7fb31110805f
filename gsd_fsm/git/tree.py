"""List and digest the files of the work tree, so that evidence can become stale."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from gsd_fsm.core.errors import CheckFailed, GsdError
from gsd_fsm.core.project import IGNORED
from gsd_fsm.core.system import GSD
from gsd_fsm.git.run import (
    WorkTree,
    find_work_tree,
    output,
    read,
    read_all,
    remedy,
    work_tree_around,
)

# Kinds of entries: the first digits of git's modes, and whether a file is executable.
FILE, COMMIT = b"10", b"16"
# Windows has no executable bit, and may check links out as files.
EXECUTABLE, LINK = (FILE, FILE) if os.name == "nt" else (b"10x", b"12")
KINDS = {b"100644": FILE, b"100755": EXECUTABLE, b"120000": LINK, b"160000": COMMIT}
TO_BE_HASHED = (FILE, EXECUTABLE)
UNREADABLE = FILE + b" unreadable"
DEEPEST = 10  # repositories inside each other
# Views change with every event; see core/views/write.py.
VIEW_NAME = (
    rb"\.loop/(workflow-state\.json|state\.json|PROGRESS\.md)(\.gsd-fsm\.new|\.before-[^/]*)?"
)
VIEW = re.compile(rb"(.*/)?" + VIEW_NAME, re.DOTALL)
# What we write among the plans of another tool: the state, and the report of a round after its checks.
# Snapshots have these files: the state says more than a loop does.
AMONG_PLANS = (
    rb"\.opti-gsd/"
    rb"(state\.json(\.before-[^/]*)?|plans/(.*/)?(VERIFICATION(\.agent)?\.md|verification\.json))"
)
# What we write into the `.gsd/` of any project.
STATE = (*IGNORED, "STATE.md", "STATE.md.gsd-fsm.new")
IN_GSD = "|".join(re.escape(name).replace(r"\*", "[^/]*") for name in STATE).encode("ascii")
WRITTEN = re.compile(rb"(.*/)?(%b|%b|\.gsd/(%b))" % (VIEW_NAME, AMONG_PLANS, IN_GSD), re.DOTALL)
# What git knows about the files: the index, its flags, what differs from it, what it lacks, and
# whether the bits of the files on disk mean something.
INDEXED = ("ls-files", "-s", "-v")
ORDINARY = b"H 100644 "  # begins the records of plain files without a flag or a conflict
FLAGS = ("ls-files", "-v")
DIFFERING = ("diff-files", "--name-status", "--ignore-submodules=dirty")
UNTRACKED = ("ls-files", "-o", "--exclude-standard")
FILE_MODE = ("config", "--type=bool", "--default=true", "--get", "core.fileMode")
KEEPS_CRLF = re.compile(rb"i/(crlf|mixed) +w/\S* +attr/(text=auto( eol=\w+)?)? *")


class Content:
    """The content of the work tree at `top`: kind and id of each file, by path."""

    def __init__(self, files: dict[bytes, bytes], top: Path) -> None:
        self.files, self.top = files, top

    @cached_property
    def tree(self) -> str:
        """The digest of everything."""
        lines = (b"%b\t%b\0" % (self.files[path], path) for path in sorted(self.files))
        return hashlib.sha256(b"".join(lines)).hexdigest()[:16]

    def changed_since(self, before: Content) -> list[str]:
        """Return the paths that were added, changed or removed, relative to the work tree."""
        if self.files == before.files:
            return []
        changed = {path for path, _ in self.files.items() ^ before.files.items()}
        return sorted(map(os.fsdecode, changed))


def read_content(root: Path) -> Content | None:
    """Return the content of all files around `root` that git does not ignore.

    The same content has the same digest, staged, committed or neither. Files of submodules and
    nested repositories belong to it. `root`/.gsd, views of loops, and what gsd-fsm writes into any
    other `.gsd/`, or into `.opti-gsd/` during a phase, are left out. Return None without git or a
    work tree. Nothing is written.
    """
    tree = find_work_tree(root, _failed)
    if tree is None:
        return None
    return Content(ContentFiles(tree, own=_own_gsd(tree.top, root)).entries(), tree.top)


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
        whole = [(command, "-z", *options) for command, *options in commands]
        done = read_all(self.program, self.top, *whole, index=self.index)
        return [output(it, self.error).split(b"\0")[:-1] for it in done]

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
        """Return the current entry of a path; None if git would not track it.

        It is the kind alone for regular files and for repositories.
        """
        place = self.place(path)
        try:
            mode = place.lstat().st_mode
            if stat.S_ISLNK(mode):
                target = os.fsencode(place.readlink()).replace(os.sep.encode(), b"/")
                blob = b"blob %d\0%b" % (len(target), target)
                hashed = hashlib.new(self.algorithm, blob, usedforsecurity=False)
                return b"%b %b" % (LINK, hashed.hexdigest().encode())
            if stat.S_ISDIR(mode):
                return COMMIT if os.path.lexists(place / ".git") else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return UNREADABLE
        if not stat.S_ISREG(mode):
            return None  # opening a pipe or a device could block
        kind = EXECUTABLE if mode & stat.S_IXUSR else FILE
        return kind if os.access(place, os.R_OK) else UNREADABLE


class ContentFiles(WorkFiles):
    """The files that are content, also those of repositories among them.

    `own` is the directory that is left out, `prefix` the path of this work tree; both are relative
    to the outermost one.
    """

    def __init__(
        self, tree: WorkTree, own: bytes | None = None, prefix: bytes = b"", depth: int = 0
    ) -> None:
        super().__init__(tree)
        self.own, self.prefix, self.depth = own, prefix, depth

    def is_left_out(self, path: bytes) -> bool:
        whole = self.prefix + path
        return (self.own is not None and whole.startswith(self.own)) or is_written(whole)

    def entries(self) -> dict[bytes, bytes]:
        """Return kind and id of each file, by path."""
        indexed, differing, untracked = self.lists(INDEXED, DIFFERING, UNTRACKED)
        entries, suspects = self.compared(indexed, differing)
        kinds, repositories = dict[bytes, bytes](), []
        suspects |= new_paths(untracked, self.is_left_out)
        for path in sorted(suspects):
            found = self.found(path)
            if found in TO_BE_HASHED:
                kinds[path] = found if self.has_modes else _staged_kind(entries.get(path, FILE))
            elif found == COMMIT:
                repositories.append(path)
                entries.pop(path, None)
            elif found:
                entries[path] = found
            else:
                entries.pop(path, None)
        entries.update(self.changed(kinds, entries))
        for path in suspects:
            if b" " not in entries.get(path, b" "):
                del entries[path]
        for path in repositories:
            entries.update(self.nested(path))
        return entries

    @cached_property
    def has_modes(self) -> bool:
        """Whether the bits of the files on disk mean something."""
        (bit,) = self.lists(FILE_MODE)
        return bit == [b"true"]

    def compared(
        self, indexed: list[bytes], differing: list[bytes]
    ) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the entries of the index, and the paths that may differ on disk.

        Entries whose id says nothing have their kind alone.
        """
        entries = self.ordinary(indexed)
        suspects: set[bytes] = set()
        for record in indexed:
            if record.startswith(ORDINARY):
                continue
            facts, path = record.split(b"\t", 1)
            tag, mode, blob, stage = facts.split(b" ")
            kind = KINDS.get(mode, FILE)
            if self.is_left_out(path + b"/" if kind == COMMIT else path):
                continue
            if stage != b"0":
                if stage == b"2" or path not in entries:  # as `git add` chooses the mode
                    entries[path] = kind
                suspects.add(path)
            elif kind == COMMIT:
                entries[path] = b"%b %b" % (kind, blob)
                suspects |= self.inside(path)
            elif self.is_hidden(tag, path):
                entries[path] = kind
                suspects.add(path)
            else:
                entries[path] = b"%b %b" % (kind, blob)
        for status, path in pairs(differing):
            if status == b"D":  # trust git: behind a symbolic link the file would seem to exist
                entries.pop(path, None)
            elif path in entries:
                suspects.add(path)
        return entries, suspects

    def ordinary(self, indexed: list[bytes]) -> dict[bytes, bytes]:
        """Return the entries of plain files that git looks at: nearly all, so do little for each."""
        begin = len(ORDINARY)
        end = begin + 2 * hashlib.new(self.algorithm, usedforsecurity=False).digest_size
        entries = {
            it[end + 3 :]: b"10 " + it[begin:end] for it in indexed if it.startswith(ORDINARY)
        }
        for path in [it for it in entries if b".gsd/" in it or b".loop/" in it or self.prefix]:
            if self.is_left_out(path):  # others have none of these names
                del entries[path]
        return entries

    def inside(self, path: bytes) -> set[bytes]:
        """Return the repository of a submodule, or else the files in its directory.

        Git never lists those. There are none if the submodule is not checked out.
        """
        place = self.place(path)
        if place.is_symlink() or not place.is_dir():
            return set()
        if os.path.lexists(place / ".git"):
            return {path}
        found = set()
        for it in _listed(place):
            below = b"%b/%b" % (path, os.fsencode(it.name))
            if it.is_dir(follow_symlinks=False):
                found |= self.inside(below)
            elif not self.is_left_out(below):
                found.add(below)
        return found

    def nested(self, path: bytes) -> dict[bytes, bytes]:
        """Return the entries of a repository among the files; its commits are not content.

        Another work tree of this repository has none: it is work on its own.
        """
        place = self.place(path)
        if common_directory(place) == common_directory(self.top):
            return {}
        if self.depth == DEEPEST:
            raise CheckFailed(
                f"more than {DEEPEST} git repositories inside each other: {place}",
                "Ignore or remove the innermost one.",
            )
        tree = work_tree_around(self.program, place, self.error)
        if tree is None or not tree.top.samefile(place):
            raise CheckFailed(
                f"not the work tree of a git repository: {place}", f"Repair {place / '.git'}."
            )
        files = ContentFiles(tree, self.own, self.prefix + path + b"/", self.depth + 1)
        return {b"%b/%b" % (path, name): entry for name, entry in files.entries().items()}

    def changed(self, kinds: dict[bytes, bytes], entries: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the entries of those files, given by kind, that are not as in the index."""
        known = {path for path in kinds if b" " in entries.get(path, b"")}
        modified = self.modified() if known else {}
        found = {}
        for keeps_crlf, options in ((False, ()), (True, ("--no-filters",))):
            chosen = {
                path: kind
                for path, kind in kinds.items()
                if (path not in known or path in modified)
                and modified.get(path, False) == keeps_crlf
            }
            found.update(self.hashed(chosen, *options))
        return found

    def modified(self) -> dict[bytes, bool]:
        """Return the tracked files whose content changed, and whether each keeps its CRLF.

        Git does not convert a file whose blob has CRLF. hash-object ignores the index and would
        convert it, so that staging would seem to change the content.
        """
        (listed,) = self.lists(("ls-files", "-m", "--eol"))
        return {
            path: bool(KEEPS_CRLF.fullmatch(facts))
            for facts, path in (it.split(b"\t", 1) for it in listed)
        }

    def hashed(self, kinds: dict[bytes, bytes], *options: str) -> dict[bytes, bytes]:
        """Return the entries of files, given by kind; empty for a file that vanishes meanwhile."""
        entries: dict[bytes, bytes] = {}
        paths, tries = [*kinds], 3
        while paths:
            command = ("hash-object", "--stdin-paths", *options)
            done = read(self.program, self.top, *command, stdin=b"".join(map(_quoted, paths)))
            ids = done.stdout.splitlines()
            for path, it in zip(paths, ids, strict=False):
                entries[path] = b"%b %b" % (kinds[path], it)
            paths = paths[len(ids) :]
            if not (paths and done.returncode):
                break
            found = self.found(paths[0])  # git stopped at the first file it could not hash
            if found not in TO_BE_HASHED:
                entries[paths.pop(0)] = found or b""
            elif tries:
                tries -= 1  # it may have been rewritten meanwhile
            else:
                output(done, self.error)
        return entries


def is_ours(path: bytes) -> bool:
    """Return whether gsd-fsm itself may write this file: it is in `.gsd/`, or a view."""
    return b"/.gsd/" in b"/" + path or VIEW.fullmatch(path) is not None


def is_written(path: bytes) -> bool:
    """Return whether gsd-fsm writes a file of this name while a loop runs."""
    return WRITTEN.fullmatch(path) is not None


def common_directory(top: Path) -> str:
    """Return the git directory that the work tree at `top` shares with others, "" if unreadable."""
    git = top / ".git"
    try:
        if git.is_dir():
            return os.path.realpath(git)
        own = top / os.fsdecode(git.read_bytes()).removeprefix("gitdir: ").rstrip("\n")
        shared = own / "commondir"
        return os.path.realpath(own / shared.read_text().strip() if shared.is_file() else own)
    except (OSError, ValueError):
        return ""


def pairs(fields: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the facts about each path of a comparison, and the path."""
    return zip(fields[::2], fields[1::2], strict=True)


def new_paths(untracked: list[bytes], is_left_out: Callable[[bytes], bool] = is_ours) -> set[bytes]:
    """Return the untracked files and nested repositories that git lists."""
    return {
        path.rstrip(b"/") for path in untracked if not is_left_out(path)
    }  # a repository has a slash


def _own_gsd(top: Path, root: Path) -> bytes | None:
    """Return the path of `root`/.gsd in the work tree, with a slash."""
    place, real = Path(os.path.realpath(root)) / GSD, Path(os.path.realpath(top))
    inside = place.is_relative_to(real)
    return os.fsencode(place.relative_to(real).as_posix()) + b"/" if inside else None


def _staged_kind(entry: bytes) -> bytes:
    """Return the kind that staging a regular file keeps where git ignores the bit on disk."""
    return EXECUTABLE if entry.split(b" ")[0] == EXECUTABLE else FILE


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []  # git skips it as well


def _quoted(path: bytes) -> bytes:
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        path = path.replace(plain, escaped)
    return b'"%b"\n' % path


def _failed(message: str) -> CheckFailed:
    return CheckFailed(f"git failed: {message}", remedy(message))

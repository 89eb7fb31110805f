"""The files of a project: which there are, and their content."""

from __future__ import annotations

import os
import posixpath
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from gsd_fsm.documents.read import Unreadable, locate_inside, open_to_read, read_inside

MOST_BYTES = 1 << 20
MOST_FILES = 50_000
_DEEPEST = 24
# Directories of installed programs and of results: nobody edits what they hold.
INSTALLED = frozenset({
    ".bundle", ".direnv", ".eggs", ".git", ".gsd", ".nox", ".pixi", ".pnpm", ".pnpm-store", ".tox",
    ".venv", ".yarn", "__pycache__", "bower_components", "node_modules", "site-packages", "venv",
})  # fmt: skip
BUILT = frozenset({
    ".cache", ".gradle", ".hg", ".hypothesis", ".idea", ".mypy_cache", ".next", ".nuxt", ".nyc_output",
    ".parcel-cache", ".pytest_cache", ".ruff_cache", ".svelte-kit", ".svn", ".terraform", ".turbo",
    "_build", "build", "coverage", "dist", "htmlcov", "out", "target", "vendor",
})  # fmt: skip


class ProjectFiles:
    """The files of a project; `names` are only listed if they are needed."""

    def __init__(self, root: Path, names: Iterable[str]) -> None:
        self.root = root.absolute()
        self._given = names
        self._listed: dict[str, frozenset[str]] = {}

    @cached_property
    def names(self) -> Sequence[str]:
        """Return the names of all files that git does not ignore, sorted, each once."""
        return sorted(set(self._given))

    def below(self, directory: str) -> Iterator[str]:
        """Yield the names below this directory; "" or "." is the root."""
        names, folder = self.names, normal("", directory)
        if folder == "":
            yield from names
        elif folder is not None:
            # "0" follows "/" in the order of names.
            yield from names[bisect_left(names, f"{folder}/") : bisect_left(names, f"{folder}0")]

    def __contains__(self, name: str) -> bool:
        names = self.names
        at = bisect_left(names, name)
        return at < len(names) and names[at] == name

    def is_file(self, path: str) -> bool:
        """Return whether a regular file is there, in the project, also behind links."""
        return self._is(path, stat.S_ISREG)

    def is_directory(self, path: str) -> bool:
        """Return whether a directory is there, in the project, also behind links."""
        return self._is(path, stat.S_ISDIR)

    def _is(self, path: str, is_kind: Callable[[int], bool]) -> bool:
        try:
            mode = os.stat(self._place(path)).st_mode  # noqa: PTH116 - asked for hundreds of files
        except (OSError, ValueError):
            return False
        return is_kind(mode) and self._is_inside(path)

    def _is_inside(self, path: str) -> bool:
        real = os.path.realpath(self._place(path))
        return real == self._real_root or real.startswith(self._real_root.rstrip(os.sep) + os.sep)

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self.root)

    @cached_property
    def _prefix(self) -> str:
        return str(self.root)

    def _place(self, path: str) -> str:
        return f"{self._prefix}/{path}"

    def entries(self, directory: str) -> frozenset[str]:
        """Return the names in this directory on disk, links and directories too; read it once."""
        if directory not in self._listed:
            try:
                found = frozenset(os.listdir(self._place(directory)))  # noqa: PTH208 - as in `_is`
            except (OSError, ValueError):
                found = frozenset()
            self._listed[directory] = found
        return self._listed[directory]

    def read(self, path: str) -> bytes | None:
        """Return the content, None if it is missing, not in the project, unreadable or too large."""
        try:
            return read_inside(self.root, path, MOST_BYTES)
        except Unreadable:
            return None

    def head(self, path: str) -> bytes:
        """Return the first bytes of a file, b"" if it cannot be read."""
        try:
            with open_to_read(locate_inside(self.root, path), follow=False) as file:
                return file.read(8)
        except (Unreadable, OSError):
            return b""

    def read_text(self, path: str) -> str:
        """Return the content as text, "" if it cannot be read; other bytes than UTF-8 are replaced."""
        return (self.read(path) or b"").decode("utf-8-sig", "replace").replace("\r\n", "\n")


def normal(directory: str, path: str) -> str | None:
    """Return a path seen from a directory as a path of the project; None if it leads out of it."""
    if path.startswith("/") or "\0" in path:
        return None
    whole = posixpath.normpath(posixpath.join(directory, path))
    if whole == ".":
        return ""
    return None if whole == ".." or whole.startswith(("../", "/")) else whole


def lineage(directory: str) -> list[str]:
    """Return the directory and all above it; the root, "", is the last."""
    found = [directory] if directory else []
    while "/" in directory:
        directory = directory.rpartition("/")[0]
        found.append(directory)
    return [*found, ""]


def walked_names(root: Path) -> list[str]:
    """Return the names of at most MOST_FILES files, without those of caches and installed programs.

    For projects without git. Links to directories are not followed.
    """
    found: list[str] = []
    skipped = INSTALLED | BUILT
    todo = [("", 0)]
    while todo and len(found) < MOST_FILES:
        folder, depth = todo.pop()
        for entry in _entries(root / folder):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in skipped and depth < _DEEPEST:
                    todo.append((name, depth + 1))
            elif _is_file(entry):
                found.append(name)
    return sorted(found)[:MOST_FILES]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False

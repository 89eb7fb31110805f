"""List the files of a project, with what identifies their contents."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.engine.context import Context
from gsd_fsm.protection.files import ProjectFiles, lineage, walked_names
from gsd_fsm.protection.originals import content_at, digest

if TYPE_CHECKING:
    from gsd_fsm.git.tree import Content


class Files:
    """The files of a project; the content of its work tree is only read if it is needed.

    `read` returns that content, None outside of git.
    """

    def __init__(self, root: Path, read: Callable[[], Content | None], *, has_tree: bool) -> None:
        self.has_tree = has_tree
        self._read = read
        self.project = ProjectFiles(root, self._names())

    @cached_property
    def _content(self) -> Content | None:
        return self._read()

    @cached_property
    def _prefix(self) -> bytes:
        """What the paths of the project's files begin with in the work tree."""
        content = self._content
        return os.fsencode(prefix_of(self.project.root, content.top)) if content else b""

    def _names(self) -> Iterator[str]:
        """Yield the names of the files of the project, decoded all at once."""
        if self._content is None:
            yield from walked_names(self.project.root)
            return
        found, prefix = [*self._content.files], self._prefix
        if prefix:
            found = [path[len(prefix) :] for path in found if path.startswith(prefix)]
        if found:
            yield from os.fsdecode(b"\0".join(found)).split("\0")

    def __contains__(self, path: str) -> bool:
        """Return whether a file belongs to the content of the work tree."""
        content = self._content
        return content is not None and self._prefix + os.fsencode(path) in content.files

    def places_of(self, name: str) -> list[str]:
        """Return the path that a file of this name would have in each directory with files."""
        if self._content is not None:
            begin, entries = len(self._prefix), self._content.files
            found = {it.rpartition(b"/")[0] for it in entries if it.startswith(self._prefix)}
            folders = {os.fsdecode(it[begin:]) for it in found}
        else:
            folders = {it.rpartition("/")[0] for it in self.project.names}
        places = {above for it in folders for above in lineage(it)}
        return sorted(f"{it}/{name}" if it else name for it in places)

    def digests(self, paths: Collection[str]) -> dict[str, str | None]:
        """Return the digest of each file, None if it is missing."""
        return {path: digest_at(self.project.root / path) for path in paths}

    def identities(self, paths: Collection[str]) -> dict[str, str | None]:
        """Return what identifies the content of each file, as git knows it; None if it is missing."""
        entries = self._content.files if self._content is not None else {}
        encoded = os.fsencode("\0".join(paths)).split(b"\0")
        found = [entries.get(self._prefix + it) for it in encoded]
        return {
            path: digest_at(self.project.root / path) if entry is None else entry.decode("ascii")
            for path, entry in zip(paths, found, strict=False)
        }


def is_of_git(identity: str) -> bool:
    """Return whether git identifies a content by this, not its digest."""
    return " " in identity


def digest_at(path: Path) -> str | None:
    """Return the digest of what is at this path, None if a check could not read it."""
    content = content_at(path)
    return digest(content) if content is not None else None


def files_here(context: Context) -> Files:
    """Return the files of the project, whose content is read if it is needed."""
    from gsd_fsm.git.tree import read_content

    has_tree = context.repository is not None
    return Files(context.project, lambda: read_content(context.project), has_tree=has_tree)


def files_of(context: Context, content: Content | None) -> Files:
    """Return the files of the project, from the content of its work tree if it has one."""
    return Files(context.project, lambda: content, has_tree=content is not None)


def prefix_of(project: Path, top: Path) -> str:
    """Return what the paths of the project's files begin with in the work tree at `top`."""
    inside = os.path.relpath(os.path.realpath(project), os.path.realpath(top))
    return "" if inside == "." else inside.replace(os.sep, "/") + "/"

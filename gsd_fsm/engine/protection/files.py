"""List the files of a project, with what tells their contents apart."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.engine.context import Context
from gsd_fsm.protection.files import ProjectFiles, lineage, walked_names
from gsd_fsm.protection.originals import content_at, digest

if TYPE_CHECKING:
    from gsd_fsm.git.tree import Content


class Files:
    """The files of a project, and their entries in the content of its work tree if it has one."""

    def __init__(
        self, project: ProjectFiles, entries: Mapping[bytes, bytes] | None, prefix: bytes = b""
    ) -> None:
        self.project, self.has_tree = project, entries is not None
        self._entries = entries or {}
        self._prefix = prefix  # of their paths in the work tree

    def __contains__(self, path: str) -> bool:
        """Return whether a file belongs to the content of the work tree."""
        return self._prefix + os.fsencode(path) in self._entries

    def places_of(self, name: str) -> list[str]:
        """Return the path that a file of this name would have in each directory with files."""
        if self.has_tree:
            begin = len(self._prefix)
            found = {it.rpartition(b"/")[0] for it in self._entries if it.startswith(self._prefix)}
            folders = {os.fsdecode(it[begin:]) for it in found}
        else:
            folders = {it.rpartition("/")[0] for it in self.project.names}
        places = {above for it in folders for above in lineage(it)}
        return sorted(f"{it}/{name}" if it else name for it in places)

    def identities(self, paths: Collection[str]) -> dict[str, str | None]:
        """Return what identifies the content of each file, None if it is missing."""
        encoded = os.fsencode("\0".join(paths)).split(b"\0")
        entries = [self._entries.get(self._prefix + it) for it in encoded]
        return {
            path: digest_at(self.project.root / path) if entry is None else entry.decode("ascii")
            for path, entry in zip(paths, entries, strict=False)
        }


def digest_at(path: Path) -> str | None:
    """Return the digest of what is at this path, None if a check could not read it."""
    content = content_at(path)
    return digest(content) if content is not None else None


def files_of(context: Context, content: Content | None) -> Files:
    """Return the files of the project, from the content of its work tree if it has one."""
    project = context.project
    if content is None:
        return Files(ProjectFiles(project, walked_names(project)), None)
    prefix = os.fsencode(prefix_of(project, content.top))
    return Files(ProjectFiles(project, _names(content, prefix)), content.files, prefix)


def _names(content: Content, prefix: bytes) -> Iterator[str]:
    """Yield the names below a directory of the work tree, decoded all at once."""
    found = [*content.files]
    if prefix:
        found = [path[len(prefix) :] for path in found if path.startswith(prefix)]
    if found:
        yield from os.fsdecode(b"\0".join(found)).split("\0")


def prefix_of(project: Path, top: Path) -> str:
    """Return what the paths of the project's files begin with in the work tree at `top`."""
    inside = os.path.relpath(os.path.realpath(project), os.path.realpath(top))
    return "" if inside == "." else inside.replace(os.sep, "/") + "/"

"""List the files of a project, with what tells their contents apart."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.engine.context import Context
from gsd_fsm.protection.files import ProjectFiles, walked_names
from gsd_fsm.protection.originals import content_at, digest

if TYPE_CHECKING:
    from gsd_fsm.git.tree import Content


class Files(NamedTuple):
    """The files of a project; `ids` are those that git gives their contents, None without git."""

    project: ProjectFiles
    ids: Mapping[str, str] | None

    def id_of(self, path: str) -> str | None:
        """Return what identifies the content of a file, None if it is missing."""
        if self.ids is not None and path in self.ids:
            return self.ids[path]
        return digest_at(self.project.root / path)


def digest_at(path: Path) -> str | None:
    """Return the digest of what is at this path, None if a check could not read it."""
    content = content_at(path)
    return digest(content) if content is not None else None


def files_of(context: Context, content: Content | None) -> Files:
    """Return the files of the project, from the content of its work tree if it has one."""
    project = context.project
    if content is None:
        return Files(ProjectFiles(project, walked_names(project)), None)
    prefix = os.fsencode(prefix_of(context))
    ids = {
        os.fsdecode(path[len(prefix) :]): entry.decode("ascii")
        for path, entry in content.files.items()
        if path.startswith(prefix)
    }
    return Files(ProjectFiles(project, ids), ids)


def prefix_of(context: Context) -> str:
    """Return what the paths of the project's files begin with in its work tree."""
    repository = context.repository_or_none()
    if repository is None:
        return ""
    inside = os.path.relpath(os.path.realpath(context.project), os.path.realpath(repository.top))
    return "" if inside == "." else inside.replace(os.sep, "/") + "/"

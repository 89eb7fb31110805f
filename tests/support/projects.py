"""Projects made of a few files, and what the command of a check depends on in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gsd_fsm.protection.dependencies import Dependency, dependencies
from gsd_fsm.protection.files import ProjectFiles

Tree = Callable[[Mapping[str, str]], ProjectFiles]


def shown(found: list[Dependency]) -> list[str]:
    """Return each dependency as its path and its parts."""
    return [" ".join((it.path, *it.parts)) for it in found]


def protected(command: str, files: ProjectFiles, directory: str = "") -> list[str]:
    return shown(dependencies(command, directory, files).protected)


def watched(command: str, files: ProjectFiles, directory: str = "") -> list[str]:
    return shown(dependencies(command, directory, files).watched)

"""Find programs outside of the project: a clone must not bring the programs that look at it.

On Windows, starting a program by its bare name, and `shutil.which`, look in the current directory
first. So programs are found here, and started by their absolute path.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.project import new_gsd

Place = str | os.PathLike[str]


def outside_of(start: Place) -> Callable[[Place], bool]:
    """Return whether a directory is neither in the project around `start` nor the current one."""
    here = os.path.realpath(start)
    try:
        project = os.path.realpath(Path(new_gsd(here)).parent)
    except NotFound:
        project = ""  # `start` is the home or the root: only that directory itself counts
    current = {here, os.path.realpath(".")}

    def is_outside(directory: Place) -> bool:
        real = os.path.realpath(directory)
        return real not in current and not (project and Path(real).is_relative_to(project))

    return is_outside


def find_programs(start: Place, *names: str) -> Iterator[str]:
    """Yield the programs with these names in the absolute directories of PATH, in that order.

    Skip directories in the project around `start`, and the current one.
    """
    is_outside = outside_of(start)
    for folder in dict.fromkeys(os.get_exec_path()):
        if Path(folder).is_absolute() and is_outside(folder):
            found = (existing_program(Path(folder, name)) for name in names)
            yield from filter(None, found)


def existing_program(path: Path) -> str | None:
    """Return the path of this program, on Windows with its `.exe`; None if it is not one."""
    if sys.platform == "win32" and path.suffix.lower() != ".exe":
        path = path.with_name(f"{path.name}.exe")
    return str(path) if os.access(path, os.X_OK) and path.is_file() else None

"""Find programs outside of the project: a clone must not supply the programs that inspect it.

On Windows, starting a program by its bare name, and `shutil.which`, look in the current directory
first. So programs are found here, and started by their absolute path.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.project import new_gsd

Place = str | os.PathLike[str]


def outside_of(start: Place) -> Callable[[Place], bool]:
    """Return a test for directories outside of the projects around `start` and the caller."""
    places, projects = {os.path.realpath(start)}, set()
    with contextlib.suppress(OSError):  # the current directory was deleted
        places.add(os.path.realpath("."))
    for place in places:
        with contextlib.suppress(NotFound):  # the home and the root are not projects
            projects.add(os.path.realpath(Path(new_gsd(place)).parent))

    def is_outside(directory: Place) -> bool:
        real = Path(os.path.realpath(directory))
        return str(real) not in places and not any(map(real.is_relative_to, projects))

    return is_outside


def program_directories(start: Place) -> Iterator[Path]:
    """Yield the absolute directories of PATH outside of the project around `start`."""
    is_outside = outside_of(start)
    for folder in map(Path, dict.fromkeys(os.get_exec_path())):
        if folder.is_absolute() and is_outside(folder):
            yield folder


def find_programs(start: Place, *names: str) -> Iterator[str]:
    """Yield the programs with these names on the PATH, outside of the project around `start`."""
    for folder in program_directories(start):
        yield from filter(None, (existing_program(folder / name) for name in names))


def existing_program(path: Path) -> str | None:
    """Return the path of this program, on Windows with its `.exe`; None if it is not one."""
    if sys.platform == "win32" and path.suffix.lower() != ".exe":
        path = path.with_name(f"{path.name}.exe")
    return str(path) if os.access(path, os.X_OK) and path.is_file() else None

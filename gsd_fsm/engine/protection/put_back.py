"""Put a protected file back, and save what it contained."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.project import make_gsd
from gsd_fsm.core.syscalls import explain
from gsd_fsm.core.system import GSD
from gsd_fsm.documents.read import Unreadable, locate_inside
from gsd_fsm.protection.originals import LINK

_REPLACED = "replaced"
_EXECUTABLE = 0o111


def put_back(project: Path, path: str, content: bytes | None, *, executable: bool) -> str:
    """Write a file of the project, or remove it; return where what was there is, "" for nothing.

    Raise CannotWrite if it is outside of the project, or cannot be written.
    """
    place = project / path
    try:
        locate_inside(project, os.path.dirname(path) or ".")
        mode = place.stat().st_mode & 0o777 if place.is_file() else 0o644
        saved = _set_aside(project, place)
        if content is None:
            return saved
        place.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith(LINK):
            target, _, content = content.removeprefix(LINK).partition(b"\n")
            place.symlink_to(os.fsdecode(target))
            place = Path(os.path.realpath(place))
            if not place.is_relative_to(os.path.realpath(project)):
                return saved
        _write(place, content, mode | _EXECUTABLE if executable else mode & ~_EXECUTABLE)
    except Unreadable as error:
        raise CannotWrite(error.message, "Move it back into the project.") from error
    except OSError as error:
        why = f"{path} cannot be restored: {explain(error)}"
        raise CannotWrite(why, "Check the permissions of the file and its directory.") from error
    return saved


def _set_aside(project: Path, place: Path) -> str:
    """Move what is there to our directory; return its new path in the project, "" for nothing."""
    if not os.path.lexists(place):
        return ""
    make_gsd(os.fspath(project / GSD))  # it also makes git ignore what is saved
    folder = project / GSD / _REPLACED
    folder.mkdir(mode=0o700, exist_ok=True)
    saved = folder / f"{place.name}-{secrets.token_hex(4)}"
    place.rename(saved)
    return f"{GSD}/{_REPLACED}/{saved.name}"


def _write(place: Path, content: bytes, mode: int) -> None:
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}.new")
    try:
        temporary.write_bytes(content)
        temporary.chmod(mode)
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)

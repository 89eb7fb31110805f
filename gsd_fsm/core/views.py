"""Files that show the state to people and other programs: never read as truth, never in the way."""

from __future__ import annotations

import sys

from gsd_fsm.core.disk import (
    CREATE,
    EXCLUSIVE,
    READ,
    WRITE,
    close,
    look_up,
    open_in,
    open_regular,
    read_at,
    rename_in,
    system,
    unlink_in,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.disk import Directory
    from gsd_fsm.core.fold import World

STATE_NAME = "STATE.md"
_TEMPORARY = STATE_NAME + ".new"
_MAX_STATE = 1 << 20


def project(directory: Directory, world: World) -> None:
    """Bring STATE.md up to date if there is one. Best effort: what cannot be changed whole stays."""
    try:
        fd = open_regular(directory, STATE_NAME, READ)
    except Exception:  # noqa: BLE001 - mostly it is not there; in no case is it worth an event
        return
    try:
        try:
            info = system.fstat(fd)
            data = read_at(fd, 0, _MAX_STATE + 1)
        finally:
            close(fd)
        if len(data) > _MAX_STATE or not info.st_mode & 0o200:
            return  # not what it should be, or its owner wants it as it is
        from gsd_fsm.core.state_md import with_loop

        live = world.live()
        new = with_loop(data.decode("utf-8"), live[-1] if live else None).encode("utf-8")
        if new != data:
            _replace(directory, new, info)
    except Exception:  # noqa: BLE001 - the event is acknowledged, whatever becomes of its view
        pass


def _replace(directory: Directory, data: bytes, old: Any) -> None:
    """Put this in the place of the file that was read, if that is there still."""
    _drop_temporary(directory)  # of a process that was killed: the lock is ours
    fd = open_in(directory, _TEMPORARY, WRITE | CREATE | EXCLUSIVE)
    try:
        try:
            if sys.platform != "win32":
                system.fchmod(fd, old.st_mode & 0o7777)
            whole = system.write(fd, data) == len(data)
        finally:
            close(fd)
        if whole and _version(look_up(directory, STATE_NAME)) == _version(old):
            rename_in(directory, _TEMPORARY, STATE_NAME)
    finally:
        _drop_temporary(directory)


def _version(info: Any) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns


def _drop_temporary(directory: Directory) -> None:
    try:
        unlink_in(directory, _TEMPORARY)
    except OSError:
        pass

"""Files that show the state to people and other programs: never read as truth, never in the way."""

from __future__ import annotations

import sys

from gsd_fsm.core.loop.state import kept_name
from gsd_fsm.core.syscalls import (
    CREATE,
    EXCLUSIVE,
    READ,
    WRITE,
    close,
    close_directory,
    is_regular,
    look_up,
    open_directory,
    open_in,
    open_regular,
    read_at,
    rename_in,
    sync,
    unlink_in,
)
from gsd_fsm.core.system import join, parent_of, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.core.syscalls import Directory
    from gsd_fsm.core.views.loop_json import Sheet

STATE_NAME = "STATE.md"
STATE_PATH = ".gsd/" + STATE_NAME
LOOP_NAME = ".loop"
# Of our own making: a file of this name is nobody else's.
_TEMPORARY = ".gsd-fsm.new"
_MAX_STATE = 1 << 20


def project(directory: Directory, loops: Loops) -> None:
    """Bring the views up to date. Best effort: what cannot be changed whole stays."""
    _project_state(directory, loops)
    if any(loop.views for loop in loops.by_id.values()):
        try:
            _project_loops(directory, loops)
        except Exception:  # noqa: BLE001 - the event is acknowledged, whatever becomes of its views
            pass


# STATE.md, where there is one


def _project_state(directory: Directory, loops: Loops) -> None:
    if not loops.by_id:
        return  # what stands there is of another tool
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
        from gsd_fsm.core.views.state_md import with_loop

        live = loops.live()
        new = with_loop(data.decode("utf-8"), live[-1] if live else None).encode("utf-8")
        if new != data:
            if live:
                _keep_other(directory, loops, live[-1], data, info)
            _replace(directory, new, info)
    except Exception:  # noqa: BLE001 - the event is acknowledged, whatever becomes of its view
        pass


def _keep_other(directory: Directory, loops: Loops, shown: Loop, data: bytes, info: Any) -> None:
    """Save a file that shows the loop of another tool, once for each loop of ours.

    Raise if it cannot be saved whole: then it must not be replaced.
    """
    from gsd_fsm.core.views.state_md import shows_other_loop

    # The section of an imported loop looks like ours from the beginning.
    imported = shown.imported.get("file") == STATE_PATH
    if not imported and not shows_other_loop(data.decode("utf-8"), loops.by_id.values()):
        return
    name = kept_name(STATE_NAME, shown.id)
    if _info_of(directory, name) is not None:
        return
    try:
        if not _write_beside(directory, name, data, info, durable=True):
            raise OSError("only a part was written")
        rename_in(directory, name + _TEMPORARY, name)
    finally:
        _drop_temporary(directory, name)


def _replace(directory: Directory, data: bytes, old: Any) -> None:
    """Put this in the place of the file that was read, if that is there still."""
    try:
        whole = _write_beside(directory, STATE_NAME, data, old)
        if whole and _version(look_up(directory, STATE_NAME)) == _version(old):
            rename_in(directory, STATE_NAME + _TEMPORARY, STATE_NAME)
    finally:
        _drop_temporary(directory, STATE_NAME)


def _version(info: Any) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns


# the files of goal loops


def _project_loops(directory: Directory, loops: Loops) -> None:
    from gsd_fsm.core.views.loop_json import sheets

    found = sheets(loops)
    if not found:
        return
    place = _open_beside(directory, any(sheet.due for sheet in found))
    try:
        for sheet in found:
            try:
                _put(place, sheet)
            except Exception:  # noqa: BLE001, PERF203 - what is in the way of one leaves the others
                pass
    finally:
        close_directory(place)


def _open_beside(directory: Directory, make: bool) -> Directory:
    """The directory of these files, beside `.gsd`; not a link to one."""
    if sys.platform != "win32" and isinstance(directory, int):
        name = "../" + LOOP_NAME
        if make:
            _make(name, dir_fd=directory)
        return open_in(directory, name, READ | system.O_DIRECTORY)
    path = join(parent_of(str(directory)), LOOP_NAME)
    if make:
        _make(path)
    return open_directory(path)


def _make(path: str, **where: int) -> None:
    try:
        system.mkdir(path, 0o755, **where)
    except FileExistsError:
        pass


def _put(place: Directory, sheet: Sheet) -> None:
    """Bring one file up to date; what was there and is not ours is kept, once."""
    name = sheet.name
    old, data = _look_into(place, name, len(sheet.data) + _MAX_STATE)
    if not sheet.replaces(data):
        return
    aside = old is not None and sheet.spares(data)
    if aside and _info_of(place, sheet.aside) is not None:
        if not sheet.due:
            return
        aside = False
    try:
        if _write_beside(place, name, sheet.data, old):
            if aside:
                rename_in(place, name, sheet.aside)
            rename_in(place, name + _TEMPORARY, name)
    finally:
        _drop_temporary(place, name)


def _look_into(place: Directory, name: str, most: int) -> tuple[Any, bytes]:
    """A file and what it holds, None if there is none; ValueError if it is not to be touched."""
    info = _info_of(place, name)
    if info is None:
        return None, b""
    if not (is_regular(info) and info.st_mode & 0o200):
        raise ValueError("not a file, or its owner wants it as it is")
    fd = open_regular(place, name, READ)
    try:
        return info, read_at(fd, 0, most)
    finally:
        close(fd)


def _info_of(place: Directory, name: str) -> Any:
    try:
        return look_up(place, name)
    except FileNotFoundError:
        return None


# what both need


def _write_beside(
    directory: Directory, name: str, data: bytes, old: Any, durable: bool = False
) -> bool:
    """Write this under the temporary name of a file, with the mode of the old one; whether whole."""
    _drop_temporary(directory, name)  # of a process that was killed: the lock is ours
    fd = open_in(directory, name + _TEMPORARY, WRITE | CREATE | EXCLUSIVE, 0o644)
    try:
        if old is not None and sys.platform != "win32":
            system.fchmod(fd, old.st_mode & 0o7777)
        whole = bool(system.write(fd, data) == len(data))
        if durable:
            sync(fd)
        return whole
    finally:
        close(fd)


def _drop_temporary(directory: Directory, name: str) -> None:
    try:
        unlink_in(directory, name + _TEMPORARY)
    except OSError:
        pass

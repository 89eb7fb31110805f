"""Write the files that show the state: STATE.md and `.loop/`. They are never read as state."""

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
    from gsd_fsm.core.views.loop_json import ViewFile

STATE_NAME = "STATE.md"
STATE_PATH = ".gsd/" + STATE_NAME
LOOP_NAME = ".loop"
# The suffix of temporary files; no other program uses it.
_TEMPORARY = ".gsd-fsm.new"
_MAX_STATE = 1 << 20


def project(directory: Directory, loops: Loops) -> None:
    """Update the views. Best effort: a file that cannot be replaced as a whole stays."""
    _project_state(directory, loops)
    if any(loop.views for loop in loops.by_id.values()):
        try:
            _project_loops(directory, loops)
        except Exception:  # noqa: BLE001 - a view never fails an acknowledged event
            pass


# STATE.md


def _project_state(directory: Directory, loops: Loops) -> None:
    if not loops.by_id:
        return  # the file shows the loop of another tool
    try:
        fd = open_regular(directory, STATE_NAME, READ)
    except Exception:  # noqa: BLE001 - mostly there is none
        return
    try:
        try:
            info = system.fstat(fd)
            data = read_at(fd, 0, _MAX_STATE + 1)
        finally:
            close(fd)
        if len(data) > _MAX_STATE or not info.st_mode & 0o200:
            return  # not a state file, or write-protected by its owner
        from gsd_fsm.core.views.state_md import with_loop

        live = loops.live()
        new = with_loop(data.decode("utf-8"), live[-1] if live else None).encode("utf-8")
        if new != data:
            if live:
                _keep_other(directory, loops, live[-1], data, info)
            _replace(directory, new, info)
    except Exception:  # noqa: BLE001 - a view never fails an acknowledged event
        pass


def _keep_other(directory: Directory, loops: Loops, shown: Loop, data: bytes, info: Any) -> None:
    """Save a file that shows the loop of another tool, once for each loop.

    Raise OSError if it cannot be saved as a whole: then it must not be replaced.
    """
    from gsd_fsm.core.views.state_md import shows_other_loop

    # The section of an imported loop looks like ours from the start.
    imported = shown.imported.get("file") == STATE_PATH
    if not imported and not shows_other_loop(data.decode("utf-8"), loops.by_id.values()):
        return
    name = kept_name(STATE_NAME, shown.id)
    if _info_of(directory, name) is not None:
        return
    try:
        if not _write_beside(directory, name, data, info, durable=True):
            raise OSError("short write")
        rename_in(directory, name + _TEMPORARY, name)
    finally:
        _drop_temporary(directory, name)


def _replace(directory: Directory, data: bytes, old: Any) -> None:
    """Replace the file that was read, unless it has changed since."""
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
    from gsd_fsm.core.views.loop_json import view_files

    files = view_files(loops)
    if not files:
        return
    place = _open_beside(directory, any(file.due for file in files))
    try:
        for file in files:
            try:
                _put(place, file)
            except Exception:  # noqa: BLE001, PERF203 - the other files are independent of it
                pass
    finally:
        close_directory(place)


def _open_beside(directory: Directory, make: bool) -> Directory:
    """Open `.loop` beside `.gsd`; it must not be a link."""
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


def _put(place: Directory, file: ViewFile) -> None:
    """Update one file; save foreign content, once."""
    name = file.name
    old, data = _read_view(place, name, len(file.data) + _MAX_STATE)
    if not file.replaces(data):
        return
    save = old is not None and file.is_foreign(data)
    if save and _info_of(place, file.backup) is not None:
        if not file.due:
            return
        save = False
    try:
        if _write_beside(place, name, file.data, old):
            if save:
                rename_in(place, name, file.backup)
            rename_in(place, name + _TEMPORARY, name)
    finally:
        _drop_temporary(place, name)


def _read_view(place: Directory, name: str, most: int) -> tuple[Any, bytes]:
    """Return a file's status and content, None if there is none; ValueError if it must stay."""
    info = _info_of(place, name)
    if info is None:
        return None, b""
    if not (is_regular(info) and info.st_mode & 0o200):
        raise ValueError("not a regular file, or write-protected")
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


# for both


def _write_beside(
    directory: Directory, name: str, data: bytes, old: Any, durable: bool = False
) -> bool:
    """Write `data` to a temporary file with the old mode; return False on a short write."""
    _drop_temporary(directory, name)  # left by a killed process: we have the lock
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

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
    for write in (_write_state, _write_loop_files):
        try:
            write(directory, loops)
        except Exception:  # noqa: BLE001, PERF203 - a view never fails an acknowledged event
            pass


def _write_state(directory: Directory, loops: Loops) -> None:
    if not loops.by_id:
        return  # the file shows the loop of another tool
    old, data = _read(directory, STATE_NAME, _MAX_STATE + 1)
    if old is None or len(data) > _MAX_STATE:
        return
    from gsd_fsm.core.views.state_md import shows_other_loop, with_loop

    live = loops.live()
    shown = live[-1] if live else None
    text = data.decode("utf-8")
    new = with_loop(text, shown).encode("utf-8")
    if new == data:
        return
    if shown is not None:
        # The section of an imported loop looks like ours from the start.
        imported = shown.imported.get("file") == STATE_PATH
        name = kept_name(STATE_NAME, shown.id)
        foreign = imported or shows_other_loop(text, loops.by_id.values())
        if foreign and not _exists(directory, name):
            _replace(directory, name, data, old, saved=True)
    _replace(directory, STATE_NAME, new, old)


def _write_loop_files(directory: Directory, loops: Loops) -> None:
    if not any(loop.views for loop in loops.by_id.values()):
        return
    from gsd_fsm.core.views.loop_json import view_files

    files = view_files(loops)
    if not files:
        return
    place = _open_loop_directory(directory, any(file.due for file in files))
    try:
        for file in files:
            try:
                _write_loop_file(place, file)
            except Exception:  # noqa: BLE001, PERF203 - the other files are independent of it
                pass
    finally:
        close_directory(place)


def _open_loop_directory(directory: Directory, make: bool) -> Directory:
    """Open `.loop` beside `.gsd`; it must not be a link."""
    fd = directory if isinstance(directory, int) else None
    path = join(parent_of(str(directory)), LOOP_NAME) if fd is None else "../" + LOOP_NAME
    if make:
        try:
            system.mkdir(path, 0o755, dir_fd=fd)
        except FileExistsError:
            pass
    if sys.platform != "win32" and fd is not None:
        return open_in(fd, path, READ | system.O_DIRECTORY)
    return open_directory(path)


def _write_loop_file(place: Directory, file: ViewFile) -> None:
    old, data = _read(place, file.name, len(file.data) + _MAX_STATE)
    if not file.replaces(data):
        return
    save = old is not None and file.is_foreign(data)
    if save and _exists(place, file.backup):
        if not file.due:
            return
        save = False
    _replace(place, file.name, file.data, old, backup=file.backup if save else "")


def _read(directory: Directory, name: str, most: int) -> tuple[Any, bytes]:
    """Return status and content of a file, None if it is missing; raise if it must stay as it is."""
    try:
        fd = open_regular(directory, name, READ)
    except FileNotFoundError:
        return None, b""
    try:
        info = system.fstat(fd)
        if not info.st_mode & 0o200:
            raise ValueError("write-protected by its owner")
        return info, read_at(fd, 0, most)
    finally:
        close(fd)


def _exists(directory: Directory, name: str) -> bool:
    try:
        look_up(directory, name)
    except FileNotFoundError:
        return False
    return True


def _replace(
    directory: Directory, name: str, data: bytes, old: Any, backup: str = "", saved: bool = False
) -> None:
    """Replace the file whose status was `old`, unless it has changed since, and keep its mode.

    `backup`: first give the old file this name. `saved`: `data` is the only copy of a file that is
    about to be replaced, so make it durable and raise OSError if it is not complete.
    """
    temporary = name + _TEMPORARY
    _remove(directory, temporary)  # left by a killed process: we have the lock
    try:
        fd = open_in(directory, temporary, WRITE | CREATE | EXCLUSIVE, 0o644)
        try:
            if old is not None and sys.platform != "win32":
                system.fchmod(fd, old.st_mode & 0o7777)
            complete = system.write(fd, data) == len(data)
            if saved:
                sync(fd)
        finally:
            close(fd)
        if saved and not complete:
            raise OSError("short write")
        unchanged = saved or old is None or _version(look_up(directory, name)) == _version(old)
        if complete and unchanged:
            if backup:
                rename_in(directory, name, backup)
            rename_in(directory, temporary, name)
    finally:
        _remove(directory, temporary)


def _version(info: Any) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns


def _remove(directory: Directory, name: str) -> None:
    try:
        unlink_in(directory, name)
    except OSError:
        pass

"""Keeping what is cut: bytes of a journal under a new name."""

from __future__ import annotations

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.syscalls import (
    CREATE,
    EXCLUSIVE,
    WRITE,
    close,
    open_in,
    read_at,
    sync,
    sync_directory,
)
from gsd_fsm.core.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.syscalls import Directory

_PIECE = 1 << 20


def set_aside(directory: Directory, fd: int, start: int, end: int, now: int) -> str:
    """Keep these bytes of the file under a new name, synced; the name."""
    stamp = to_iso(now).translate({ord(mark): None for mark in "-:."})
    base = "journal.broken-%s-%d" % (stamp, system.getpid())
    for count in range(1000):
        name = "%s-%d" % (base, count) if count else base
        try:
            copy = open_in(directory, name, WRITE | CREATE | EXCLUSIVE)
        except FileExistsError:
            continue
        try:
            copy_bytes(fd, copy, start, end)
            sync(copy)
        finally:
            close(copy)
        sync_directory(directory)
        return name
    raise CannotWrite("no name is left to set the broken bytes aside")


def copy_bytes(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        view = memoryview(read_at(source, start, min(_PIECE, end - start)))
        start += len(view) or end
        while view:
            view = view[system.write(target, view) :]

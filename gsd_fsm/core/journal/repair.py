"""Continue after damage: the whole file is saved under another name, the good lines before it stay."""

from __future__ import annotations

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.errors import CannotWrite, Corrupt
from gsd_fsm.core.journal.journal import JOURNAL_NAME, Author, new_event, quarantine
from gsd_fsm.core.journal.scan import Cursor, into_fold, scan
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.syscalls import (
    CREATE,
    EXCLUSIVE,
    WRITE,
    LockedDir,
    close,
    copy_bytes,
    open_in,
    open_regular,
    read_at,
    rename_in,
    stopped_by,
    sync,
    sync_directory,
    unlink_in,
)
from gsd_fsm.core.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.syscalls import Directory

_NEW = JOURNAL_NAME + ".new"


def cut_damage(path: str, fresh_id: str, now: int, lock_seconds: float = 10.0) -> tuple[int, str]:
    """Keep the lines before the damage; return how many events stay, and the name of the old file.

    `fresh_id` names the journal if not even its first line is good.
    """
    locked = LockedDir(path)
    try:
        directory = locked.acquire(lock_seconds)
        fd = open_regular(directory, JOURNAL_NAME, WRITE)
        try:
            kept, saved = _write_anew(directory, fd, fresh_id, now)
        finally:
            close(fd)
        if saved:
            # Both files are closed by now: Windows renames neither over an open file nor an open
            # one.
            _replace_old(directory)
    except OSError as error:
        raise stopped_by(error, path) from error
    finally:
        locked.close()
    return kept, saved


def _write_anew(directory: Directory, fd: int, fresh_id: str, now: int) -> tuple[int, str]:
    size = system.fstat(fd).st_size
    loops = Loops()
    try:
        scan(lambda at, n: read_at(fd, at, n), size, Cursor(), into_fold(loops))
    except Corrupt as damage:
        good, what = damage.offset, "line %d: %s" % (damage.line, damage.what)
    else:
        return loops.seq, ""
    kept = loops.seq
    saved = quarantine(directory, fd, 0, size, now)
    events: list[tuple[str, dict[str, Any]]] = [
        ("journal", {"id": fresh_id, "incompat": [], "compat": []}),
        ("repair", {"bytes": size - good, "aside": saved, "what": what[:500]}),
    ]
    last = read_at(fd, good - 19, 16).decode("ascii") if kept else ""
    try:
        unlink_in(directory, _NEW)  # of a repair that was killed: the lock is ours
    except FileNotFoundError:
        pass
    new = open_in(directory, _NEW, WRITE | CREATE | EXCLUSIVE)
    try:
        copy_bytes(fd, new, 0, good)
        for kind, data in events[bool(kept) :]:
            event = new_event(loops, to_iso(now), None, kind, data, Author("cli"))
            loops.apply(event)
            line, last = encode_event(event, last)
            if system.write(new, line) != len(line):
                raise CannotWrite(
                    "the repaired journal could not be written", "Free disk space, then retry."
                )
        sync(new)
    except BaseException:
        close(new)
        _drop_new(directory)
        raise
    close(new)
    return kept, saved


def _replace_old(directory: Directory) -> None:
    try:
        rename_in(directory, _NEW, JOURNAL_NAME)
    except BaseException:
        _drop_new(directory)
        raise
    sync_directory(directory)


def _drop_new(directory: Directory) -> None:
    try:
        unlink_in(directory, _NEW)
    except OSError:
        pass

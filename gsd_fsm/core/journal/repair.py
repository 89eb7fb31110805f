"""Going on after damage: the whole file is set aside, the good lines before the damage stay."""

from __future__ import annotations

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.errors import CannotWrite, Corrupt
from gsd_fsm.core.journal.fast_fold import into_fold
from gsd_fsm.core.journal.journal import JOURNAL_NAME
from gsd_fsm.core.journal.lock import Hold
from gsd_fsm.core.journal.quarantine import copy_bytes, set_aside
from gsd_fsm.core.journal.scan import Position, scan
from gsd_fsm.core.journal.transaction import Author, stamp
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.syscalls import (
    CREATE,
    EXCLUSIVE,
    WRITE,
    close,
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
    from gsd_fsm.core.syscalls import Directory


_NEW = JOURNAL_NAME + ".new"


def cut_damage(path: str, fresh_id: str, now: int, lock_seconds: float = 10.0) -> tuple[int, str]:
    """Go on from the lines before the damage: how many events stay, and the name of the old file.

    `fresh_id` names the journal if not even its first line is good.
    """
    hold = Hold(path)
    try:
        directory = hold.acquire(lock_seconds)
        fd = open_regular(directory, JOURNAL_NAME, WRITE)
        try:
            kept, aside = _write_anew(directory, fd, fresh_id, now)
        finally:
            close(fd)
        if aside:
            _put_in_place(directory)
    except OSError as error:
        raise stopped_by(error, path) from error
    finally:
        hold.close()
    return kept, aside


def _write_anew(directory: Directory, fd: int, fresh_id: str, now: int) -> tuple[int, str]:
    size = system.fstat(fd).st_size
    loops = Loops()
    try:
        scan(lambda at, n: read_at(fd, at, n), size, Position(), into_fold(loops))
    except Corrupt as damage:
        good, what = damage.offset, "line %d: %s" % (damage.line, damage.what)
    else:
        return loops.seq, ""
    kept = loops.seq
    aside = set_aside(directory, fd, 0, size, now)
    cut: tuple[str, dict[str, object]] = (
        "repair",
        {"bytes": size - good, "aside": aside, "what": what[:500]},
    )
    header: tuple[str, dict[str, object]] = (
        "journal",
        {"id": fresh_id, "incompat": [], "compat": []},
    )
    last = read_at(fd, good - 19, 16).decode("ascii") if kept else ""
    try:
        unlink_in(directory, _NEW)  # of a repair that was killed: the lock is ours
    except FileNotFoundError:
        pass
    new = open_in(directory, _NEW, WRITE | CREATE | EXCLUSIVE)
    try:
        copy_bytes(fd, new, 0, good)
        for kind, data in [cut] if kept else [header, cut]:
            event = stamp(loops, to_iso(now), None, kind, data, Author("cli"))
            loops.apply(event)
            line, last = encode_event(event, last)
            if system.write(new, line) != len(line):
                raise CannotWrite("the repaired journal could not be written", "free some space")
        sync(new)
    except BaseException:
        close(new)
        _drop_new(directory)
        raise
    close(new)
    return kept, aside


def _put_in_place(directory: Directory) -> None:
    # Both files are closed by now: Windows renames neither over an open file nor an open one.
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

"""Going on after damage: the whole file is set aside, the good lines before the damage stay."""

from __future__ import annotations

from gsd_fsm.core.aside import copy_bytes, set_aside
from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.disk import (
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
    system,
    unlink_in,
)
from gsd_fsm.core.errors import CannotWrite, Corrupt
from gsd_fsm.core.events import VERSION, draft
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import JOURNAL_NAME
from gsd_fsm.core.lock import Hold
from gsd_fsm.core.reader import into_fold
from gsd_fsm.core.scan import Position, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.disk import Directory


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
    world = World()
    try:
        scan(lambda at, n: read_at(fd, at, n), size, Position(), into_fold(world))
    except Corrupt as damage:
        good, what = damage.offset, "line %d: %s" % (damage.line, damage.what)
    else:
        return world.seq, ""
    kept = world.seq
    aside = set_aside(directory, fd, 0, size, now)
    told = draft("repair", None, "cli", {"bytes": size - good, "aside": aside, "what": what[:500]})
    header = draft("journal", None, "cli", {"id": fresh_id, "incompat": [], "compat": []})
    last = read_at(fd, good - 19, 16).decode("ascii") if kept else ""
    try:
        unlink_in(directory, _NEW)  # of a repair that was killed: the lock is ours
    except FileNotFoundError:
        pass
    new = open_in(directory, _NEW, WRITE | CREATE | EXCLUSIVE)
    try:
        copy_bytes(fd, new, 0, good)
        for fields in [told] if kept else [header, told]:
            event = {"v": VERSION, "seq": world.seq + 1, "ts": to_iso(now), **fields}
            world.apply(event)
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

"""The only writer: lock, catch up, repair a torn tail, decide, one write, one sync."""

from __future__ import annotations

from gsd_fsm.core.aside import set_aside
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.codec import encode_event, sha256
from gsd_fsm.core.disk import (
    CREATE,
    READ,
    WRITE,
    close,
    close_directory,
    explain,
    file_id,
    join,
    look_up,
    open_directory,
    open_regular,
    read_at,
    stopped_by,
    sync,
    sync_directory,
    system,
)
from gsd_fsm.core.errors import CannotWrite, Corrupt, NotFound, UsageError
from gsd_fsm.core.events import VERSION, draft
from gsd_fsm.core.fold import World
from gsd_fsm.core.lock import Hold, wait_for_writer
from gsd_fsm.core.reader import into_fold
from gsd_fsm.core.scan import Position, scan
from gsd_fsm.core.snapshot import load_snapshot, save_snapshot
from gsd_fsm.core.views import project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from gsd_fsm.core.disk import Directory

    Event = dict[str, Any]
    Decide = Callable[[World, int], Iterable[Event]]
    Reader = Callable[[World], Callable[[bytes], None]]

JOURNAL_NAME = "journal.jsonl"
# Below this size every reading verifies the whole journal; above it the snapshot may help.
SMALL = 1 << 18
# A process that appends once saves the snapshot at every 32nd event; one that stays, far less often.
SNAPSHOT_EVERY = 32
SNAPSHOT_RARELY = 1024


class Journal:
    """A journal directory. Every method either does its whole work or raises a GsdError."""

    def __init__(
        self,
        path: str,
        lock_seconds: float = 10.0,
        now: Callable[[], int] = now_ms,
        keep: str | None = None,
        small: int | None = None,
    ) -> None:
        self.path = path
        self.keep = keep
        self.small = SMALL if small is None else small
        self.lock_seconds = lock_seconds
        self.now = now
        self.world = World(keep)
        self.at = Position()
        self._snapshot_at = -SNAPSHOT_RARELY
        self._hold = Hold(path)
        self._fd: int | None = None
        self._file: tuple[int, int] | None = None

    # reading

    def read(self, reader: Reader | None = None, sha: Any = sha256) -> World:
        """The world now, from the whole verified journal.

        `reader` gets the empty world and returns what takes each line, by default into the fold.
        """
        return self._read(False, reader, sha)

    def glance(self) -> World:
        """The world now, from the snapshot where the journal is long."""
        return self._read(True, None, sha256)

    def _read(self, cached: bool, reader: Reader | None, sha: Any) -> World:
        directory = open_directory(self.path)
        try:
            settled = wait_for_writer(directory, 0.2)
            try:
                fd = open_regular(directory, JOURNAL_NAME, READ)
            except FileNotFoundError:
                raise NotFound("%s has no journal" % self.path, "gsd-fsm start --help") from None
            try:
                size = system.fstat(fd).st_size
                self.world, self.at = World(self.keep), Position()
                self._file = file_id(fd)
                if cached and size > self.small:
                    self.world, self.at = load_snapshot(directory, fd, size) or (
                        self.world,
                        self.at,
                    )
                self._catch_up(fd, size, reader, sha)
            except BrokenPipeError:
                raise  # a reader of ours has left; no file says this
            except OSError as error:
                raise CannotWrite("%s: %s" % (self.journal_path(), explain(error))) from error
            finally:
                close(fd)
        finally:
            close_directory(directory)
        if not settled:
            self.at.torn = 0  # an append under way is not torn
        return self.world

    def _catch_up(
        self, fd: int, size: int, reader: Reader | None = None, sha: Any = sha256
    ) -> None:
        take = (reader or into_fold)(self.world)
        try:
            self.at = scan(lambda at, n: read_at(fd, at, n), size, self.at, take, sha)
        except Corrupt as damage:
            raise Corrupt(damage.what, damage.line, damage.offset, self.journal_path()) from damage

    def journal_path(self) -> str:
        return join(self.path, JOURNAL_NAME)

    # writing

    def transact(self, decide: Decide, allow: Callable[[World], None] | None = None) -> list[Event]:
        """Let `decide` draft events from the world as it is now; append and acknowledge them.

        All of it happens under the lock. A generator sees the world as each draft leaves it.
        """
        try:
            directory = self._hold.acquire(self.lock_seconds)
            events = self._transact(directory, decide, allow)
            self._hold.release()
        except OSError as error:
            self.close()
            raise stopped_by(error, self.path) from error
        except BaseException:
            self.close()
            raise
        return events

    def close(self) -> None:
        """Forget everything and let go of the files; the next use opens them again."""
        self.world, self.at = World(self.keep), Position()
        if self._fd is not None:
            close(self._fd)
        self._fd = self._file = None
        self._hold.close()

    def __del__(self) -> None:
        self.close()

    def _transact(
        self, directory: Directory, decide: Decide, allow: Callable[[World], None] | None
    ) -> list[Event]:
        fd, size = self._open(directory)
        folded = self._prepare(directory, fd, size)
        if allow is not None:
            allow(self.world)  # before the first byte is touched
        self._mend(directory, fd)
        before = self.world.seq
        drafts = decide(self.world, self.now())
        events = self._append(fd, drafts)
        due = before // SNAPSHOT_EVERY != self.world.seq // SNAPSHOT_EVERY
        if (
            due or folded > SNAPSHOT_RARELY
        ) and self.world.seq - self._snapshot_at >= SNAPSHOT_RARELY:
            save_snapshot(directory, fd, self.world, self.at)
            self._snapshot_at = self.world.seq
        project(directory, self.world)
        return events

    def _open(self, directory: Directory) -> tuple[int, int]:
        """The journal's descriptor and size: the one kept open, or a new one if it was replaced."""
        try:
            info = look_up(directory, JOURNAL_NAME)
            if self._file != (info.st_dev, info.st_ino):
                if self._fd is not None:
                    close(self._fd)
                    self._fd = None
                self.world, self.at = World(self.keep), Position()
            if self._fd is None:
                self._fd = open_regular(directory, JOURNAL_NAME, WRITE)
                self._file = file_id(self._fd)
                if self._file != (info.st_dev, info.st_ino):
                    raise CannotWrite("%s was replaced" % self.journal_path(), "try again")
        except FileNotFoundError:
            raise NotFound("%s has no journal" % self.path, "gsd-fsm start --help") from None
        return self._fd, info.st_size

    def _prepare(self, directory: Directory, fd: int, size: int) -> int:
        """Fold what is new since the last time, or everything; how many events that were."""
        mark = b',"sum":"%s"}\n' % self.at.sum.encode("ascii")
        known = self.at.sum and size >= self.at.offset
        if not known or read_at(fd, self.at.offset - len(mark), len(mark)) != mark:
            self.world, self.at = World(self.keep), Position()
            if size > self.small:
                self.world, self.at = load_snapshot(directory, fd, size) or (self.world, self.at)
        before = self.world.seq
        self.at.torn = 0  # somebody else may have mended it
        if self.at.offset < size:
            self._catch_up(fd, size)
        return self.world.seq - before

    def _append(self, fd: int, drafts: Iterable[Event]) -> list[Event]:
        """Give the drafts their place; all are folded before the first is written."""
        ts = to_iso(self.now())
        last = self.at.sum
        lines = []
        events = []
        for fields in drafts:
            event = {"v": VERSION, "seq": self.world.seq + 1, "ts": ts, **fields}
            try:
                self.world.apply(event)
                line, last = encode_event(event, last)
            except ValueError as error:
                raise UsageError("this cannot be journalled: %s" % error) from error
            lines.append(line)
            events.append({**event, "sum": last})
        start = self.at.offset
        for line, event in zip(lines, events):  # noqa: B905 - strict came with Python 3.10
            # One write and one sync each: of two lines in one write a power cut may keep only the
            # second, which would look like damage.
            self._write(fd, line, start)
            self.at = Position(self.at.offset + len(line), self.at.line + 1, event["sum"])
        return events

    def _write(self, fd: int, data: bytes, start: int) -> None:
        """All of it, synced, or the file as it was when it ended at `start`."""
        try:
            written = system.write(fd, data)
            if written != len(data):
                raise CannotWrite(
                    "%s: only %d of %d bytes could be written"
                    % (self.journal_path(), written, len(data)),
                    "free some space, then try again",
                )
            sync(fd)
        except BaseException:
            system.ftruncate(fd, start)
            raise

    def _mend(self, directory: Directory, fd: int) -> None:
        """Bring the end of the file to the end of its last event, and tell what was cut."""
        if self.at.unended is not None:
            system.ftruncate(fd, self.at.unended)
            self.at = Position(self.at.unended, self.at.line, self.at.sum)
            self._write(fd, b"\n", self.at.offset)
            self.at.offset += 1
        if self.at.torn:
            end = self.at.offset + self.at.torn
            aside = set_aside(directory, fd, self.at.offset, end, self.now())
            system.ftruncate(fd, self.at.offset)
            sync(fd)  # else a power cut may mix sectors of the tail and of the next line
            told = {"bytes": self.at.torn, "aside": aside, "what": "torn tail"}
            self.at.torn = 0
            if self.world.seq:
                self._append(fd, [draft("repair", None, "cli", told)])


def create_journal(path: str, journal_id: str, now: int, lock_seconds: float = 10.0) -> None:
    """Make an empty journal here, or complete one whose making was interrupted."""
    hold = Hold(path)
    try:
        directory = hold.acquire(lock_seconds)
        close(open_regular(directory, JOURNAL_NAME, WRITE | CREATE))
        sync_directory(directory)
    except OSError as error:
        raise stopped_by(error, path) from error
    finally:
        hold.close()
    header = draft("journal", None, "cli", {"id": journal_id, "incompat": [], "compat": []})
    Journal(path, lock_seconds, lambda: now).transact(
        lambda world, _: [] if world.seq else [header]
    )

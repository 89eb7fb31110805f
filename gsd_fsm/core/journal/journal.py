"""The only writer: lock, catch up, repair a torn tail, then one write and one sync per event."""

from __future__ import annotations

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.codec import encode_event, sha256
from gsd_fsm.core.errors import CannotWrite, Corrupt, NotFound, UsageError
from gsd_fsm.core.journal.scan import Cursor, into_fold, scan
from gsd_fsm.core.loop.fold import EVENTS, Loops
from gsd_fsm.core.loop.schema import check_event
from gsd_fsm.core.syscalls import (
    CREATE,
    EXCLUSIVE,
    READ,
    WRITE,
    LockedDir,
    close,
    close_directory,
    copy_bytes,
    explain,
    file_id,
    look_up,
    open_directory,
    open_in,
    open_regular,
    read_at,
    stopped_by,
    sync,
    sync_directory,
    wait_for_writer,
)
from gsd_fsm.core.system import join, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.core.syscalls import Directory

    Reader = Callable[[Loops], Callable[[bytes], None]]

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
        self.forget()
        self._snapshot_at = -SNAPSHOT_RARELY
        self._folded = self._first = 0
        self._locked = LockedDir(path)
        self._fd: int | None = None
        self._file: tuple[int, int] | None = None

    # reading

    def read(
        self, reader: Reader | None = None, sha: Any = sha256, into: Loops | None = None
    ) -> Loops:
        """Return the state now, from the whole verified journal.

        `reader` gets the empty state, or `into`, and returns what takes each line, by default into
        the fold.
        """

        def read_whole(_directory: Directory, fd: int, size: int) -> None:
            self.loops, self.at = into or Loops(self.keep), Cursor()
            self._catch_up(fd, size, reader, sha)

        return self._read(read_whole)

    def read_cached(self) -> Loops:
        """Return the state now, from the last reading or, if the journal is long, the snapshot."""
        return self._read(self._prepare)

    def _read(self, fold: Callable[[Directory, int, int], object]) -> Loops:
        directory = open_directory(self.path)
        try:
            settled = wait_for_writer(directory, 0.2)
            try:
                fd = open_regular(directory, JOURNAL_NAME, READ)
            except FileNotFoundError:
                raise self._missing() from None
            try:
                self._notice(file_id(fd))
                fold(directory, fd, system.fstat(fd).st_size)
            except BrokenPipeError:
                raise  # our own output pipe was closed; the journal file is not the cause
            except OSError as error:
                raise CannotWrite("%s: %s" % (self.journal_path(), explain(error))) from error
            finally:
                close(fd)
        finally:
            close_directory(directory)
        if not settled:
            self.at.torn = 0  # an append under way is not torn
        return self.loops

    def _missing(self) -> NotFound:
        return NotFound("%s has no journal" % self.path, "Run: gsd-fsm start --help")

    def _notice(self, file: tuple[int, int]) -> None:
        """Drop what is known of another file that had this name."""
        if self._file != file:
            if self._fd is not None:
                close(self._fd)
            self._fd, self._file = None, file
            self.forget()

    def _prepare(self, directory: Directory, fd: int, size: int) -> int:
        """Fold what is new since the last time, or everything; return the number of events."""
        mark = b',"sum":"%s"}\n' % self.at.sum.encode("ascii")
        known = self.at.sum and size >= self.at.offset
        if not known or read_at(fd, self.at.offset - len(mark), len(mark)) != mark:
            self.forget()
            if size > self.small:
                self._load_snapshot(directory, fd, size)
        before = self.loops.seq
        self.at.torn = 0  # another process may have repaired it
        if self.at.offset < size:
            self._catch_up(fd, size)
        return self.loops.seq - before

    def _load_snapshot(self, directory: Directory, fd: int, size: int) -> None:
        from gsd_fsm.core.journal.snapshot import load_snapshot

        found = load_snapshot(directory, fd, size)
        if found is not None:
            self.loops, self.at = found

    def _catch_up(
        self, fd: int, size: int, reader: Reader | None = None, sha: Any = sha256
    ) -> None:
        take = (reader or into_fold)(self.loops)
        known, self.at = self.at, Cursor()  # if the scan fails, nothing is known
        try:
            self.at = scan(lambda at, n: read_at(fd, at, n), size, known, take, sha)
            self.loops.settle()
        except Corrupt as damage:
            raise Corrupt(damage.what, damage.line, damage.offset, self.journal_path()) from damage

    def journal_path(self) -> str:
        return join(self.path, JOURNAL_NAME)

    # writing

    def transaction(
        self, author: Author, require: Callable[[Loops], None] | None = None
    ) -> Transaction:
        """Return a transaction for `with`: events appended in it are durable after the block.

        `require` may refuse the journal before its first byte is changed.
        """
        return Transaction(self, author, require)

    def dry_run(self, author: Author, empty: bool = False) -> Transaction:
        """Return a transaction for `with` that refuses what a real one would, and writes nothing.

        `empty` begins before the first event, whether or not there is a journal on disk.
        """
        return Transaction(self, author, dry_run=True, empty=empty)

    def forget(self) -> None:
        """Drop the state, so that the next reader starts at the first line."""
        self.loops, self.at = Loops(self.keep), Cursor()

    def close(self) -> None:
        """Drop the state and close the files; the next use opens them again."""
        self.forget()
        self._close_files()

    def __del__(self) -> None:
        self._close_files()

    def _close_files(self) -> None:
        if self._fd is not None:
            close(self._fd)
        self._fd = self._file = None
        self._locked.close()

    # for Transaction

    def begin(self, tx: Transaction) -> None:
        """Lock the journal, catch up, and repair its tail."""
        try:
            directory = self._locked.acquire(self.lock_seconds)
            fd, size = self._open(directory)
            self._folded = self._prepare(directory, fd, size)
            tx.prepare()
            self._first = self.loops.seq
            self._repair_tail(directory, fd, tx)
        except BaseException as error:
            self._give_up(error)
            raise

    def commit(self, tx: Transaction) -> None:
        """Write the lines of a transaction, bring snapshot and views up to date, and unlock."""
        try:
            directory, fd = self._locked.directory, self._fd
            if fd is None:
                raise CannotWrite("the journal was closed within a transaction")
            self._write_lines(fd, tx)
            self.loops.settle()
            self._save_snapshot(directory, fd)
            self._write_views(directory)
            self._locked.release()
        except BaseException as error:
            self._give_up(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        self.close()
        if isinstance(error, OSError):
            raise stopped_by(error, self.path) from error

    def _open(self, directory: Directory) -> tuple[int, int]:
        """Return descriptor and size of the journal; open it again if it was replaced."""
        try:
            info = look_up(directory, JOURNAL_NAME)
            self._notice((info.st_dev, info.st_ino))
            if self._fd is None:
                self._fd = open_regular(directory, JOURNAL_NAME, WRITE)
                if self._file != file_id(self._fd):
                    raise CannotWrite("%s was replaced" % self.journal_path(), "Retry.")
        except FileNotFoundError:
            raise self._missing() from None
        return self._fd, info.st_size

    def _save_snapshot(self, directory: Directory, fd: int) -> None:
        seq = self.loops.seq
        due = self._first // SNAPSHOT_EVERY != seq // SNAPSHOT_EVERY
        if (due or self._folded > SNAPSHOT_RARELY) and seq - self._snapshot_at >= SNAPSHOT_RARELY:
            from gsd_fsm.core.journal.snapshot import save_snapshot

            save_snapshot(directory, fd, self.loops, self.at)
            self._snapshot_at = seq

    def _write_views(self, directory: Directory) -> None:
        from gsd_fsm.core.views.write import project

        project(directory, self.loops)

    def _write_lines(self, fd: int, tx: Transaction) -> None:
        start = self.at.offset
        for line, line_sum in tx.take_lines():
            # One write and one sync each: of two lines in one write a power cut may keep only the
            # second, which would look like damage.
            self._write(fd, line, start)
            self.at = Cursor(self.at.offset + len(line), self.at.line + 1, line_sum)
            if tx.on_write is not None:
                tx.on_write(self.at.line)

    def _write(self, fd: int, data: bytes, start: int) -> None:
        """Write all of it and sync it; on failure leave the file as it was when it ended at `start`."""
        try:
            written = system.write(fd, data)
            if written != len(data):
                raise CannotWrite(
                    "%s: only %d of %d bytes could be written"
                    % (self.journal_path(), written, len(data)),
                    "Free disk space, then retry.",
                )
            sync(fd)
        except BaseException:
            system.ftruncate(fd, start)
            raise

    def _repair_tail(self, directory: Directory, fd: int, tx: Transaction) -> None:
        """Bring the end of the file to the end of its last event, and record what was cut."""
        if self.at.unended is not None:
            system.ftruncate(fd, self.at.unended)
            self.at = Cursor(self.at.unended, self.at.line, self.at.sum)
            self._write(fd, b"\n", self.at.offset)
            self.at.offset += 1
        if self.at.torn:
            end = self.at.offset + self.at.torn
            saved = quarantine(directory, fd, self.at.offset, end, tx.now)
            system.ftruncate(fd, self.at.offset)
            sync(fd)  # else a power cut may mix sectors of the tail and of the next line
            cut = {"bytes": self.at.torn, "aside": saved, "what": "torn tail"}
            self.at.torn = 0
            if self.loops.seq:
                tx.record_repair(cut)
                self._write_lines(fd, tx)


def create_journal(path: str, journal_id: str, now: int, lock_seconds: float = 10.0) -> None:
    """Create an empty journal here, or complete one whose creation was interrupted."""
    locked = LockedDir(path)
    try:
        directory = locked.acquire(lock_seconds)
        close(open_regular(directory, JOURNAL_NAME, WRITE | CREATE))
        sync_directory(directory)
    except OSError as error:
        raise stopped_by(error, path) from error
    finally:
        locked.close()
    with Journal(path, lock_seconds, lambda: now).transaction(Author("cli")) as tx:
        if not tx.loops.seq:
            tx.append(None, "journal", {"id": journal_id, "incompat": [], "compat": []})


def quarantine(directory: Directory, fd: int, start: int, end: int, now: int) -> str:
    """Save these bytes of the file under a new name, synced; return the name."""
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
    raise CannotWrite("too many files named %s-*" % base, "Move some of them elsewhere.")


class Author:
    """Who appends: a human, an agent, the hook, or the engine on its own account (`cli`)."""

    __slots__ = ("by", "client", "session")

    def __init__(self, by: str, session: str | None = None, client: str | None = None) -> None:
        self.by = by
        self.session = session
        self.client = client


class Transaction:
    """A locked journal to which events can be appended.

        with journal.transaction(author) as tx:
            loop = tx.loops.by_id["lp-1"]
            tx.append(loop, "gap", {"action": "closed", "gap": "G1"})
            # `loop` already shows the closed gap; nothing is on disk yet

    When the block ends, every event is durable. If it raises, none is written. A crash while the
    block ends may keep the first few, so every prefix must be a legal history. A dry run takes no
    lock and writes nothing.
    """

    def __init__(
        self,
        journal: Journal,
        author: Author,
        require: Callable[[Loops], None] | None = None,
        dry_run: bool = False,
        empty: bool = False,
    ) -> None:
        self._journal = journal
        self._author = author
        self._require = require
        self._dry_run = dry_run
        self._empty = empty
        self._lines: list[tuple[bytes, str]] = []
        self._sum = self._ts = ""
        self.path = journal.path
        self.loops = journal.loops
        self.now = 0
        # The last event of the journal when the block ends, also if more are appended later.
        self.seq = 0
        self.events: list[Event[Any]] = []
        # Called with the number of each event that has become durable; it must not raise.
        self.on_write: Callable[[int], None] | None = None

    def __enter__(self) -> Transaction:
        if not self._dry_run:
            self._journal.begin(self)
            return self
        from copy import deepcopy

        if not self._empty:
            self._journal.read_cached()
        self.prepare()
        self.loops = deepcopy(self.loops)  # the journal's own must not change
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None and not self._dry_run:
            self._journal.commit(self)
        elif not self._dry_run:
            self._journal.close()  # it may have folded events that will never be written

    @property
    def head(self) -> str:
        """Return `seq:sum` of the last event, which names the whole history up to it."""
        return "%d:%s" % (self.seq, self._sum)

    def append(
        self, loop: Loop | None, kind: str, data: Mapping[str, object], by: str = ""
    ) -> None:
        """Check one event and fold it; raise Refused, and change nothing, if it may not happen now.

        `loop` is None for events about the journal itself. `by` overrides the author's.
        """
        self._append(loop.id if loop else None, kind, data, self._author, by)

    def start(self, loop_id: str, data: Mapping[str, object]) -> Loop:
        """Append a `start` event; return the new loop."""
        self._append(loop_id, "start", data, self._author)
        return self.loops.by_id[loop_id]

    def _append(
        self,
        loop_id: str | None,
        kind: str,
        data: Mapping[str, object],
        author: Author,
        by: str = "",
    ) -> None:
        loops = self.loops
        event = new_event(loops, self._ts, loop_id, kind, data, author, by)
        try:
            check_event(event, EVENTS)
            loops.check_rules(event)
            event["v"] = EVENTS[kind].version_of(loops.by_id.get(loop_id or ""), data)
            line, line_sum = encode_event(event, self._sum)
        except ValueError as problem:
            raise UsageError("cannot append %s: %s" % (kind, problem)) from problem
        loops.fold(event)
        self.seq = loops.seq
        self._sum = event["sum"] = line_sum
        self._lines.append((line, line_sum))
        self.events.append(event)

    # for Journal

    def prepare(self) -> None:
        """Check what the caller requires of the journal, before the first byte is changed."""
        self.loops = self._journal.loops
        if self._require is not None:
            self._require(self.loops)
        self.seq = self.loops.seq
        self._sum = self._journal.at.sum
        self.now = self._journal.now()
        self._ts = to_iso(self.now)

    def record_repair(self, data: Mapping[str, object]) -> None:
        self._append(None, "repair", data, Author("cli"))

    def take_lines(self) -> list[tuple[bytes, str]]:
        """Return the lines that are not written yet, each with its sum."""
        lines, self._lines = self._lines, []
        return lines


def new_event(
    loops: Loops,
    ts: str,
    loop_id: str | None,
    kind: str,
    data: Mapping[str, object],
    author: Author,
    by: str = "",
) -> Event[Any]:
    """Return the event that follows those in `loops`."""
    event: Event[Any] = {
        "v": 1,
        "seq": loops.seq + 1,
        "ts": ts,
        "loop": loop_id,
        "type": kind,
        "by": by or author.by,
    }  # type: ignore[typeddict-item] # `data` is the last member
    if author.session:
        event["session"] = author.session
    if author.client:
        event["client"] = author.client
    event["data"] = data
    return event

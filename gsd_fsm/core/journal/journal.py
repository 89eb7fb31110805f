"""The only writer: lock, catch up, repair a torn tail, then one write and one sync per event."""

from __future__ import annotations

from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import sha256
from gsd_fsm.core.errors import CannotWrite, Corrupt, NotFound
from gsd_fsm.core.journal.fast_fold import into_fold
from gsd_fsm.core.journal.lock import Hold, wait_for_writer
from gsd_fsm.core.journal.scan import Position, scan
from gsd_fsm.core.journal.transaction import Author, Transaction
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.syscalls import (
    CREATE,
    READ,
    WRITE,
    close,
    close_directory,
    explain,
    file_id,
    look_up,
    open_directory,
    open_regular,
    read_at,
    stopped_by,
    sync,
    sync_directory,
)
from gsd_fsm.core.system import join, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

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
        self.loops, self.at = Loops(keep), Position()
        self._snapshot_at = -SNAPSHOT_RARELY
        self._folded = self._first = 0
        self._hold = Hold(path)
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
        return self._read(lambda directory, fd, size: self._read_whole(fd, size, reader, sha, into))

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
                raise NotFound("%s has no journal" % self.path, "gsd-fsm start --help") from None
            try:
                self._notice(file_id(fd))
                fold(directory, fd, system.fstat(fd).st_size)
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
        return self.loops

    def _read_whole(
        self, fd: int, size: int, reader: Reader | None, sha: Any, into: Loops | None
    ) -> None:
        self.loops, self.at = into or Loops(self.keep), Position()
        self._catch_up(fd, size, reader, sha)

    def _notice(self, file: tuple[int, int]) -> None:
        """Drop what is known of another file that had this name."""
        if self._file != file:
            if self._fd is not None:
                close(self._fd)
            self._fd, self._file = None, file
            self.forget()

    def _catch_up(
        self, fd: int, size: int, reader: Reader | None = None, sha: Any = sha256
    ) -> None:
        take = (reader or into_fold)(self.loops)
        known, self.at = self.at, Position()  # if the scan fails, nothing is known
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
        self.loops, self.at = Loops(self.keep), Position()

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
        self._hold.close()

    # for Transaction

    def begin(self, tx: Transaction) -> None:
        """Lock the journal, catch up, and repair its tail."""
        try:
            directory = self._hold.acquire(self.lock_seconds)
            fd, size = self._open(directory)
            self._folded = self._prepare(directory, fd, size)
            tx.prepare()
            self._first = self.loops.seq
            self._repair_tail(directory, fd, tx)
        except OSError as error:
            self.close()
            raise stopped_by(error, self.path) from error
        except BaseException:
            self.close()
            raise

    def commit(self, tx: Transaction) -> None:
        """Write the lines of a transaction, bring snapshot and views up to date, and unlock."""
        try:
            directory, fd = self._hold.directory, self._fd
            if fd is None:
                raise CannotWrite("the journal was closed within a transaction")
            self._write_lines(fd, tx)
            self.loops.settle()
            self._save_snapshot(directory, fd)
            self._write_views(directory)
            self._hold.release()
        except OSError as error:
            self.close()
            raise stopped_by(error, self.path) from error
        except BaseException:
            self.close()
            raise

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

    def _load_snapshot(self, directory: Directory, fd: int, size: int) -> None:
        from gsd_fsm.core.journal.snapshot import load_snapshot

        found = load_snapshot(directory, fd, size)
        if found is not None:
            self.loops, self.at = found

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
            raise NotFound("%s has no journal" % self.path, "gsd-fsm start --help") from None
        return self._fd, info.st_size

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

    def _write_lines(self, fd: int, tx: Transaction) -> None:
        start = self.at.offset
        for line, line_sum in tx.take_lines():
            # One write and one sync each: of two lines in one write a power cut may keep only the
            # second, which would look like damage.
            self._write(fd, line, start)
            self.at = Position(self.at.offset + len(line), self.at.line + 1, line_sum)

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
            self.at = Position(self.at.unended, self.at.line, self.at.sum)
            self._write(fd, b"\n", self.at.offset)
            self.at.offset += 1
        if self.at.torn:
            from gsd_fsm.core.journal.quarantine import set_aside

            end = self.at.offset + self.at.torn
            aside = set_aside(directory, fd, self.at.offset, end, tx.now)
            system.ftruncate(fd, self.at.offset)
            sync(fd)  # else a power cut may mix sectors of the tail and of the next line
            cut = {"bytes": self.at.torn, "aside": aside, "what": "torn tail"}
            self.at.torn = 0
            if self.loops.seq:
                tx.record_repair(cut)
                self._write_lines(fd, tx)


def create_journal(path: str, journal_id: str, now: int, lock_seconds: float = 10.0) -> None:
    """Create an empty journal here, or complete one whose creation was interrupted."""
    hold = Hold(path)
    try:
        directory = hold.acquire(lock_seconds)
        close(open_regular(directory, JOURNAL_NAME, WRITE | CREATE))
        sync_directory(directory)
    except OSError as error:
        raise stopped_by(error, path) from error
    finally:
        hold.close()
    with Journal(path, lock_seconds, lambda: now).transaction(Author("cli")) as tx:
        if not tx.loops.seq:
            tx.append(None, "journal", {"id": journal_id, "incompat": [], "compat": []})

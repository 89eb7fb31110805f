"""One writer at a time: a lock file that is never unlinked, turns, and a deadline instead of a hang.

The lock alone excludes other writers. The turn orders the processes that wait for it: only the one
that has the turn polls for the lock, and it gives the turn back once it has the lock. A writer that
wants the lock again may take it without the turn for a moment, because handing it over at every
append would cost a switch of processes each; then it gets it after those that already wait.
"""

from __future__ import annotations

import sys
from time import monotonic, sleep

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.syscalls import (
    CREATE,
    READ,
    WRITE,
    close,
    close_directory,
    explain,
    file_id,
    identity,
    open_directory,
    open_regular,
    path_id,
)
from gsd_fsm.core.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.syscalls import Directory

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = "journal.lock"

# Seconds between two attempts: of the process that has the turn, of the others, of a reader.
_NEXT = 0.0002
_OTHERS = 0.005
_READER = 0.001
# Seconds for which a process may take the lock again without the turn.
_SLICE = 0.005


def try_lock(fd: int, byte: int = 0, shared: bool = False) -> bool:
    try:
        if sys.platform == "win32":
            system.lseek(fd, byte, 0)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _try_turn(fd: int, byte: int) -> bool:
    try:
        return try_lock(fd, byte)
    except OSError:
        return True  # a file system that cannot lock directories has no turns


class Hold:
    """The directory and the lock file of a journal, kept open from one append to the next."""

    __slots__ = ("_lock", "_process", "_seen", "_slice_ends", "directory", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.directory: Directory = ""
        self._lock: int | None = None
        self._process = 0
        self._seen: tuple[Any, Any] = (None, None)
        self._slice_ends = 0.0

    def acquire(self, seconds: float) -> Directory:
        """Return the directory, exclusively locked; raise CannotWrite after so many seconds."""
        began = monotonic()
        for _ in range(2):
            # A lock is shared with the process that was forked from: a child opens its own.
            if self._lock is None or self._process != system.getpid():
                self.close()
                self._open()
            try:
                if not self._wait(began, seconds):
                    raise CannotWrite(
                        ".gsd/%s is held by another process" % LOCK_NAME,
                        "wait for it or end it, then try again",
                    )
                if self._identities() == self._seen:
                    return self.directory
            except FileNotFoundError:
                pass  # replaced while we waited: try once more with the new one
            except OSError as error:
                raise CannotWrite(
                    "this file system cannot lock .gsd/%s: %s" % (LOCK_NAME, explain(error)),
                    "use a local disk",
                ) from error
            self.close()
        raise CannotWrite("%s keeps being replaced" % self.path, "find out who moves it")

    def _wait(self, began: float, seconds: float) -> bool:
        """Wait for the turn, then for the lock; return whether it was taken in time."""
        lock: Any = self._lock
        if began < self._slice_ends and try_lock(lock):
            return True
        # Only Windows locks single bytes, and only Unix locks directories.
        turn = (self.directory, 0) if isinstance(self.directory, int) else (lock, 1)
        has_turn = False
        try:
            while True:
                waited = monotonic() - began
                has_turn = has_turn or _try_turn(*turn)
                # A stopped process may have the turn: after half of the time, go on without it.
                if (has_turn or waited >= seconds / 2) and try_lock(lock):
                    self._slice_ends = monotonic() + _SLICE
                    return True
                if waited >= seconds:
                    return False
                sleep(min(_NEXT if has_turn else _OTHERS, seconds - waited))
        finally:
            unlock(*turn)

    def _open(self) -> None:
        self.directory = open_directory(self.path)
        try:
            self._lock = open_regular(self.directory, LOCK_NAME, WRITE | CREATE)
            self._process = system.getpid()
            self._seen = (file_id(self._lock), file_id(self.directory))
        except BaseException:
            self.close()
            raise

    def _identities(self) -> tuple[Any, Any]:
        """Which files the names stand for now."""
        return identity(self.directory, LOCK_NAME), path_id(self.path, self.directory)

    def release(self) -> None:
        if self._lock is not None:
            unlock(self._lock)

    def close(self) -> None:
        """Let go of everything. A forked child only closes: the lock is still its parent's."""
        if self._lock is not None:
            if self._process == system.getpid():
                self.release()
            close(self._lock)
            self._lock = None
        close_directory(self.directory)
        self.directory = ""


def wait_for_writer(directory: Directory, seconds: float) -> bool:
    """Return True once no append is in progress, False if one may still be after so many seconds."""
    deadline = monotonic() + seconds
    try:
        fd = open_regular(directory, LOCK_NAME, READ)
    except FileNotFoundError:
        return True
    try:
        while not try_lock(fd, shared=True):
            if monotonic() >= deadline:
                return False
            sleep(_READER)
    except OSError:
        return False
    else:
        return True
    finally:
        unlock(fd)
        close(fd)


def unlock(fd: int, byte: int = 0) -> None:
    try:
        if sys.platform == "win32":
            system.lseek(fd, byte, 0)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        pass  # another process has it; closing the file releases ours in any case

"""One writer at a time: a lock file that is never unlinked, and a deadline instead of a hang."""

from __future__ import annotations

import sys
from time import monotonic, sleep

from gsd_fsm.core.disk import (
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
    system,
)
from gsd_fsm.core.errors import CannotWrite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.disk import Directory

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = "journal.lock"


def _try_lock(fd: int, shared: bool) -> bool:
    try:
        if sys.platform == "win32":
            system.lseek(fd, 0, 0)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _poll_lock(fd: Any, shared: bool, deadline: float) -> bool:
    pause = 0.0005
    while not _try_lock(fd, shared):
        left = deadline - monotonic()
        if left <= 0:
            return False
        sleep(min(pause, left))
        # The step varies with the moment, so that waiters do not march in step.
        pause = min(pause * 1.5 + (monotonic() * 1e6 % 7) * 1e-5, 0.02)
    return True


class Hold:
    """The directory and the lock file of a journal, kept open from one append to the next."""

    __slots__ = ("_lock", "_process", "_seen", "directory", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.directory: Directory = ""
        self._lock: int | None = None
        self._process = 0
        self._seen: tuple[Any, Any] = (None, None)

    def acquire(self, seconds: float) -> Directory:
        """The directory, exclusively locked; CannotWrite when that cannot be had in time."""
        deadline = monotonic() + seconds
        for _ in range(2):
            # A lock is shared with the process that was forked from: a child opens its own.
            if self._lock is None or self._process != system.getpid():
                self.close()
                self._open()
            try:
                if not _poll_lock(self._lock, False, deadline):
                    raise CannotWrite(
                        ".gsd/%s is held by another process" % LOCK_NAME,
                        "wait for it or end it, then try again",
                    )
                if self._identities() == self._seen:
                    return self.directory
            except FileNotFoundError:
                pass  # replaced while we waited: once more with the new one
            except OSError as error:
                raise CannotWrite(
                    "this file system cannot lock .gsd/%s: %s" % (LOCK_NAME, explain(error)),
                    "use a local disk",
                ) from error
            self.close()
        raise CannotWrite("%s keeps being replaced" % self.path, "find out who moves it")

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
            _unlock(self._lock)

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
    """True once no append is under way; False when one may still be (a reader goes on anyway)."""
    try:
        fd = open_regular(directory, LOCK_NAME, READ)
    except FileNotFoundError:
        return True
    try:
        return _poll_lock(fd, True, monotonic() + seconds)
    except OSError:
        return False
    finally:
        _unlock(fd)
        close(fd)


def _unlock(fd: int) -> None:
    try:
        if sys.platform == "win32":
            system.lseek(fd, 0, 0)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        pass  # it was not ours; closing lets go of it in any case

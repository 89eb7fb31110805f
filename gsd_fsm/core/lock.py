"""One writer at a time: a lock file that is never unlinked, and a deadline instead of a hang."""

from __future__ import annotations

import sys
from time import monotonic, sleep

from gsd_fsm.core.disk import CREATE, READ, WRITE, close, explain, identity, open_regular, system
from gsd_fsm.core.errors import CannotWrite

TYPE_CHECKING = False
if TYPE_CHECKING:
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


def _poll_lock(fd: int, shared: bool, deadline: float) -> bool:
    pause = 0.0005
    while not _try_lock(fd, shared):
        left = deadline - monotonic()
        if left <= 0:
            return False
        sleep(min(pause, left))
        # The step varies with the descriptor and the moment, so that waiters do not march in step.
        pause = min(pause * 1.5 + (monotonic() * 1e6 % 7) * 1e-5, 0.02)
    return True


def acquire_lock(directory: Directory, seconds: float) -> int:
    """The exclusive lock, or CannotWrite when it cannot be had in time."""
    deadline = monotonic() + seconds
    for _ in range(2):
        fd = open_regular(directory, LOCK_NAME, WRITE | CREATE)
        try:
            if not _poll_lock(fd, False, deadline):
                raise CannotWrite(
                    ".gsd/%s is held by another process" % LOCK_NAME,
                    "wait for it or end it, then try again",
                )
            info = system.fstat(fd)
            if (info.st_dev, info.st_ino) == identity(directory, LOCK_NAME):
                return fd
        except FileNotFoundError:
            pass  # replaced while we waited: once more with the new one
        except OSError as error:
            release_lock(fd)
            raise CannotWrite(
                "this file system cannot lock .gsd/%s: %s" % (LOCK_NAME, explain(error)),
                "use a local disk",
            ) from error
        except BaseException:
            release_lock(fd)
            raise
        release_lock(fd)
    raise CannotWrite(".gsd/%s keeps being replaced" % LOCK_NAME, "find out who removes it")


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
        release_lock(fd)


def release_lock(fd: int) -> None:
    if sys.platform == "win32":
        try:
            system.lseek(fd, 0, 0)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        except OSError:
            pass  # it was not ours
    close(fd)

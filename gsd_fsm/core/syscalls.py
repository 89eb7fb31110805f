"""The system calls that the journal needs, without the cost of importing `os`: open, lock, read, sync.

On Unix a directory is an open descriptor and its files are opened relative to it, so that nobody
can swap the directory under us; on Windows it is a path.

One writer at a time: the lock file is never unlinked, and waiting ends at a deadline. The lock alone
excludes other writers. The turn orders the processes that wait for it: only the one that has the
turn polls for the lock, and it gives the turn back once it has the lock. A writer that wants the
lock again may take it without the turn for a moment, because handing it over at every append would
cost a switch of processes each; then it gets it after those that already wait.
"""

from __future__ import annotations

import sys
from time import monotonic, sleep

from gsd_fsm.core.errors import CannotWrite, NotFound
from gsd_fsm.core.system import join, parent_of, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    Directory = Union[int, str]

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_NOFOLLOW = getattr(system, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(system, "O_NONBLOCK", 0)
# Without O_BINARY Windows turns "\n" into "\r\n" and every sum breaks.
_BINARY = getattr(system, "O_BINARY", 0) | getattr(system, "O_NOINHERIT", 0)
READ = system.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY
WRITE = system.O_RDWR | system.O_APPEND | _NOFOLLOW | _NONBLOCK | _BINARY
CREATE = system.O_CREAT
EXCLUSIVE = system.O_EXCL

LOCK_NAME = "journal.lock"
# Seconds between two attempts: of the process that has the turn, of the others, of a reader.
_NEXT = 0.0002
_OTHERS = 0.005
_READER = 0.001
# Seconds for which a process may take the lock again without the turn.
_SLICE = 0.005

_S_IFMT, _S_IFREG, _S_IFDIR = 0o170000, 0o100000, 0o040000
MAX_SIZE = 1 << 36
_PIECE = 1 << 20


# errors


def explain(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _hint(error: OSError, otherwise: str = "Fix the cause, then retry.") -> str:
    if isinstance(error, PermissionError):
        return "Check its permissions: you must be able to read and write it."
    from errno import ENOSPC, EROFS

    if error.errno == ENOSPC:
        return "Free disk space, then retry."
    return "Make the file system writable, then retry." if error.errno == EROFS else otherwise


def stopped_by(error: OSError, what: str) -> CannotWrite:
    """Return the error of the system as one of ours: what it concerns, why, and what to do."""
    return CannotWrite("%s: %s" % (what, explain(error)), _hint(error))


# directories and files


def open_directory(path: str) -> Directory:
    """Open the directory itself: not a link to one, and owned by this user."""
    try:
        if sys.platform == "win32":
            info = system.lstat(path)
            if info.st_mode & _S_IFMT != _S_IFDIR or info.st_reparse_tag != 0:
                raise CannotWrite("%s is not a directory" % path, "Rename or remove it.")
            return path
        fd = system.open(path, system.O_RDONLY | system.O_DIRECTORY | _NOFOLLOW)
    except FileNotFoundError:
        raise NotFound("%s does not exist" % path, "Run: gsd-fsm start --help") from None
    except OSError as error:
        raise CannotWrite(
            "%s cannot be used: %s" % (path, explain(error)),
            _hint(error, "It must be a directory of yours, not a link to one."),
        ) from error
    if not _is_ours(_info_of(fd, path)):
        close_directory(fd)
        raise CannotWrite("%s belongs to another user" % path, "Only its owner can use it.")
    return fd


def _info_of(fd: int, name: str) -> Any:
    try:
        return system.fstat(fd)
    except OSError as error:
        close(fd)
        raise CannotWrite("%s cannot be used: %s" % (name, explain(error))) from error


def close(fd: int) -> None:
    """Close a descriptor. What matters was synced before: a failure here changes nothing."""
    try:
        system.close(fd)
    except OSError:
        pass


def _is_ours(info: Any) -> bool:
    return bool(sys.platform == "win32" or info.st_uid == system.geteuid())


def close_directory(directory: Directory) -> None:
    if isinstance(directory, int):
        close(directory)


def open_in(directory: Directory, name: str, flags: int, mode: int = 0o600) -> int:
    if isinstance(directory, int):
        return system.open(name, flags, mode, dir_fd=directory)
    return system.open(join(directory, name), flags, mode)


def open_regular(directory: Directory, name: str, flags: int) -> int:
    """Open a regular file of this user with one name, else raise CannotWrite or FileNotFoundError."""
    try:
        fd = open_in(directory, name, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CannotWrite(
            ".gsd/%s cannot be opened: %s" % (name, explain(error)),
            _hint(error, "It must be a regular file of yours, not a link, pipe or device."),
        ) from error
    info = _info_of(fd, ".gsd/%s" % name)
    wrong = ""
    if not is_regular(info):
        wrong = "is not a regular file"
    elif not _is_ours(info):
        wrong = "belongs to another user"
    elif info.st_nlink > 1:
        wrong = "has a second name (hard link)"
    elif info.st_size > MAX_SIZE:
        wrong = "is larger than 64 GiB"
    if wrong:
        close(fd)
        raise CannotWrite(".gsd/%s %s" % (name, wrong), "Rename or remove it.")
    return fd


def is_regular(info: Any) -> bool:
    return bool(info.st_mode & _S_IFMT == _S_IFREG)


def look_up(directory: Directory, name: str) -> Any:
    """Return what a name stands for now, without following a link."""
    if isinstance(directory, int):
        return system.stat(name, dir_fd=directory, follow_symlinks=False)
    return system.lstat(join(directory, name))


def file_id(fd: Directory) -> tuple[int, int]:
    """Return which file an open descriptor is."""
    info = system.fstat(fd) if isinstance(fd, int) else system.lstat(fd)
    return info.st_dev, info.st_ino


def rename_in(directory: Directory, old: str, new: str) -> None:
    if isinstance(directory, int):
        system.replace(old, new, src_dir_fd=directory, dst_dir_fd=directory)
    else:
        system.replace(join(directory, old), join(directory, new))


def unlink_in(directory: Directory, name: str) -> None:
    if isinstance(directory, int):
        system.unlink(name, dir_fd=directory)
    else:
        system.unlink(join(directory, name))


# bytes


def read_at(fd: int, offset: int, size: int) -> bytes:
    """Read up to `size` bytes from `offset`, fewer only at the end of the file."""
    parts = []
    while size > 0:
        if sys.platform == "win32":
            system.lseek(fd, offset, 0)
            part = system.read(fd, size)
        else:
            part = system.pread(fd, size, offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_file(path: str, offset: int, size: int) -> bytes:
    """Return up to `size` bytes of a file from `offset`; OSError or ValueError if it is unreadable."""
    fd = system.open(path, READ)
    try:
        return read_at(fd, offset, size)
    finally:
        close(fd)


def copy_bytes(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        view = memoryview(read_at(source, start, min(_PIECE, end - start)))
        start += len(view) or end
        while view:
            view = view[system.write(target, view) :]


def sync(fd: int) -> None:
    """Make everything written to the file durable. A failure is final: a retry may report success without syncing."""
    if sys.platform == "darwin":
        from errno import EINVAL, ENOTSUP, ENOTTY

        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            # Some file systems do not know it. Any other failure is final.
            if error.errno not in (ENOTSUP, ENOTTY, EINVAL):
                raise
        else:
            return
    system.fsync(fd)


def sync_directory(directory: Directory) -> None:
    if isinstance(directory, int):
        system.fsync(directory)


def sync_parent(path: str) -> None:
    """Sync the directory that holds a new entry, so that the entry survives a power failure."""
    if sys.platform != "win32":
        fd = system.open(parent_of(path), system.O_RDONLY | system.O_DIRECTORY)
        try:
            system.fsync(fd)
        finally:
            system.close(fd)


# locks


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


def unlock(fd: int, byte: int = 0) -> None:
    try:
        if sys.platform == "win32":
            system.lseek(fd, byte, 0)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        pass  # another process has it; closing the file releases ours in any case


class LockedDir:
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
                        "Wait for that process or end it, then retry.",
                    )
                if self._identities() == self._seen:
                    return self.directory
            except FileNotFoundError:
                pass  # replaced while we waited: try once more with the new one
            except OSError as error:
                raise CannotWrite(
                    "this file system cannot lock .gsd/%s: %s" % (LOCK_NAME, explain(error)),
                    "Use a local disk.",
                ) from error
            self.close()
        raise CannotWrite(
            "%s was replaced twice while waiting for its lock" % self.path,
            "Find the process that replaces it.",
        )

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
        """Return which lock file and directory the names stand for now."""
        lock = look_up(self.directory, LOCK_NAME)
        # On Windows the path is all there is.
        place = system.stat(self.path, follow_symlinks=not isinstance(self.directory, int))
        return (lock.st_dev, lock.st_ino), (place.st_dev, place.st_ino)

    def release(self) -> None:
        if self._lock is not None:
            unlock(self._lock)

    def close(self) -> None:
        """Close everything. A forked child only closes: the lock is still its parent's."""
        if self._lock is not None:
            if self._process == system.getpid():
                self.release()
            close(self._lock)
            self._lock = None
        close_directory(self.directory)
        self.directory = ""


def _try_turn(fd: int, byte: int) -> bool:
    try:
        return try_lock(fd, byte)
    except OSError:
        return True  # a file system that cannot lock directories has no turns


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

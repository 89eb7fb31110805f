"""The few system calls the journal is made of, without the cost of importing `os`.

On Unix a directory is an open descriptor and its files are opened relative to it, so that nobody
can swap the directory under us; on Windows it is a path.
"""

from __future__ import annotations

import sys

from gsd_fsm.core.errors import CannotWrite, NotFound
from gsd_fsm.core.paths import parent_of
from gsd_fsm.core.system import join, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    Directory = Union[int, str]

_NOFOLLOW = getattr(system, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(system, "O_NONBLOCK", 0)
# Without O_BINARY Windows turns "\n" into "\r\n" and every sum breaks.
_BINARY = getattr(system, "O_BINARY", 0) | getattr(system, "O_NOINHERIT", 0)
READ = system.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY
WRITE = system.O_RDWR | system.O_APPEND | _NOFOLLOW | _NONBLOCK | _BINARY
CREATE = system.O_CREAT
EXCLUSIVE = system.O_EXCL

_LATER = "free the cause, then try again"
_S_IFMT, _S_IFREG, _S_IFDIR = 0o170000, 0o100000, 0o040000
MAX_SIZE = 1 << 36


def explain(error: OSError) -> str:
    return error.strerror or type(error).__name__


def way_out(error: OSError, otherwise: str) -> str:
    if isinstance(error, PermissionError):
        return "give yourself the right to read and write it"
    from errno import ENOSPC, EROFS

    return _LATER if error.errno in (ENOSPC, EROFS) else otherwise


def stopped_by(error: OSError, what: str) -> CannotWrite:
    """The system's refusal as our own error: what it concerns, why, and the way out."""
    return CannotWrite("%s: %s" % (what, explain(error)), way_out(error, _LATER))


def open_directory(path: str) -> Directory:
    """The directory itself: not a link to one, and owned by this user."""
    try:
        if sys.platform == "win32":
            info = system.lstat(path)
            is_link = info.st_reparse_tag != 0
            if info.st_mode & _S_IFMT != _S_IFDIR or is_link:
                raise CannotWrite("%s is not a plain directory" % path)
            return path
        fd = system.open(path, system.O_RDONLY | system.O_DIRECTORY | _NOFOLLOW)
    except FileNotFoundError:
        raise NotFound("%s does not exist" % path, "gsd-fsm start --help") from None
    except OSError as error:
        raise CannotWrite(
            "%s cannot be used: %s" % (path, explain(error)),
            way_out(error, "it must be a real directory of yours, not a link"),
        ) from error
    if not _is_ours(_look_at(fd, path).st_uid):
        close_directory(fd)
        raise CannotWrite("%s belongs to another user" % path, "only its owner can work there")
    return fd


def _look_at(fd: int, name: str) -> Any:
    try:
        return system.fstat(fd)
    except OSError as error:
        close(fd)
        raise CannotWrite("%s cannot be used: %s" % (name, explain(error))) from error


def close(fd: int) -> None:
    """Let go of a descriptor. What matters was synced before: a failure here changes nothing."""
    try:
        system.close(fd)
    except OSError:
        pass


def _is_ours(uid: int) -> bool:
    return sys.platform == "win32" or uid == system.geteuid()


def close_directory(directory: Directory) -> None:
    if isinstance(directory, int):
        close(directory)


def open_in(directory: Directory, name: str, flags: int, mode: int = 0o600) -> int:
    if isinstance(directory, int):
        return system.open(name, flags, mode, dir_fd=directory)
    return system.open(join(directory, name), flags, mode)


def open_regular(directory: Directory, name: str, flags: int) -> int:
    """A plain file of this user with one name, or CannotWrite; FileNotFoundError passes."""
    try:
        fd = open_in(directory, name, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CannotWrite(
            ".gsd/%s cannot be opened: %s" % (name, explain(error)),
            way_out(error, "it must be a plain file of yours, not a link, pipe or device"),
        ) from error
    info = _look_at(fd, ".gsd/%s" % name)
    wrong = ""
    if not is_regular(info):
        wrong = "is not a plain file"
    elif not _is_ours(info.st_uid):
        wrong = "belongs to another user"
    elif info.st_nlink > 1:
        wrong = "has a second name (hard link)"
    elif info.st_size > MAX_SIZE:
        wrong = "is larger than 64 GiB"
    if wrong:
        close(fd)
        raise CannotWrite(".gsd/%s %s" % (name, wrong), "move it away and look at it")
    return fd


def is_regular(info: Any) -> bool:
    return bool(info.st_mode & _S_IFMT == _S_IFREG)


def look_up(directory: Directory, name: str) -> Any:
    """What a name stands for now, without following a link."""
    if isinstance(directory, int):
        return system.stat(name, dir_fd=directory, follow_symlinks=False)
    return system.lstat(join(directory, name))


def identity(directory: Directory, name: str) -> tuple[int, int]:
    """Which file a name stands for now."""
    info = look_up(directory, name)
    return info.st_dev, info.st_ino


def file_id(fd: Directory) -> tuple[int, int]:
    """Which file an open descriptor is."""
    info = system.fstat(fd) if isinstance(fd, int) else system.lstat(fd)
    return info.st_dev, info.st_ino


def path_id(path: str, directory: Directory) -> tuple[int, int]:
    """Which directory the path stands for now; on Windows the path is all there is."""
    info = system.stat(path, follow_symlinks=not isinstance(directory, int))
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


def read_at(fd: int, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset`, fewer only at the end of the file."""
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


def sync(fd: int) -> None:
    """The one flush of an append. A failure is final: a second try may lie."""
    if sys.platform == "darwin":
        import fcntl
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

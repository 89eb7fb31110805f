"""Read whole files, and replace them in one step."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import CannotWrite, UsageError
from gsd_fsm.core.syscalls import explain


class Change(NamedTuple):
    """The old and the new content of a file; None means that it does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None
    private: bool = False


def target_of(path: Path) -> Path:
    """Return the file behind a link, so that the link stays a link."""
    try:
        real = Path(os.path.realpath(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be followed: {explain(error)}", "Fix the link.") from error
    if path.is_symlink() and not real.exists():
        raise UsageError(f"{path} is a broken link", f"Create {real}, or remove the link.")
    return real


def content_of(path: Path) -> bytes | None:
    """Return the content of a regular file; None if there is none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is not a regular file", "Move it away.")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotWrite(
            f"{path} cannot be read: {explain(error)}", f"Check its permissions: chmod u+r {path}"
        ) from error


def carry_out(change: Change) -> None:
    """Make the change in one step; raise CannotWrite if the file changed in the meantime."""
    path = change.path
    if content_of(path) != change.before:
        raise CannotWrite(f"{path} was changed in the meantime", "Run the command again.")
    try:
        if change.after is None:
            path.unlink()
        else:
            _replace(path, change.after, 0o600 if change.private else _mode_of_new_files())
    except OSError as error:
        raise CannotWrite(
            f"{path} cannot be written: {explain(error)}",
            "Check the permissions of the file and of its directory.",
        ) from error


def _mode_of_new_files() -> int:
    mask = os.umask(0o077)  # it can only be read by setting it
    os.umask(mask)
    return 0o666 & ~mask


def _replace(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
    if not mode & 0o222:
        raise CannotWrite(f"{path} is read-only", f"Run: chmod u+w {path}")
    fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise

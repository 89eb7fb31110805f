"""Change files: compute a change first, then replace the file in one step."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import CannotWrite, UsageError
from gsd_fsm.core.syscalls import explain
from gsd_fsm.documents.read import MAX_BYTES, Malformed, Unreadable, read_if_exists

_BOM = "\ufeff"
_MOST_BYTES = 1 << 30  # of a file that is replaced


class Change(NamedTuple):
    """The old and the new content of a file; None means that it does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None
    private: bool = False


class TextFile(NamedTuple):
    """A text file to edit; invalid UTF-8 and a BOM keep their bytes."""

    path: Path
    content: bytes | None

    @property
    def text(self) -> str:
        return (self.content or b"").decode("utf-8", "surrogateescape").removeprefix(_BOM)

    def changes(self, text: str) -> list[Change]:
        """Return the change that writes this text; none if the file has it already."""
        bom = _BOM if (self.content or b"").startswith(_BOM.encode()) else ""
        after = (bom + text).encode("utf-8", "surrogateescape")
        return [] if after == self.content else [Change(self.path, self.content, after)]


def open_text(project: Path, path: Path, limit: int = MAX_BYTES) -> TextFile:
    """Return a file of the project to edit, without content if it does not exist; follow links.

    Raise UsageError if it is not a text file, too large, or outside the project.
    """
    real = follow_link(path)
    if not real.is_relative_to(os.path.realpath(project)):
        hint = "Replace the link with a regular file."
        raise UsageError(f"{path} points outside the project: {real}", hint)
    content = current_content(real, limit)
    if content is not None and b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise Malformed(path, line, "not a text file (NUL byte)", "Save the file as UTF-8.")
    return TextFile(real, content)


def follow_link(path: Path) -> Path:
    """Return the file behind a link, so that the link stays a link."""
    try:
        real = Path(os.path.realpath(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be followed: {explain(error)}", "Fix the link.") from error
    if path.is_symlink() and not real.exists():
        raise UsageError(f"{path} is a broken link", f"Create {real}, or remove the link.")
    return real


def current_content(path: Path, limit: int = _MOST_BYTES) -> bytes | None:
    """Return the content of a regular file, None if there is none; raise CannotWrite or UsageError."""
    try:
        return read_if_exists(path, limit, "Rename or remove it.")
    except Unreadable as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise CannotWrite(error.message, f"Check its permissions: chmod u+r {path}") from error


def require_writable(path: Path) -> None:
    """Raise CannotWrite if the file could not be written."""
    if path.exists() and not stat.S_IMODE(path.stat().st_mode) & 0o222:
        raise CannotWrite(f"{path} is read-only", f"Run: chmod u+w {path}")
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    if not above.is_dir():
        raise CannotWrite(f"{above} is not a directory", "Rename or remove it.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise CannotWrite(f"{above} is not writable", f"Run: chmod u+wx {above}")


def write_change(change: Change) -> None:
    """Make the change in one step; raise CannotWrite if the file was changed in the meantime."""
    path = change.path
    if current_content(path) != change.before:
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

"""Read files safely: only regular files, without waiting, within a size limit, as UTF-8.

Every parser of this package reports problems as `Malformed`, which names file and line.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.syscalls import explain
from gsd_fsm.core.text.sanitize import display

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path  # expensive for commands that only redact a text

MAX_BYTES = 16 << 20
_PART_BYTES = 1 << 20
FIX_HINT = "Fix the file and retry."


class Unreadable(UsageError):
    """A file that cannot be read; the message names it."""


class Missing(Unreadable):
    """There is no file of that name."""


class Malformed(UsageError):
    """Text that cannot be parsed; the message names file, line and, if known, column."""

    def __init__(
        self, file: object, line: int, problem: str, hint: str = "", column: int = 0
    ) -> None:
        place = f"{file}:{line}" + (f":{column}" if column else "")
        if not file:
            place = f"line {line}" + (f", column {column}" if column else "")
        super().__init__(f"{place}: {problem}", hint or FIX_HINT)
        self.line = line
        self.problem = problem


class Mistakes(UsageError):
    """All mistakes of a file; each is a line of the message."""

    is_list = True

    def __init__(self, mistakes: Iterable[str], hint: str) -> None:
        super().__init__("\n".join(display(mistake) for mistake in mistakes), hint)


class Object(dict[str, Any]):
    """An object of a JSON or YAML text that knows its line and the lines of its keys."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def line_of(self, key: str) -> int:
        """Return the line of the key, or the first line of the object if it has no such key."""
        return self.lines.get(key, self.line)


def open_to_read(path: Path, name: str = "", hint: str = "", *, follow: bool = True) -> BinaryIO:
    """Open a regular file to read it; raise Missing or Unreadable, and never wait for a pipe.

    Without `follow`, a link in its place is refused.
    """
    name = name or str(path)
    try:
        # Checked twice: opening a device may act on it, and the file may be replaced in between.
        if stat.S_ISREG(path.stat(follow_symlinks=follow).st_mode):
            opener = _open_at_once if follow else _open_unlinked
            file = open(path, "rb", opener=opener)  # noqa: SIM115 - the caller closes it
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file
            file.close()
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.is_symlink():
            raise Missing(f"missing file: {name}", hint) from error
        why = explain(error) if isinstance(error, OSError) else str(error)
        raise Unreadable(f"{name}: cannot be read: {why}", hint) from error
    raise Unreadable(f"{name}: not a regular file", hint)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _open_unlinked(path: str, flags: int) -> int:
    return _open_at_once(path, flags | getattr(os, "O_NOFOLLOW", 0))


def read_bytes(
    path: Path, limit: int = MAX_BYTES, hint: str = "", name: str = "", *, follow: bool = True
) -> bytes:
    """Return the content of a regular file of at most `limit` bytes, or raise Unreadable.

    `name` is what messages call the file.
    """
    name = name or str(path)
    try:
        with open_to_read(path, name, hint, follow=follow) as file:
            content = _read(file, limit + 1)
    except OSError as error:
        raise Unreadable(f"{name}: cannot be read: {explain(error)}", hint) from error
    if len(content) > limit:
        unit = f"{limit >> 20} MiB" if limit >> 20 else f"{limit >> 10} KiB"
        raise Unreadable(f"{name}: larger than {unit}", hint)
    return content


def _read(file: BinaryIO, most: int) -> bytes:
    """Return at most that many bytes, read in parts: `read` reserves memory for all it may return."""
    content = bytearray()
    while part := file.read(min(_PART_BYTES, most - len(content))):
        content += part
    return bytes(content)


def read_if_exists(path: Path, limit: int = MAX_BYTES, hint: str = "") -> bytes | None:
    """Return the content as `read_bytes` does; None if there is no file. Reject a broken link."""
    try:
        return read_bytes(path, limit, hint)
    except Missing:
        return None


def read_text(path: Path, limit: int = MAX_BYTES, hint: str = "", name: str = "") -> str:
    """Return the text of a file as `decode` does, or raise Unreadable or Malformed."""
    return decode(read_bytes(path, limit, hint, name), name or path, hint)


def decode(content: bytes, file: object, hint: str = "") -> str:
    """Return the UTF-8 text without BOM and with LF line ends; raise Malformed for other bytes."""
    hint = hint or "Save the file as UTF-8."
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Malformed(file, line, "not valid UTF-8", hint) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Malformed(file, line, "not a text file (NUL byte)", hint)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def escapes(path: str) -> bool:
    """Return whether the text of a path may lead out of the directory it is relative to."""
    from pathlib import PureWindowsPath

    windows = PureWindowsPath(path)
    return path.startswith("/") or bool(windows.drive or windows.root) or ".." in windows.parts


def locate_inside(project: Path, path: str) -> Path:
    """Return the real path of a relative path; raise Unreadable if it is outside the project."""
    from pathlib import Path

    root = os.path.realpath(project)
    try:
        real = Path(os.path.realpath(Path(root) / path))
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: not a path: {error}") from error
    if "\0" in path or escapes(path) or not real.is_relative_to(root):
        raise Unreadable(f"{path}: points outside the project")
    return real


def read_inside(project: Path, path: str, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file in the project, or raise Unreadable."""
    return read_bytes(locate_inside(project, path), limit, name=path, follow=False)


def require_inside(project: Path, path: str) -> None:
    """Raise Unreadable unless a regular file is there, or a directory if the path ends in "/"."""
    real = locate_inside(project, path)
    if not path.endswith("/"):
        open_to_read(real, path, follow=False).close()
    elif not real.exists():
        raise Missing(f"missing file: {path}")
    elif not real.is_dir():
        raise Unreadable(f"{path}: not a directory")


def is_inside(project: Path, path: str) -> bool:
    """Return whether `require_inside` accepts the path."""
    try:
        require_inside(project, path)
    except Unreadable:
        return False
    return True

"""Files inside of a project: what leads out of it is not even opened, what is no file not waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PureWindowsPath

MOST_BYTES = 16 << 20


class Unreadable(Exception):
    """Why a file cannot be read, in words that name it."""


class Missing(Unreadable):
    """There is nothing of that name."""


def escapes(path: str) -> bool:
    """Whether a path, by its text alone, may lead out of the directory it is relative to."""
    windows = PureWindowsPath(path)
    return path.startswith("/") or bool(windows.drive or windows.root) or ".." in windows.parts


def locate(project: Path, path: str) -> Path:
    """The real place of a path in the project; Unreadable if that is elsewhere."""
    root = os.path.realpath(project)
    try:
        real = os.path.realpath(Path(root) / path)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: not a path: {error}") from error
    if "\0" in path or escapes(path) or not (real + os.sep).startswith(root + os.sep):
        raise Unreadable(f"{path}: leads outside of the project")
    return Path(real)


def require_file(project: Path, path: str) -> None:
    """Unreadable unless a plain file is there; a path that ends in "/" is that of a directory."""
    mode = _mode(locate(project, path), path)
    if path.endswith("/"):
        if not stat.S_ISDIR(mode):
            raise Unreadable(f"{path}: not a directory")
    elif not stat.S_ISREG(mode):
        raise Unreadable(f"{path}: not a plain file")


def is_file(project: Path, path: str) -> bool:
    try:
        require_file(project, path)
    except Unreadable:
        return False
    return True


def read_inside(project: Path, path: str) -> bytes:
    """The bytes of a plain file in the project, or Unreadable."""
    real = locate(project, path)
    if not stat.S_ISREG(_mode(real, path)):
        raise Unreadable(f"{path}: not a plain file")
    try:
        with open(real, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable(f"{path}: not a plain file")
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise Unreadable(f"{path}: larger than 16 MiB")
    return content


def _mode(real: Path, path: str) -> int:
    try:
        return real.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise Missing(f"missing file: {path}") from None
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error


def _open_at_once(path: str, flags: int) -> int:
    # It was looked at a moment ago; a pipe or a link in its place must neither block nor mislead.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))

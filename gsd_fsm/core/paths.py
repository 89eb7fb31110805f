"""Locate the project that a directory belongs to: the nearest `.gsd` at or above it."""

from __future__ import annotations

import sys

from gsd_fsm.core.system import WINDOWS, getenv, join, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

GSD = ".gsd"


def exists(path: str) -> bool:
    try:
        system.lstat(path)
    except OSError:
        return False
    return True


def _file_id(path: str) -> tuple[int, int] | None:
    try:
        info = system.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def home() -> str:
    found = getenv("USERPROFILE" if WINDOWS else "HOME")
    if not found and sys.platform != "win32":
        import pwd

        try:
            found = pwd.getpwuid(system.geteuid()).pw_dir
        except KeyError:
            found = ""
    return found


def parent_of(path: str) -> str:
    stripped = path.rstrip("/\\" if WINDOWS else "/")
    cut = max(stripped.rfind("/"), stripped.rfind("\\") if WINDOWS else -1)
    share = WINDOWS and stripped.startswith("\\\\") and stripped.count("\\") < 4
    if cut < 0 or share:
        return path  # a drive, a share or a bare name has no parent
    head = stripped[:cut]
    if WINDOWS and head.endswith(":"):
        return head + "\\"
    return head or "/"


def walk_up(start: str) -> Iterator[str]:
    """Yield the directories from `start` up to the git root; stop before HOME and the root."""
    forbidden = _file_id(home()) if home() else None
    path = start
    while True:
        above = parent_of(path)
        if above == path or path in ("", "/") or _file_id(path) == forbidden:
            return
        yield path
        if exists(join(path, ".git")):
            return
        path = above


def nearest_gsd(start: str) -> str:
    """Return the nearest `.gsd` at or above `start`, "" if there is none."""
    for path in walk_up(start):
        gsd = join(path, GSD)
        if exists(gsd):
            return gsd
    return ""

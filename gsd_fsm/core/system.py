"""The operating system, without the cost of importing `os`: environment, paths, the nearest `.gsd`."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import nt

    system = nt
else:
    import posix

    system = posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

WINDOWS = sys.platform == "win32"
GSD = ".gsd"
# Nothing is buffered when it is called: finalizing the interpreter would only cost time.
leave = vars(system)["_exit"]  # missing in some type stubs


def getenv(name: str) -> str:
    """Return a variable's value, "" if unset; see changes made through `os` if it is loaded."""
    loaded = sys.modules.get("os")
    if loaded is not None:
        return str(loaded.environ.get(name, ""))
    if sys.platform == "win32":
        return str(system.environ.get(name.upper(), ""))
    return system.environ.get(name.encode(), b"").decode("utf-8", "surrogateescape")


def join(directory: str, name: str) -> str:
    return directory.rstrip("/" if not WINDOWS else "/\\") + ("\\" if WINDOWS else "/") + name


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
    forbidden = home()
    forbidden_id = _file_id(forbidden) if forbidden else None
    path = start
    while True:
        above = parent_of(path)
        if above == path or path in ("", "/") or _file_id(path) == forbidden_id:
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

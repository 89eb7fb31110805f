"""Where things are: the project's `.gsd`, the user's state directory, and what is trusted there."""

from __future__ import annotations

import sys

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.disk import (
    CREATE,
    WINDOWS,
    WRITE,
    close_directory,
    explain,
    getenv,
    join,
    open_directory,
    open_regular,
    read_at,
    stopped_by,
    system,
)
from gsd_fsm.core.errors import CannotWrite, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from gsd_fsm.core.disk import Directory

GSD = ".gsd"
IGNORED = (
    "journal.jsonl", "journal.jsonl.new", "journal.lock", "journal.broken-*", "snapshot.json",
    "snapshot.json.new", "hook.log", "STOP",
)  # fmt: skip


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
        return path  # a drive, a share or a bare name has nothing above it
    head = stripped[:cut]
    if WINDOWS and head.endswith(":"):
        return head + "\\"
    return head or "/"


def _walk_up(start: str) -> Iterator[str]:
    """The directories from here up to the git top, without HOME, the root and what is above."""
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


def find_gsd(start: str) -> str:
    """The nearest `.gsd` above, or NotFound."""
    for path in _walk_up(start):
        if exists(join(path, GSD)):
            return join(path, GSD)
    raise NotFound("there is no gsd-fsm project at or above %s" % start, "gsd-fsm start --help")


def new_gsd(start: str) -> str:
    """Where a new `.gsd` belongs: the git top, else here; never HOME or the root."""
    above = list(_walk_up(start))
    if not above:
        raise NotFound(
            "%s is no place for a project: it is your home or the root directory" % start,
            "change into a project, or name it with --project DIR",
        )
    top = above[-1] if exists(join(above[-1], ".git")) else start
    return join(top, GSD)


def make_gsd(path: str) -> None:
    """The directory, private when it is new, and a .gitignore that names our own files."""
    try:
        try:
            system.mkdir(path, 0o700)
        except FileExistsError:
            pass
        else:
            _sync_parent(path)
        directory = open_directory(path)
        try:
            _ignore_our_files(directory)
        finally:
            close_directory(directory)
    except OSError as error:
        raise stopped_by(error, "%s cannot be made" % path) from error


def _sync_parent(path: str) -> None:
    """Make a new directory outlive a power cut."""
    if sys.platform != "win32":
        fd = system.open(parent_of(path), system.O_RDONLY | system.O_DIRECTORY)
        try:
            system.fsync(fd)
        finally:
            system.close(fd)


def _ignore_our_files(directory: Directory) -> None:
    fd = open_regular(directory, ".gitignore", WRITE | CREATE)
    try:
        kept = read_at(fd, 0, 1 << 20)
        lines = kept.decode("utf-8", "replace").splitlines()
        new = [name for name in IGNORED if name not in lines]
        if new:
            glue = "\n" if kept and not kept.endswith(b"\n") else ""
            system.write(fd, (glue + "\n".join(new) + "\n").encode("ascii"))
    finally:
        system.close(fd)


def state_directory() -> str:
    """The user's state directory of this program; the one place where trust is kept."""
    if sys.platform == "win32":
        base = getenv("LOCALAPPDATA") or join(home(), "AppData\\Local")
    elif sys.platform == "darwin":
        base = join(home(), "Library/Application Support")
    else:
        base = getenv("XDG_STATE_HOME").strip()
        if not base.startswith("/"):
            base = join(home(), ".local/state")
    return join(base, "gsd-fsm")


def real_path(path: str) -> str:
    """The path without links, in the one spelling that the system gives it."""
    if sys.platform == "win32":
        final = str(vars(system)["_getfinalpathname"](path))  # as os.path.realpath
        return final.replace("\\\\?\\UNC\\", "\\\\", 1).replace("\\\\?\\", "", 1)
    loaded = sys.modules.get("os")
    if loaded is not None:
        return str(loaded.path.realpath(path))
    try:
        before = system.getcwd()
    except OSError:
        before = ""  # it was deleted under us: there is nothing to go back to
    system.chdir(path)
    try:
        return system.getcwd()
    finally:
        if before:
            system.chdir(before)


def _journals() -> str:
    return join(state_directory(), "journals")


def _entry(journal_id: str, gsd: str) -> str:
    return join(_journals(), "%s-%s" % (journal_id, digest_of(gsd)))


def make_directories(path: str) -> None:
    if not exists(path):
        make_directories(parent_of(path))
        try:
            system.mkdir(path, 0o700)
        except FileExistsError:
            pass  # somebody else was faster


def is_registered(journal_id: str, gsd: str) -> bool:
    """Whether this user has started or trusted this very journal at this very place."""
    return bool(journal_id) and exists(_entry(journal_id, real_path(gsd)))


def is_known_place(gsd: str) -> bool:
    """Whether this user has started or trusted any journal at this place, whatever it holds now."""
    try:
        suffix = "-" + digest_of(real_path(gsd))
        return any(name.endswith(suffix) for name in system.listdir(_journals()))
    except OSError:
        return False


def register(journal_id: str, gsd: str, now: int) -> None:
    """Trust this journal from now on."""
    real = real_path(gsd)
    entry = _entry(journal_id, real)
    try:
        make_directories(parent_of(entry))
        text = dumps({"id": journal_id, "path": real, "registered": to_iso(now)}) + "\n"
        with open(entry, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            system.fsync(file.fileno())
        _sync_parent(entry)
    except OSError as error:
        raise CannotWrite(
            "the journal cannot be registered in %s: %s" % (state_directory(), explain(error)),
            "make that directory writable",
        ) from error

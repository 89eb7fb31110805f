"""Find and create the `.gsd` of a project; record which journals this user trusts."""

from __future__ import annotations

import sys

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.syscalls import (
    CREATE,
    READ,
    WRITE,
    close,
    close_directory,
    explain,
    open_directory,
    open_regular,
    read_at,
    stopped_by,
    sync_parent,
)
from gsd_fsm.core.system import (
    GSD,
    exists,
    getenv,
    home,
    join,
    nearest_gsd,
    parent_of,
    system,
    walk_up,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_JOURNAL = "journal.jsonl"
# The bytes that are read of an entry in the registry, and of the first line of a journal.
_LONGEST = 1 << 14
_UNREADABLE = (OSError, GsdError, ValueError, TypeError, KeyError)
IGNORED = (
    _JOURNAL, "journal.jsonl.new", "journal.lock", "journal.broken-*", "snapshot.json",
    "snapshot.json.new", "hook.log", "STOP", "replaced/",
)  # fmt: skip


def find_gsd(start: str) -> str:
    """Return the nearest `.gsd` at or above `start`; raise NotFound if there is none."""
    found = nearest_gsd(start)
    if not found:
        raise NotFound("no gsd-fsm project at or above %s" % start, "Run: gsd-fsm start --help")
    return found


def new_gsd(start: str) -> str:
    """Return the path for a new `.gsd`: at the git root, else in `start`; never HOME or the root."""
    above = list(walk_up(start))
    if not above:
        raise NotFound(
            "%s cannot be a project: it is your home or the root directory" % start,
            "Change to a project directory, or add: --project DIR",
        )
    top = above[-1] if exists(join(above[-1], ".git")) else start
    return join(top, GSD)


def make_gsd(path: str) -> None:
    """Create the directory, private if it is new, and list our own files in its .gitignore."""
    try:
        try:
            system.mkdir(path, 0o700)
        except FileExistsError:
            pass
        else:
            sync_parent(path)
        directory = open_directory(path)
        try:
            fd = open_regular(directory, ".gitignore", WRITE | CREATE)
            try:
                _ignore_our_files(fd)
            finally:
                system.close(fd)
        finally:
            close_directory(directory)
    except OSError as error:
        raise stopped_by(error, "%s cannot be created" % path) from error


def _ignore_our_files(fd: int) -> None:
    kept = read_at(fd, 0, 1 << 20)
    lines = kept.decode("utf-8", "replace").splitlines()
    new = [name for name in IGNORED if name not in lines]
    if new:
        glue = "\n" if kept and not kept.endswith(b"\n") else ""
        system.write(fd, (glue + "\n".join(new) + "\n").encode("ascii"))


# trust


def state_directory() -> str:
    """Return the state directory of this program, the only place where trust is recorded."""
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
    """Return the path without links, spelled as the system spells it."""
    if sys.platform == "win32":
        final = str(vars(system)["_getfinalpathname"](path))  # as os.path.realpath
        return final.replace("\\\\?\\UNC\\", "\\\\", 1).replace("\\\\?\\", "", 1)
    loaded = sys.modules.get("os")
    if loaded is not None:
        return str(loaded.path.realpath(path))
    try:
        before = system.getcwd()
    except OSError:
        before = ""  # it was deleted: there is nothing to return to
    system.chdir(path)
    try:
        return system.getcwd()
    finally:
        if before:
            system.chdir(before)


def make_directories(path: str) -> None:
    if not exists(path):
        make_directories(parent_of(path))
        try:
            system.mkdir(path, 0o700)
        except FileExistsError:
            pass  # created by another process meanwhile


def _journals() -> str:
    return join(state_directory(), "journals")


def _entry(journal_id: str, gsd: str) -> str:
    return join(_journals(), "%s-%s" % (journal_id, digest_of(gsd)))


def is_registered(journal_id: str, gsd: str) -> bool:
    """Return whether this user has started or trusted this journal at this place.

    Raise CannotWrite if that is not known: a journal must not be called untrusted by mistake.
    """
    if not journal_id:
        return False
    entry = _entry(journal_id, real_path(gsd))
    try:
        system.lstat(entry)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise stopped_by(error, "%s cannot be read" % entry) from error
    return True


def place_digest(gsd: str) -> str:
    """Return the digest that names this place, also if the directory cannot be entered."""
    try:
        return digest_of(real_path(gsd))
    except OSError:
        return digest_of(join(real_path(parent_of(gsd)), GSD))


def is_known_place(gsd: str) -> bool:
    """Return whether this user has started or trusted any journal at this place."""
    try:
        suffix = "-" + place_digest(gsd)
        return any(name.endswith(suffix) for name in system.listdir(_journals()))
    except OSError:
        return False


def is_moved(gsd: str) -> bool:
    """Return whether a journal of this user is here, and at none of its registered places."""
    try:
        journal_id = first_id(gsd)
        names = [it for it in system.listdir(_journals()) if it.startswith(journal_id + "-")]
        entries = [_read_entry(join(_journals(), name)) for name in names]
    except _UNREADABLE:
        return False
    places = [str(entry["path"]) for entry in entries if entry.get("id") == journal_id]
    return bool(places) and not any(_has_journal(place, journal_id) for place in places)


def _has_journal(gsd: str, journal_id: str) -> bool:
    try:
        return first_id(gsd) == journal_id
    except _UNREADABLE:
        return False


def first_id(gsd: str) -> str:
    """Return the id that the first line of the journal names; raise an error if it cannot be read."""
    directory = open_directory(gsd)
    try:
        fd = open_regular(directory, _JOURNAL, READ)
        try:
            line = read_at(fd, 0, _LONGEST).partition(b"\n")[0]
        finally:
            close(fd)
    finally:
        close_directory(directory)
    return str(parse_json(line.decode("ascii"))["data"]["id"])


def _read_entry(path: str) -> dict[str, Any]:
    with open(path, encoding="ascii") as file:
        entry = parse_json(file.read(_LONGEST).strip())
    return entry if type(entry) is dict else {}


def register(journal_id: str, gsd: str, now: int) -> None:
    """Record that this user trusts this journal at this place."""
    real = real_path(gsd)
    entry = _entry(journal_id, real)
    try:
        make_directories(parent_of(entry))
        text = dumps({"id": journal_id, "path": real, "registered": to_iso(now)}) + "\n"
        with open(entry, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            system.fsync(file.fileno())
        sync_parent(entry)
    except OSError as error:
        raise CannotWrite(
            "cannot register the journal in %s: %s" % (state_directory(), explain(error)),
            "Make that directory writable.",
        ) from error

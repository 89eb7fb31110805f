"""The journals that this user has started or trusted, registered in the user's state directory."""

from __future__ import annotations

import sys

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.paths import exists, home, parent_of
from gsd_fsm.core.syscalls import explain, sync_parent
from gsd_fsm.core.system import getenv, join, system


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
            pass  # created by another process meanwhile


def is_registered(journal_id: str, gsd: str) -> bool:
    """Return whether this user has started or trusted this journal at this place."""
    return bool(journal_id) and exists(_entry(journal_id, real_path(gsd)))


def is_known_place(gsd: str) -> bool:
    """Return whether this user has started or trusted any journal at this place."""
    try:
        suffix = "-" + digest_of(real_path(gsd))
        return any(name.endswith(suffix) for name in system.listdir(_journals()))
    except OSError:
        return False


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
            "the journal cannot be registered in %s: %s" % (state_directory(), explain(error)),
            "make that directory writable",
        ) from error

"""Remember in the user's state directory which answers were given, and which stops failed."""

from __future__ import annotations

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.schema import check_time
from gsd_fsm.core.project import make_directories, real_path, state_directory
from gsd_fsm.core.syscalls import (
    CREATE,
    READ,
    WRITE,
    close,
    close_directory,
    open_directory,
    open_regular,
    read_at,
    try_lock,
)
from gsd_fsm.core.system import exists, join, system
from gsd_fsm.core.text.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from gsd_fsm.core.journal.journal import Transaction
    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.state import Loop

    # Returns the lines to keep, None to leave the file unchanged.
    Change = Callable[[list[str]], Optional[list[str]]]

# The bytes that are read of a file, and the failures in it: more would not fit.
_MAX_BYTES = 1 << 14
_MOST_FAILURES = 12
_LONGEST_WORDS = 600
_FAILURES = "failures"


def first_time(what: str, loops: Loops, gsd: str, name: str, most: int) -> bool:
    """Return whether this is the first time in the project of this journal, and remember it.

    Only the last `most` names are stored. Return False if that fails.
    """

    def add(known: list[str]) -> list[str] | None:
        return None if name in known else [*known, name][-most:]

    return _update(what, "%s-%s" % (loops.journal_id, digest_of(gsd)), add)


def _update(what: str, file: str, change: Change) -> bool:
    """Return whether a file of the state directory was changed."""
    folder = join(state_directory(), what)
    try:
        make_directories(folder)
        directory = open_directory(folder)
        try:
            fd = open_regular(directory, file, WRITE | CREATE)
            try:
                return try_lock(fd, _MAX_BYTES) and _rewrite(fd, change)
            finally:
                close(fd)
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return False


def _rewrite(fd: int, change: Change) -> bool:
    known = read_at(fd, 0, _MAX_BYTES).decode("utf-8", "replace").split("\n")[:-1]
    kept = change(known)
    if kept is None:
        return False
    system.ftruncate(fd, 0)
    system.write(fd, ("\n".join(kept) + "\n").encode("utf-8", "replace"))
    return True


# failed stops


class FailedStop:
    """A stop that was allowed without a decision; `at`: its time, as in the journal."""

    __slots__ = ("at", "reason", "session")

    def __init__(self, at: str, session: str, reason: str) -> None:
        self.at = at
        self.session = session
        self.reason = reason


def remember_failure(gsd: str, session: str, reason: str) -> None:
    """Remember why a stop of this session was allowed without a decision.

    A repeated failure replaces the one before.
    """
    from gsd_fsm.core.text.redact import redact

    failed = FailedStop(to_iso(now_ms()), session, one_line(redact(reason), _LONGEST_WORDS))
    line = dumps({"at": failed.at, "session": failed.session, "reason": failed.reason})

    def add(known: list[str]) -> list[str]:
        last = _parsed(known[-1]) if known else None
        same = last and (last.session, last.reason) == (failed.session, failed.reason)
        return [*(known[:-1] if same else known), line][-_MOST_FAILURES:]

    try:
        _update(_FAILURES, digest_of(real_path(gsd)), add)
    except OSError:
        pass  # the project was deleted, and its log with it


def unrecorded_failures(gsd: str, loop: Loop) -> list[FailedStop]:
    """Return the failed stops of the owner of this loop that are not in its journal yet."""
    folder = join(state_directory(), _FAILURES)
    if not loop.owner or not exists(folder):
        return []
    try:
        directory = open_directory(folder)
        try:
            fd = open_regular(directory, digest_of(real_path(gsd)), READ)
            try:
                lines = read_at(fd, 0, _MAX_BYTES).decode("utf-8", "replace").split("\n")
            finally:
                close(fd)
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return []
    since = max(loop.failed_at, loop.first_ts)
    failed = [it for it in map(_parsed, lines) if it is not None]
    return [it for it in failed if it.session == loop.owner and it.at > since]


def _parsed(line: str) -> FailedStop | None:
    try:
        facts: Any = parse_json(line)
        check_time(facts["at"])
        return FailedStop(
            facts["at"], str(facts["session"]), one_line(str(facts["reason"]), _LONGEST_WORDS)
        )
    except (ValueError, TypeError, KeyError):
        return None


def append_failures(tx: Transaction, loop: Loop, by: str = "") -> None:
    """Append the failed stops of this live loop that are not in its journal yet."""
    for failed in unrecorded_failures(tx.path, loop):
        tx.append(loop, "stop", {"code": "error", "reason": failed.reason, "at": failed.at}, by)

"""Remember in the user's state directory which answers were given, and which stops failed."""

from __future__ import annotations

from time import sleep

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.codec import digest_of, dumps
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.schema import check_time
from gsd_fsm.core.project import make_directories, place_digest, state_directory
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

    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.journal.journal import Transaction
    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.state import Loop

    # Returns the lines to keep, None to leave the file unchanged.
    Change = Callable[[list[str]], Optional[list[str]]]

# The bytes that are read of a file; the failures that are kept, also of one session, and the
# length of their reasons: more would not fit.
_MAX_BYTES = 1 << 17
_MOST_FAILURES = 60
_MOST_OF_SESSION = 3
_LONGEST_REASON = 300
_FAILURES = "failures"
# How often another process that has locked a file is waited for.
_TRIES = 20


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
                return _locked(fd) and _rewrite(fd, change)
            finally:
                close(fd)
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return False


def _locked(fd: int) -> bool:
    """Return whether the file is locked by this process, at the latest after a moment."""
    for _ in range(_TRIES):
        if try_lock(fd, _MAX_BYTES):
            return True
        sleep(0.01)
    return False


def _rewrite(fd: int, change: Change) -> bool:
    data = read_at(fd, 0, _MAX_BYTES).decode("utf-8", "replace")
    known = data.split("\n")[:-1]
    kept = change(known)
    if kept is None:
        return False
    # Lines that stay are not written again: on a full disk they would be lost.
    if kept[: len(known)] == known and data.endswith("\n"):
        kept = kept[len(known) :]
    else:
        system.ftruncate(fd, 0)
    system.write(fd, ("\n".join(kept) + "\n").encode("utf-8", "replace"))
    return True


# failed stops


class FailedStop:
    """A stop that the hook allowed without a decision: when, in which session, and why.

    `signal` identifies the stop: the answer of a hook that ran out of time may be in the journal.
    """

    __slots__ = ("at", "reason", "session", "signal")

    def __init__(self, at: str, session: str, reason: str, signal: str) -> None:
        self.at = at
        self.session = session
        self.reason = reason
        self.signal = signal


def remember_failure(signal: Signal, reason: str) -> None:
    """Remember why this stop was allowed without a decision; of a session, only the last few."""
    from gsd_fsm.core.text.redact import redact

    failed = FailedStop(
        to_iso(now_ms()), signal.session, one_line(redact(reason), _LONGEST_REASON), signal.digest
    )

    def add(known: list[str]) -> list[str]:
        kept = [it for it in map(_parsed, known) if it is not None]
        own = [it for it in kept if it.session == failed.session]
        dropped = own[: 1 - _MOST_OF_SESSION]
        lines = [_line(it) for it in [*kept, failed] if it not in dropped]
        return lines[-_MOST_FAILURES:]

    _update(_FAILURES, place_digest(signal.place), add)


def unrecorded_failures(gsd: str, loop: Loop) -> list[FailedStop]:
    """Return the failed stops of the owner of this loop that its journal does not have yet."""
    if not loop.owner or not loop.is_live:
        return []
    since, now = max(loop.failed_at, loop.owned_since), to_iso(now_ms())
    failures = [it for it in _failures(gsd) if it.session == loop.owner]
    return [it for it in failures if since < it.at <= now]


def is_failed(gsd: str, signal: str) -> bool:
    """Return whether the stop that this signal reported was allowed without its answer."""
    return bool(signal) and any(it.signal == signal for it in _failures(gsd))


def _failures(gsd: str) -> list[FailedStop]:
    folder = join(state_directory(), _FAILURES)
    if not exists(folder):
        return []
    try:
        directory = open_directory(folder)
        try:
            fd = open_regular(directory, place_digest(gsd), READ)
            try:
                lines = read_at(fd, 0, _MAX_BYTES).decode("utf-8", "replace").split("\n")
            finally:
                close(fd)
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return []
    return [it for it in map(_parsed, lines) if it is not None]


def _line(failed: FailedStop) -> str:
    return dumps({name: getattr(failed, name) for name in FailedStop.__slots__})


def _parsed(line: str) -> FailedStop | None:
    try:
        facts: Any = parse_json(line)
        check_time(facts["at"])
        texts = [str(facts[name]) for name in ("session", "reason", "signal")]
    except (ValueError, TypeError, KeyError):
        return None
    return FailedStop(facts["at"], texts[0], one_line(texts[1], _LONGEST_REASON), texts[2])


def append_failures(tx: Transaction, loop: Loop, by: str = "") -> None:
    """Append each stop of the owner of this loop that could not be decided when it happened."""
    for failed in unrecorded_failures(tx.path, loop):
        data = {"code": "error", "reason": failed.reason, "at": failed.at, "of": failed.signal}
        tx.append(loop, "stop", data, by)

"""Report failures of the hook: on stderr, in `.gsd/hook.log`, and to the user."""

from __future__ import annotations

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import Corrupt, GsdError, Newer
from gsd_fsm.core.hook.clients import notice_answer
from gsd_fsm.core.program import name_program
from gsd_fsm.core.project import is_known_place
from gsd_fsm.core.syscalls import (
    CREATE,
    WRITE,
    close,
    close_directory,
    explain,
    open_directory,
    open_regular,
)
from gsd_fsm.core.system import system
from gsd_fsm.core.text.notices import failure_notice
from gsd_fsm.core.text.sanitize import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.hook.clients import Signal

LOG_NAME = "hook.log"
_MAX_LOG = 1 << 18
# The signals whose failures are reported to the user.
_NOTIFIED = frozenset(("SessionStart", "UserPromptSubmit", "Stop"))


def log_failure(
    error: BaseException | str, projects: list[str], outcome: str = "the stop is allowed"
) -> None:
    """Log an error and its outcome; the log is that of the first project, if it is trusted."""
    line = display(_words(error))
    try:
        text = "gsd-fsm hook: %s: %s\n" % (outcome, line)
        system.write(2, text.encode("ascii", "backslashreplace"))
    except OSError:
        pass
    for gsd in projects[:1]:
        if is_known_place(gsd):
            _append_line(gsd, "%s %s\n" % (to_iso(now_ms()), line))


def failure_answer(error: BaseException | str, signal: Signal) -> dict[str, Any]:
    """Return the answer that tells the user of an error, {} for none.

    A journal that cannot be used is reported at the start of a session and at each stop, but not
    with each prompt.
    """
    is_unusable = isinstance(error, (Corrupt, Newer))
    is_due = signal.event in _NOTIFIED and not (is_unusable and signal.event == "UserPromptSubmit")
    if not is_due or not is_known_place(signal.place):
        return {}
    name_program()
    return notice_answer(signal.client, failure_notice(signal.event, _words(error)))


def remember_stop(error: BaseException | str, signal: Signal) -> None:
    """Remember a stop that this error left undecided, so that a later signal records it."""
    if signal.event == "Stop" and signal.session and is_known_place(signal.place):
        from gsd_fsm.core.hook.memory import remember_failure

        remember_failure(signal, _words(error))


def _words(error: BaseException | str) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, GsdError):
        return "%s. %s" % (error.message, error.hint) if error.hint else error.message
    if isinstance(error, OSError):
        return explain(error)
    return "%s: %s" % (type(error).__name__, error)


def _append_line(gsd: str, line: str) -> None:
    try:
        directory = open_directory(gsd)
        try:
            fd = open_regular(directory, LOG_NAME, WRITE | CREATE)
            if system.fstat(fd).st_size > _MAX_LOG:
                system.ftruncate(fd, 0)
            system.write(fd, line.encode("ascii", "backslashreplace"))
            close(fd)
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        pass  # the disk may be the cause

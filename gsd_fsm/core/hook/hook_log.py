"""Report failures of the hook: on stderr, in `.gsd/hook.log`, and to the user."""

from __future__ import annotations

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import Corrupt, GsdError, Newer
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


def report_failure(error: BaseException | str, signal: Signal, gsd: str) -> str:
    """Log an error, and remember a failed stop; return the notice for the user, or "".

    A journal that cannot be used is reported at the start of a session and at each stop, but not
    with each prompt.
    """
    log_failure(error, [gsd])
    if not is_known_place(gsd):
        return ""
    if signal.event == "Stop" and signal.session:
        from gsd_fsm.core.hook.memory import remember_failure

        remember_failure(gsd, signal.session, _words(error))
    is_unusable = isinstance(error, (Corrupt, Newer))
    if signal.event not in _NOTIFIED or (is_unusable and signal.event == "UserPromptSubmit"):
        return ""
    name_program()
    return failure_notice(signal.event, _words(error))


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

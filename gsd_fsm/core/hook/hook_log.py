"""Log what the hook could not do: one line on stderr and one in `.gsd/hook.log`."""

from __future__ import annotations

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import GsdError
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
from gsd_fsm.core.text.sanitize import display

LOG_NAME = "hook.log"
_MAX_LOG = 1 << 18


def log_failure(
    error: BaseException | str, projects: list[str], outcome: str = "the stop is allowed"
) -> None:
    """Log an error and its outcome; the log is that of the first project, if it is trusted."""
    line = display(error if isinstance(error, str) else _words(error))
    try:
        text = "gsd-fsm hook: %s: %s\n" % (outcome, line)
        system.write(2, text.encode("ascii", "backslashreplace"))
    except OSError:
        pass
    for gsd in projects[:1]:
        if is_known_place(gsd):
            _append_line(gsd, "%s %s\n" % (to_iso(now_ms()), line))


def _words(error: BaseException) -> str:
    if isinstance(error, GsdError):
        return "%s (%s)" % (error.message, error.hint) if error.hint else error.message
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
        pass  # the disk may be the very reason

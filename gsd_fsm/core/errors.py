"""Every failure a user can meet, each with its exit code and the next step."""

from __future__ import annotations


class GsdError(Exception):
    """The root of all expected failures: a sentence, an exit code and a hint.

    Anything that is not a GsdError is a bug and exits with 1.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(GsdError):
    """What was asked cannot be understood, or does not say which loop it means."""

    exit_code = 2


class NotFound(GsdError):
    """There is no project or no loop here."""

    exit_code = 3


class Refused(GsdError):
    """The state machine does not allow this now."""

    exit_code = 4


class Corrupt(GsdError):
    """The journal is damaged; nothing is folded past the damage."""

    exit_code = 5

    def __init__(self, what: str, line: int, offset: int, path: str = "") -> None:
        where = "line %d, byte %d" % (line, offset)
        super().__init__(
            "journal %scorrupt at %s: %s" % (path + " " if path else "", where, what),
            "see 'gsd-fsm fsck'; 'gsd-fsm fsck --repair' goes on from the good lines before it",
        )
        self.what = what
        self.line = line
        self.offset = offset


class CannotWrite(GsdError):
    """Nothing was appended: lock, space, permission or trust is missing."""

    exit_code = 6


class CheckFailed(GsdError):
    """A check command ran and did not pass."""

    exit_code = 7


class Newer(GsdError):
    """The journal was written by a newer gsd-fsm and is left alone."""

    exit_code = 5

    def __init__(self, what: str) -> None:
        super().__init__("written by a newer gsd-fsm: " + what, "upgrade gsd-fsm")

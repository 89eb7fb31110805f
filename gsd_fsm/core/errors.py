"""Every expected failure, each with its exit code and a hint."""

from __future__ import annotations


class GsdError(Exception):
    """An expected failure: a message, a hint and an exit code. Any other exception is a bug."""

    exit_code = 1
    # Whether the message is a list with a line for each item; any other line end is foreign.
    is_list = False

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(GsdError):
    """The command is not understood, or it is ambiguous."""

    exit_code = 2


class NotFound(GsdError):
    """There is no project or no loop here."""

    exit_code = 3


class Refused(GsdError):
    """The transition table or a rule does not allow this now."""

    exit_code = 4


class Corrupt(GsdError):
    """The journal is damaged; nothing is folded past the damage."""

    exit_code = 5

    def __init__(self, what: str, line: int, offset: int, path: str = "") -> None:
        name = "journal %s" % path if path else "journal"
        super().__init__(
            "%s is corrupt at line %d, byte %d: %s" % (name, line, offset, what),
            "Run: gsd-fsm fsck; to continue from the valid lines, run: gsd-fsm fsck --repair",
        )
        self.what = what
        self.line = line
        self.offset = offset


class CannotWrite(GsdError):
    """Nothing was appended: no lock, disk space, permission or trust."""

    exit_code = 6


class CheckFailed(GsdError):
    """A check command ran and did not pass."""

    exit_code = 7


class Newer(GsdError):
    """The journal was written by a newer gsd-fsm and is left alone."""

    exit_code = 5

    def __init__(self, what: str) -> None:
        super().__init__("written by a newer gsd-fsm: " + what, "Upgrade gsd-fsm.")

"""Which copies of the hook have repeated which answer: a second call of theirs is a new stop.

No two calls of a client can be told apart by what they send, so a copy that repeats an answer leaves
its name in the user's state directory. It is no part of the journal, and may vanish.
"""

from __future__ import annotations

from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.project import make_directories, state_directory
from gsd_fsm.core.syscalls import (
    CREATE,
    WRITE,
    close,
    close_directory,
    open_directory,
    open_regular,
    read_at,
)
from gsd_fsm.core.system import join, system

_KEPT = 16
_MEMORY = 1 << 14


def may_repeat(journal: str, seq: int, copy: str) -> bool:
    """Whether this copy has not yet repeated the answer of this event; from now on it has.

    `journal`: what tells this journal, at this place, from all others.
    """
    mine = "%d %s" % (seq, copy)
    folder = join(state_directory(), "repeats")
    try:
        make_directories(folder)
        directory = open_directory(folder)
        try:
            fd = open_regular(directory, journal, WRITE | CREATE)
            try:
                known = read_at(fd, 0, _MEMORY).decode("utf-8", "replace").split("\n")[:-1]
                if mine in known:
                    return False
                kept = "\n".join([*known[1 - _KEPT :], mine]) + "\n"
                system.ftruncate(fd, 0)
                system.write(fd, kept.encode("utf-8", "replace"))
                return True
            finally:
                close(fd)
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return False  # what cannot be remembered is counted

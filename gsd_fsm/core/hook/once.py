"""Remember in the user's state directory what the hook has done, so that it is done once."""

from __future__ import annotations

from gsd_fsm.core.codec import digest_of
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
    try_lock,
)
from gsd_fsm.core.system import join, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop.fold import Loops

# The bytes that are read of what is remembered.
_MAX_BYTES = 1 << 14


def first_time(what: str, loops: Loops, gsd: str, name: str, most: int) -> bool:
    """Return whether this was not done yet in the project of this journal, and remember it.

    Only the last `most` names are kept. If nothing can be remembered, return False.
    """
    folder = join(state_directory(), what)
    try:
        make_directories(folder)
        directory = open_directory(folder)
        try:
            file = "%s-%s" % (loops.journal_id, digest_of(gsd))
            fd = open_regular(directory, file, WRITE | CREATE)
            try:
                return try_lock(fd, _MAX_BYTES) and _add(fd, name, most)
            finally:
                close(fd)
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return False


def _add(fd: int, name: str, most: int) -> bool:
    known = read_at(fd, 0, _MAX_BYTES).decode("utf-8", "replace").split("\n")[:-1]
    if name in known:
        return False
    kept = "\n".join([*known, name][-most:]) + "\n"
    system.ftruncate(fd, 0)
    system.write(fd, kept.encode("utf-8", "replace"))
    return True

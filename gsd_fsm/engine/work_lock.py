"""Let one process at a time append events and carry out what they call for in git and in files.

Without it, a command could take the effects of another that is still at work for those of one that
was killed, and carry them out a second time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.project import make_directories, real_path, state_directory
from gsd_fsm.core.syscalls import try_lock, unlock

# Long enough for the git hooks of a commit.
PATIENCE = 60.0
_PAUSE = 0.02


class WorkLock:
    """The lock of one project, in the user's state directory; a process may take it repeatedly."""

    def __init__(self) -> None:
        self._depth = 0

    @contextmanager
    def held(self, gsd: str, seconds: float = PATIENCE) -> Iterator[None]:
        """Hold the lock; raise CannotWrite if another process keeps it for so many seconds."""
        with self.tried(gsd, seconds) as is_held:
            if not is_held:
                raise CannotWrite(
                    "another gsd-fsm command is at work in this project",
                    "Wait for it or end it, then retry.",
                )
            yield

    @contextmanager
    def tried(self, gsd: str, seconds: float = 0.0) -> Iterator[bool]:
        """Hold the lock if it can be had in this time; yield whether it is held."""
        if self._depth:
            yield True
            return
        descriptor = _open(gsd)
        try:
            is_held = descriptor is None or _wait(descriptor, seconds)
            self._depth += is_held
            try:
                yield is_held
            finally:
                self._depth -= is_held
        finally:
            if descriptor is not None:
                unlock(descriptor)
                os.close(descriptor)


def _open(gsd: str) -> int | None:
    """Return a descriptor of the lock file; None if there can be none, then nothing is locked."""
    directory = os.path.join(state_directory(), "work")
    try:
        make_directories(directory)
        name = f"{digest_of(real_path(gsd))}.lock"
        return os.open(os.path.join(directory, name), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None


def _wait(descriptor: int, seconds: float) -> bool:
    deadline = monotonic() + seconds
    try:
        while not try_lock(descriptor):
            if monotonic() >= deadline:
                return False
            sleep(_PAUSE)
    except OSError:
        pass  # a file system without locks
    return True

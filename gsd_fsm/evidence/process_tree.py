"""Start a command so that it can be ended together with all processes that it starts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any


class ProcessTree:
    """A running command and its children, in a process group, or on Windows in a job.

    The system ends a job if this process is killed. If it refuses the job, only the command itself
    can be ended.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        if sys.platform == "win32":
            from gsd_fsm.evidence import windows_job

            self.process, self._job = windows_job.start(command, **options)
        else:
            self.process = subprocess.Popen(command, start_new_session=True, **options)

    def end(self, *, deadly: bool) -> None:
        """End all processes, with SIGTERM or, if `deadly`, SIGKILL; Windows has only the latter."""
        if sys.platform == "win32":
            if self._job is not None:
                self._job.end()
            self.process.kill()
        else:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL if deadly else signal.SIGTERM)

    def release(self) -> None:
        """Let children that still run outlive this process, as the command meant them to."""
        if sys.platform == "win32" and self._job is not None:
            self._job.release()

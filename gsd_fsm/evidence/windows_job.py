"""Keep a command and everything that it starts in a job object of Windows."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_CREATE_SUSPENDED = 0x4
_KILL_ON_JOB_CLOSE = 0x2000
_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_ENDED = 1  # the exit code of a process that was ended


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("times", ctypes.c_int64 * 2),
        ("flags", ctypes.c_uint32),
        ("working_set", ctypes.c_size_t * 2),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("classes", ctypes.c_uint32 * 2),
        ("counters", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    )


if sys.platform == "win32":
    _kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.CreateJobObjectW.restype = ctypes.c_void_p
    _resume: Any = ctypes.WinDLL("ntdll").NtResumeProcess

    class Job:
        """A job that ends with this process, unless it was released."""

        def __init__(self, handle: int) -> None:
            self._handle: Any = ctypes.c_void_p(handle)

        def contain(self, process: Any) -> bool:
            """Put a process into the job; return whether the system allows it."""
            return bool(self._limit(_KILL_ON_JOB_CLOSE)) and bool(
                _kernel.AssignProcessToJobObject(self._handle, process)
            )

        def end(self) -> None:
            _kernel.TerminateJobObject(self._handle, _ENDED)

        def release(self) -> None:
            self._limit(0)
            self.close()

        def close(self) -> None:
            _kernel.CloseHandle(self._handle)

        def _limit(self, flags: int) -> int:
            limits = _Limits(flags=flags)
            size = ctypes.sizeof(limits)
            set_limits = _kernel.SetInformationJobObject
            return int(set_limits(self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), size))

    def start(command: Sequence[str], **options: Any) -> tuple[subprocess.Popen[bytes], Job | None]:
        """Start a command in a job of its own; without one if the system refuses it.

        The command is suspended until it is in the job, so that no child escapes.
        """
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | _CREATE_SUSPENDED
        process = subprocess.Popen(command, creationflags=flags, **options)
        handle = ctypes.c_void_p(int(vars(process)["_handle"]))
        try:
            created = _kernel.CreateJobObjectW(None, None)
            job = Job(created) if created else None
            if job is not None and not job.contain(handle):
                job.close()
                job = None
            if _resume(handle) < 0:
                raise OSError("the command cannot be resumed")
        except BaseException:
            process.kill()
            raise
        return process, job

"""No network but loopback: what a test starts can reach the fake model and nobody else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_SET_FLAGS = 0x8914  # SIOCSIFFLAGS
_UP = 0x1


@contextlib.contextmanager
def loopback_only() -> Iterator[None]:
    """This thread and all that it starts lose the network, where we are root on Linux.

    Elsewhere the variables that switch off what the client does on its own must do.
    """
    if sys.platform != "linux" or os.geteuid():
        yield
        return
    import fcntl

    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open("rb") as before:
        _must(libc.unshare(_NEW_NETWORK))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            fcntl.ioctl(line, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))
        try:
            yield
        finally:
            _must(libc.setns(before.fileno(), _NEW_NETWORK))


def _must(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

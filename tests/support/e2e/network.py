"""Cut off the network except loopback, so that tests reach only the fake model."""

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
    """Cut off this thread and its children from the network; this needs root on Linux.

    Elsewhere, only the client's variables keep it from using the network on its own.
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

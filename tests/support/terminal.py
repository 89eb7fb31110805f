"""Run commands at a terminal where the user types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path


def at_terminal(command: list[str], typed: bytes, where: Path, columns: int = 0) -> tuple[int, str]:
    """Run the command at a terminal where the user types this, then Ctrl-D; return code and screen.

    A terminal of 0 columns does not know its size.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 60 if columns else 0, columns, 0, 0))
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(command, cwd=where, **streams)
    os.close(theirs)
    os.write(ours, typed + b"\x04")
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 65_536):
            shown += part
    os.close(ours)
    return process.wait(), shown.decode()

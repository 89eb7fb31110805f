"""Run commands at a terminal where the user types."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
from pathlib import Path


def at_terminal(command: list[str], typed: bytes, where: Path) -> tuple[int, str]:
    """Run the command at a terminal where the user types this, then Ctrl-D; return code and screen."""
    ours, theirs = pty.openpty()
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

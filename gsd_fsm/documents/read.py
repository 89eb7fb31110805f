"""Texts of other people: read at once, whole, and only if they are texts of a sensible size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gsd_fsm.core.errors import UsageError


def bytes_of(path: Path, most: int, hint: str) -> bytes:
    """The content of a plain file of at most so many bytes; never a wait for a pipe or a device."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} cannot be read: not a file", hint)
        # Without waiting: what was a file a moment ago may be a pipe now.
        with open(path, "rb", opener=_at_once) as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {why}", hint) from error
    if len(content) > most:
        raise UsageError(f"{path} is larger than {most >> 20} MiB", hint)
    return content


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

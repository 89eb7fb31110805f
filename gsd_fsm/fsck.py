"""A journal's bill of health: how much of it is good, and where it is damaged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gsd_fsm.core.codec import MAX_LINE, SUM_TAIL
from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.scan import frame_ok
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.replay import in_bulk

Reader = Callable[[Loops], Callable[[bytes], None]]
MAX_REPORTED = 100


def sums_only(_loops: Loops) -> Callable[[bytes], None]:
    """A reader that leaves what lines say to a version that understands them."""
    return lambda _line: None


def examine(journal: Journal, reader: Reader = in_bulk) -> dict[str, Any]:
    """The good events before any damage, their head, the torn bytes, and every damaged line."""
    damage: list[dict[str, Any]] = []
    head = ""
    try:
        journal.read(reader, hashlib.sha256)
        events = journal.at.line
        head = f"{events}:{journal.at.sum}"
    except Corrupt as found:
        events = found.line - 1
        damage = [{"line": found.line, "offset": found.offset, "what": found.what}]
        with Path(journal.journal_path()).open("rb") as file:
            if found.offset:
                file.seek(found.offset - 19)
                head = f"{events}:{file.read(16).decode('ascii')}"
            file.seek(found.offset)
            damage += _further_damage(file, found.line, found.offset)
    return {
        "ok": not damage,
        "events": events,
        "head": head,
        "torn": 0 if damage else journal.at.torn,
        "damage": damage,
    }


def _further_damage(file: Any, number: int, offset: int) -> list[dict[str, Any]]:
    """Lines behind the first damage that do not even follow from the line before them."""
    found: list[dict[str, Any]] = []
    line = file.readline(MAX_LINE + 1)
    while len(found) < MAX_REPORTED - 1 and line.endswith(b"\n"):
        offset += len(line)
        number += 1
        stored = line.rstrip(b"\n")[-SUM_TAIL:][8:24].decode("ascii", "replace")
        line = file.readline(MAX_LINE + 1)
        if not line:
            break
        if not (stored.isascii() and frame_ok(line.rstrip(b"\n"), stored)):
            what = "its sum does not follow from the line before"
            found.append({"line": number, "offset": offset, "what": what})
    return found

"""Replay a whole journal with the machine beside the fold, or examine its damage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from gsd_fsm.core.codec import MAX_DEPTH, MAX_LINE, SUM_TAIL, check_value
from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.scan import frame_ok, into_fold, load_event
from gsd_fsm.core.loop.fold import Loops, findings_of

Event = Any
# Longer journals are replayed without the machine, unless strict.
MACHINE_LIMIT = 100_000
Reader = Callable[[Loops], Callable[[bytes], None]]
MAX_REPORTED = 100
# Called with the number of events that have been read; None: not wanted.
Advance = Callable[[int], None] | None
_EVERY = 1_000


class Finding(NamedTuple):
    """An event that today's rules would refuse."""

    line: int
    seq: int
    type: str
    message: str


class _Enough(Exception):
    pass


class Replay:
    """The loops after the replayed events, and their head."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.loops = Loops()
        self.head = ""
        self.findings: list[Finding] = []

    def run(
        self,
        see: Callable[[Event, str, Loops], None] | None = None,
        at: int | None = None,
        until: str | None = None,
        *,
        strict: bool = False,
        advance: Advance = None,
    ) -> None:
        """Fold up to event `at`, or up to the last event before the first one after `until`.

        `see` is called after each event with it, the status of its loop before it ("" if there was
        none) and the loops. `strict` collects findings, and steps the machine however long the
        journal is. `advance` is called with the number of events that have been read.
        """
        loops = self.loops = self._fresh(at, strict)
        last = ""

        def take(line: bytes) -> None:
            nonlocal last
            event = load_event(line, fast_loads)
            is_after = at is not None and event["seq"] > at
            if is_after or (until is not None and event["ts"] > until):
                raise _Enough
            if strict and (message := findings_of(loops, event)):
                self.findings.append(Finding(event["seq"], event["seq"], event["type"], message))
            before = loops.by_id.get(event["loop"])
            source = before.status if before else ""
            loops.fold(event)
            if see is not None:
                see(event, source, loops)
            last = event["sum"]

        watched = strict or see is not None or at is not None or until is not None
        try:
            reader: Reader = (lambda _: take) if watched else in_bulk
            self.journal.read(reporting(reader, advance), hashlib.sha256, loops)
            self.head = f"{loops.seq}:{self.journal.at.sum}"
        except _Enough:
            loops.settle()
            self.head = f"{loops.seq}:{last}" if last else ""

    def _fresh(self, at: int | None, strict: bool) -> Loops:
        """Return empty loops, with a machine beside them unless the journal is too long for it."""
        events = last_seq(self.journal)
        if strict or min(events, at or events) <= MACHINE_LIMIT:
            from gsd_fsm.history.machine import MachineLoops

            return MachineLoops(self.journal.keep)
        return Loops(self.journal.keep)


def last_seq(journal: Journal) -> int:
    """Return the number of the last event, 0 if its line cannot be read."""
    path = Path(journal.journal_path())
    try:
        if not path.is_file():
            return 0  # reading a device or a pipe could block
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 2 * MAX_LINE))
            tail = file.read(2 * MAX_LINE)
    except OSError:
        return 0
    numbers = re.findall(rb'^\{"v":\d+,"seq":(\d{1,15}),', tail, re.MULTILINE)
    return int(numbers[-1]) if numbers else 0


# readers


def fast_loads(line: bytes) -> Any:
    """Return what `decode_line` returns, several times faster; for lines with a valid sum."""
    if line[:1] != b"{" or not line.isascii():
        raise ValueError("not an ASCII JSON object")
    value = orjson.loads(line)
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH:
        check_value(value)
    return value


def watching(visit: Callable[[Event], None]) -> Callable[[Loops], Callable[[bytes], None]]:
    """Return a reader that passes each event to `visit` before it is folded."""

    def reader(loops: Loops) -> Callable[[bytes], None]:
        def take(line: bytes) -> None:
            event = load_event(line, fast_loads)
            visit(event)
            loops.fold(event)

        return take

    return reader


def in_bulk(loops: Loops) -> Callable[[bytes], None]:
    """Return a reader that folds each line."""
    return into_fold(loops, fast_loads)


def reporting(reader: Reader, advance: Advance) -> Reader:
    """Return this reader, or with `advance` one that also calls it now and then."""
    if advance is None:
        return reader

    def counting(loops: Loops) -> Callable[[bytes], None]:
        take, read = reader(loops), 0

        def take_and_count(line: bytes) -> None:
            nonlocal read
            take(line)
            read += 1
            if not read % _EVERY:
                advance(read)

        return take_and_count

    return counting


def sums_only(_loops: Loops) -> Callable[[bytes], None]:
    """Return a reader that ignores the content of lines, which a later version may have written."""
    return lambda _line: None


def examine(journal: Journal, reader: Reader = in_bulk) -> dict[str, Any]:
    """Return the number of valid events, their head, the torn bytes and the damaged lines."""
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
    """Return the lines after the first damage whose sum does not follow from the line before."""
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

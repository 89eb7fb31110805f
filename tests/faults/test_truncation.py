"""Truncated journals: whole lines are read, the rest is torn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import Here, here
from tests.support.faults import judge, long_bytes, positions, say, sums, torture

__all__ = ["here"]


def _expected(data: bytes, size: int) -> tuple[int, int]:
    """Return events and torn bytes after a cut; a line without its newline is an event."""
    whole = data[:size].count(b"\n")
    tail = size - (data[:size].rfind(b"\n") + 1)
    return (whole + 1, 0) if tail and data[size : size + 1] == b"\n" else (whole, tail)


@pytest.mark.parametrize("events", [50, pytest.param(1_000, marks=pytest.mark.torture)])
def test_read_after_any_truncation_returns_whole_lines(gsd: Path, events: int) -> None:
    long = events > 50
    data = long_bytes(gsd, torture(events) if long else events, longest=90)
    known, places = ["", *sums(data)], positions(data)
    for size in range(len(data) + 1):
        whole, torn = _expected(data, size)
        begin = places[max(0, data.count(b"\n", 0, size) - 1)] if long or size % 8 else None
        assert judge(data[:size], begin) == (whole, known[whole], torn, 0), size
    if long:
        begun = data.index(b"\n", data.index(b"\n") + 1) + 1  # before it there is no loop
        for size in random.Random(3).sample(range(begun, len(data)), min(500, len(data) - begun)):
            _assert_writer_goes_on(gsd, data, size)


def _assert_writer_goes_on(gsd: Path, data: bytes, size: int) -> None:
    events, torn = _expected(data, size)
    for old in gsd.glob("journal.broken-*"):
        old.unlink()
    path = gsd / "journal.jsonl"
    path.write_bytes(data[:size])
    journal = Journal(str(gsd))
    assert (journal.read().seq, journal.at.torn) == (events, torn)
    assert path.read_bytes() == data[:size]  # a reader repairs nothing
    written = say(journal, "on")[0]
    after = path.read_bytes()
    whole = b"".join(line + b"\n" for line in data.split(b"\n")[:events])
    assert after.startswith(whole)
    assert judge(after) == (events + 1 + bool(torn), written["sum"], 0, 0)
    aside = [old.read_bytes() for old in gsd.glob("journal.broken-*")]
    assert aside == ([data[size - torn : size]] if torn else [])
    assert journal.loops.repairs == bool(torn)


def test_append_after_truncation_saves_and_reports_torn_bytes(gsd: Path) -> None:
    data = long_bytes(gsd, 6)
    third = len(b"\n".join(data.split(b"\n")[:3]))
    for size in [*range(third - 40, third + 3), *range(third + 3, len(data) + 1, 7)]:
        _assert_writer_goes_on(gsd, data, size)


def test_commands_report_torn_tail_and_only_repair_cuts_it(here: Here) -> None:
    data = long_bytes(here.gsd, 3)
    tail = data.splitlines()[-1][:60]
    here.journal.write_bytes(data + tail)
    here.ok("status")
    report = here.ok("fsck", "--json").json
    assert (report["ok"], report["events"], report["torn"]) == (True, 3, len(tail))
    assert here.journal.read_bytes() == data + tail
    here.ok("fsck", "--repair", "--yes")
    repair = here.last()
    assert (repair["type"], repair["data"]["bytes"]) == ("repair", len(tail))
    assert (here.gsd / repair["data"]["aside"]).read_bytes() == tail


def test_last_line_without_newline_needs_its_sum(gsd: Path) -> None:
    whole = long_bytes(gsd, 6)
    count = max(n for n, it in enumerate(sums(whole), 1) if not it.isdigit())  # it has a letter
    data = b"".join(whole.splitlines(keepends=True)[:count])
    good = data[: data.rindex(b"\n", 0, -1) + 1]
    line = data[len(good) : -1]
    assert judge(good + line) == judge(data)
    other = line[:-18] + line[-18:].upper()
    assert judge(good + other) == (count - 1, sums(good)[-1], len(line), 0)


def test_zeros_after_whole_last_line_are_removed_first(gsd: Path) -> None:
    data = long_bytes(gsd, 4)
    for zeros in (1, 2, 600):
        (gsd / "journal.jsonl").write_bytes(data[:-1] + bytes(zeros))
        written = say(Journal(str(gsd)), "next")[0]
        found = (gsd / "journal.jsonl").read_bytes()
        assert found.startswith(data)
        assert judge(found) == (5, written["sum"], 0, 0)

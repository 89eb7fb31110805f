"""Truncated journals: whole lines are read, the rest is torn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import Project
from tests.support.faults import judge, long_bytes, positions, say, sums, torture


def _expected(data: bytes, size: int) -> tuple[int, int]:
    """Events and torn bytes after a cut; a line that lacks only its newline is an event."""
    whole = data[:size].count(b"\n")
    tail = size - (data[:size].rfind(b"\n") + 1)
    return (whole + 1, 0) if tail and data[size : size + 1] == b"\n" else (whole, tail)


def test_read_after_any_truncation_returns_whole_lines(
    tmp_path: Path,
) -> None:
    data = long_bytes(tmp_path / "p" / ".gsd", 50, longest=90)
    known, places = ["", *sums(data)], positions(data)
    for size in range(len(data) + 1):
        events, torn = _expected(data, size)
        begin = None if size % 8 == 0 else places[max(0, data.count(b"\n", 0, size) - 1)]
        verdict = judge(data[:size], begin)
        assert verdict == (events, known[events], torn, 0), size


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


def test_append_after_truncation_saves_and_reports_torn_bytes(
    tmp_path: Path,
) -> None:
    gsd = tmp_path / "p" / ".gsd"
    data = long_bytes(gsd, 6)
    third = data.index(b"\n", data.index(b"\n", data.index(b"\n") + 1) + 1)
    for size in [*range(third - 40, third + 3), *range(third + 3, len(data) + 1, 7)]:
        _assert_writer_goes_on(gsd, data, size)


def test_commands_report_torn_tail_once(project: Project) -> None:
    data = long_bytes(project.gsd, 3)
    tail = data.splitlines()[-1][:60]
    project.journal.write_bytes(data + tail)
    assert project.status()["goal"] == "seed 0"
    report = project.ok("fsck", "--json").json
    assert (report["ok"], report["events"], report["torn"]) == (True, 3, len(tail))
    assert project.journal.read_bytes() == data + tail
    repaired = project.ok("fsck", "--repair", "--yes", "--json").json
    assert (repaired["events"], repaired["torn"]) == (4, 0)
    told = project.lines()[-1]
    assert told["type"] == "repair"
    assert told["data"]["bytes"] == len(tail)
    assert (project.gsd / told["data"]["aside"]).read_bytes() == tail
    project.ok("note", "next")
    assert project.ok("fsck", "--json").json["ok"]
    assert [line["type"] for line in project.lines()].count("repair") == 1


@pytest.mark.torture
def test_read_after_any_truncation_of_long_journal_returns_whole_lines(tmp_path: Path) -> None:
    gsd = tmp_path / "p" / ".gsd"
    data = long_bytes(gsd, torture(1_000))
    known, places = ["", *sums(data)], positions(data)
    for size in range(len(data) + 1):
        events, torn = _expected(data, size)
        begin = places[max(0, data.count(b"\n", 0, size) - 1)]
        assert judge(data[:size], begin) == (events, known[events], torn, 0), size
    begun = data.index(b"\n", data.index(b"\n") + 1) + 1  # before, there is no loop to go on with
    for size in random.Random(3).sample(range(begun, len(data)), min(500, len(data) - begun)):
        _assert_writer_goes_on(gsd, data, size)
    print(f"{len(data) + 1} truncations")

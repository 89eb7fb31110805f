"""Damaged journals: every changed byte and moved line is reported with its line."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.scan import into_fold
from gsd_fsm.history.replay import in_bulk
from tests.support import faults
from tests.support.faults import judge, long_bytes, long_journal, positions, say, sums, torture


def _changed(data: bytes, offset: int, value: int) -> bytes:
    return data[:offset] + bytes([value]) + data[offset + 1 :]


def _assert_reported(data: bytes, offset: int, value: int, line: int, at: Any = None) -> None:
    verdict = judge(_changed(data, offset, value), at)
    if offset == len(data) - 1 and value == 0:
        # Only the newline of the last line is gone: the event is still the same.
        assert verdict == (line, sums(data)[-1], 0, 0)
    else:
        assert verdict.damaged == line, (offset, value, verdict)


def test_read_reports_every_bit_flip_with_its_line(gsd: Path) -> None:
    data = long_bytes(gsd, 20, longest=20)
    places = positions(data)
    for offset in range(len(data)):
        line = data.count(b"\n", 0, offset) + 1
        for bit in range(8):
            begin = None if bit == offset % 8 else places[line - 1]
            _assert_reported(data, offset, data[offset] ^ 1 << bit, line, begin)


def test_read_reports_every_changed_byte_of_last_line(gsd: Path) -> None:
    data = long_bytes(gsd, 3, longest=30)
    for offset in range(data.rindex(b"\n", 0, -1) + 1, len(data)):
        for value in set(range(256)) - {data[offset]}:
            _assert_reported(data, offset, value, 3, positions(data)[2])


def test_nul_byte_at_sector_edge_is_damage_and_not_torn(gsd: Path) -> None:
    faults.pad_to(long_journal(gsd, 3), 511)
    say(Journal(str(gsd)), "acknowledged")
    data = (gsd / "journal.jsonl").read_bytes()
    for offset in range(data.rindex(b"\n", 0, -1) + 1, len(data) - 1):
        assert judge(_changed(data, offset, 0)).damaged == data.count(b"\n")


def edits(data: bytes, other: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Yield every way to move lines: name, result, and the line to report."""
    lines, foreign = data.splitlines(keepends=True), other.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if at < len(lines) - 1:
            yield f"deleted {at}", b"".join(lines[:at] + lines[at + 1 :]), at + 1
        yield f"duplicated {at}", b"".join(lines[: at + 1] + lines[at:]), at + 2
        yield f"blank line {at}", b"".join([*lines[:at], b"\n", *lines[at:]]), at + 1
        replaced = {
            "CRLF": line[:-1] + b"\r\n",
            "indented": b" " + line,
            "space": line[:-1] + b" \n",
        }
        for name, new in {**replaced, **({"spliced": foreign[at]} if at > 1 else {})}.items():
            yield f"{name} {at}", b"".join([*lines[:at], new, *lines[at + 1 :]]), at + 1
        for to in range(at + 1, len(lines)):
            moved = [*lines]
            moved[at], moved[to] = moved[to], moved[at]
            yield f"swapped {at} {to}", b"".join(moved), at + 1
    yield "reversed", b"".join(reversed(lines)), 1
    yield "rest of another journal", b"".join(lines[:5] + foreign[5:]), 6
    yield "two journals in a row", data + other, len(lines) + 1
    yield "CRLF everywhere", data.replace(b"\n", b"\r\n"), 1
    yield "BOM", b"\xef\xbb\xbf" + data, 1
    yield "blank line at the end", data + b"\n", len(lines) + 1
    yield "re-saved as UTF-16", data.decode().encode("utf-16"), 1
    yield "keys in order", data.replace(b'{"v":1,"seq":7,', b'{"seq":7,"v":1,'), 7
    yield "spaces after colons", data.replace(b'"seq":9,', b'"seq": 9,'), 9
    yield "upper case sum", data[:-18] + data[-18:-2].upper() + data[-2:], len(lines)


@pytest.mark.parametrize("size", [30, pytest.param(200, marks=pytest.mark.torture)])
def test_read_reports_moved_and_resaved_lines(tmp_path: Path, size: int) -> None:
    size = size if size == 30 else max(12, torture(size))
    data = long_bytes(tmp_path / "p" / ".gsd", size, longest=20)
    other = long_bytes(tmp_path / "q" / ".gsd", size, seed=9, longest=20)
    count = 0
    for name, hurt, line in edits(data, other):
        if hurt != data:
            assert judge(hurt).damaged == line, name
            count += 1
    assert count > (600 if size >= 30 else 0)


def test_damage_ends_fold_and_refuses_append(gsd: Path) -> None:
    lines = long_bytes(gsd, 10).splitlines(keepends=True)
    hurt = b"".join([*lines[:6], lines[6].replace(b"agent", b"human"), *lines[7:]])
    (gsd / "journal.jsonl").write_bytes(hurt)
    journal = Journal(str(gsd))
    with pytest.raises(Corrupt) as found:
        journal.read()
    assert (journal.loops.seq, found.value.line) == (6, 7)
    assert found.value.offset == len(b"".join(lines[:6]))
    with pytest.raises(Corrupt):
        say(Journal(str(gsd)), "no")
    assert (gsd / "journal.jsonl").read_bytes() == hurt


@pytest.mark.parametrize("in_place", [True, False], ids=["as cp does", "as a repair does"])
def test_open_writer_continues_in_replaced_file(gsd: Path, tmp_path: Path, in_place: bool) -> None:
    journal = long_journal(gsd, 5)
    say(journal, "after the copy")
    path, new = gsd / "journal.jsonl", tmp_path / "q" / ".gsd" / "journal.jsonl"
    longer = long_bytes(new.parent, 12, seed=4)
    if in_place:
        path.write_bytes(longer)
    else:
        new.rename(path)
    written = say(journal, "on")[0]
    assert judge(path.read_bytes()) == (13, written["sum"], 0, 0)


def test_lost_sector_before_last_line_is_damage(gsd: Path) -> None:
    say(long_journal(gsd, 3), "y" * 3000)
    say(Journal(str(gsd)), "acknowledged")
    data = (gsd / "journal.jsonl").read_bytes()
    lost = (data.index(b"y" * 512) // 512 + 1) * 512
    hurt = data[:lost] + bytes(512) + data[lost + 512 :]
    last = data.rindex(b"\n", 0, -1) + 1
    assert judge(hurt[:last]).torn > 3000  # as the last line it is an append that never returned
    assert judge(hurt).damaged == 4


@pytest.mark.parametrize("wrong", [{"seq": 7}, {"ts": "2026-11-15T23:00:00.12xZ"}], ids=str)
def test_reader_refuses_what_fold_refuses(gsd: Path, wrong: dict[str, object]) -> None:
    data = long_bytes(gsd, 2)
    last, event = sums(data)[-1], {"ts": "2026-11-15T23:00:00.123Z", **faults.note("again")}
    for seq, change in ((3, {}), (4, {}), (5, wrong)):
        line, last = encode_event({"v": 1, "seq": seq, **event, **change}, last)
        data += line
    (gsd / "journal.jsonl").write_bytes(data)
    for reader in (into_fold, in_bulk):
        with pytest.raises(Corrupt) as found:
            Journal(str(gsd)).read(reader)
        assert found.value.line == 5


@pytest.mark.torture
def test_read_reports_damage_at_every_offset_of_long_journal(gsd: Path) -> None:
    data = long_bytes(gsd, torture(1_000))
    places, choose = positions(data), random.Random(6)
    for offset in range(len(data)):
        line = data.count(b"\n", 0, offset) + 1
        value = choose.choice([v for v in range(1, 256) if v != data[offset]])
        found = judge(_changed(data, offset, value), places[line - 1]).damaged
        assert found == line, (offset, value)
    print(f"{len(data)} offsets damaged, {len(data)} reported")

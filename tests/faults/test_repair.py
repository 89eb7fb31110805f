"""`fsck --repair` keeps the old file and continues from the valid lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.journal.repair import cut_damage
from tests.support.command_line import Here, here
from tests.support.events import NOW
from tests.support.faults import files_in, judge, long_bytes, wired

__all__ = ["here"]


def _hurt(data: bytes, line: int) -> bytes:
    lines = data.splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"v":1', b'"v":7')
    return b"".join(lines)


@pytest.mark.parametrize("line", [1, 2, 4])
def test_repair_keeps_old_file_and_continues_from_valid_lines(here: Here, line: int) -> None:
    data = long_bytes(here.gsd, 5)
    hurt = _hurt(data, line)
    here.journal.write_bytes(hurt)
    assert here.ok("fsck", "--repair", "--yes", "--json").json["ok"]
    (aside,) = here.gsd.glob("journal.broken-*")
    assert aside.read_bytes() == hurt
    good = b"".join(data.splitlines(keepends=True)[: line - 1])
    assert here.journal.read_bytes().startswith(good)
    assert here.journal.stat().st_mode & 0o777 == 0o600
    repair = here.last()
    assert (repair["type"], repair["data"]["aside"]) == ("repair", aside.name)
    assert repair["data"]["bytes"] == len(hurt) - len(good)
    assert f"line {line}" in repair["data"]["what"]
    if line <= 2:
        here.ok("start", "goal", "Begin again")
    here.ok("note", "next")
    assert here.ok("fsck", "--json").json["events"] == len(here.lines())


def test_repair_twice_keeps_two_old_files_and_a_valid_journal_stays(gsd: Path) -> None:
    path, kept = gsd / "journal.jsonl", set()
    long_bytes(gsd, 8)
    for line in (6, 3):
        before = files_in(gsd)
        assert cut_damage(str(gsd), "j-new", NOW)[1] == ""
        assert files_in(gsd) == before
        path.write_bytes(_hurt(path.read_bytes(), line))
        kept.add(path.read_bytes())
        assert cut_damage(str(gsd), "j-new", NOW)[0] == line - 1
    assert {aside.read_bytes() for aside in gsd.glob("journal.broken-*")} == kept
    assert judge(path.read_bytes()).events == 3


@pytest.mark.parametrize("line", [1, 4])
def test_repair_without_space_leaves_old_journal(gsd: Path, line: int) -> None:
    hurt = _hurt(long_bytes(gsd, 6), line)
    (gsd / "journal.jsonl").write_bytes(hurt)
    writes = 0

    def short(name: str, real: Any, *args: Any, **more: Any) -> Any:
        nonlocal writes
        if name == "write" and b'"repair"' in bytes(args[1]):
            writes += 1
            return real(args[0], args[1][:20])
        return real(*args, **more)

    with wired(short), pytest.raises(CannotWrite):
        cut_damage(str(gsd), "j-new", NOW)
    assert writes == 1
    assert (gsd / "journal.jsonl").read_bytes() == hurt
    assert cut_damage(str(gsd), "j-new", NOW)[0] == line - 1
    assert not judge((gsd / "journal.jsonl").read_bytes()).damaged

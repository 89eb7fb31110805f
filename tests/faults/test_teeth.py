"""What only a deliberate mistake in the engine brought to light as untested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gsd_fsm.core import journal as journal_module
from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.errors import CannotWrite, Refused
from gsd_fsm.core.journal import Journal, draft
from gsd_fsm.core.lock import Hold
from tests.faults.rig import judge, long_bytes, long_journal, note, say, sums


def test_of_two_events_none_is_written_if_the_second_is_refused(tmp_path: Path) -> None:
    gsd = tmp_path / "p" / ".gsd"
    journal = long_journal(gsd, 4)
    before = (gsd / "journal.jsonl").read_bytes()
    refused = draft("answer", "lp-1", "human", {"text": "to nothing"})
    with pytest.raises(Refused):
        journal.transact(lambda _world, _now: [note("accepted"), refused])
    assert (gsd / "journal.jsonl").read_bytes() == before
    written = say(journal, "on")[0]
    assert judge((gsd / "journal.jsonl").read_bytes()) == (5, written["sum"], 0, 0)


def test_a_last_line_without_newline_is_an_event_only_with_its_very_sum(tmp_path: Path) -> None:
    data = long_bytes(tmp_path / "p" / ".gsd", 6)
    good = data[: data.rindex(b"\n", 0, -1) + 1]
    line = data[len(good) : -1]
    assert judge(good + line) == judge(data)
    other = line[:-18] + line[-18:].upper()
    assert other != line
    assert judge(good + other) == (5, sums(good)[-1], len(line), 0)


def test_a_lost_sector_in_any_line_but_the_last_is_damage(tmp_path: Path) -> None:
    gsd = tmp_path / "p" / ".gsd"
    say(long_journal(gsd, 3), "y" * 3000)
    say(Journal(str(gsd)), "acknowledged")
    data = (gsd / "journal.jsonl").read_bytes()
    lost = (data.index(b"y" * 512) // 512 + 1) * 512
    hurt = data[:lost] + bytes(512) + data[lost + 512 :]
    last = data.rindex(b"\n", 0, -1) + 1
    assert judge(hurt[:last]).torn > 3000  # as the last line it is an append that never returned
    assert judge(hurt).damaged == 4


def test_who_waited_for_a_replaced_lock_file_waits_for_the_holder_of_the_new_one(
    tmp_path: Path,
) -> None:
    gsd = tmp_path / "p" / ".gsd"
    journal = Journal(str(gsd), lock_seconds=0.1)
    before = long_bytes(gsd, 3)
    assert journal.transact(lambda _world, _now: []) == []  # it keeps the lock file open
    (gsd / "journal.lock").unlink()
    holder = Hold(str(gsd))
    holder.acquire(1)
    with pytest.raises(CannotWrite, match="held by another process"):
        say(journal, "two at once")
    assert (gsd / "journal.jsonl").read_bytes() == before
    holder.close()
    assert say(journal, "one after the other")[0]["seq"] == 4


def test_a_snapshot_of_another_fold_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SMALL", 0)
    gsd = tmp_path / "p" / ".gsd"
    long_journal(gsd, 70)
    path = gsd / "snapshot.json"
    body = json.loads(path.read_text())["body"]
    body["fold"] += 1
    body["world"]["loops"][0]["goal"] = "as another fold understood it"
    new = json.dumps(body, separators=(",", ":"))
    path.write_text(f'{{"digest":"{digest_of(new)}","body":{new}}}\n')
    assert Journal(str(gsd)).glance().loops["lp-1"].goal == "seed 0"

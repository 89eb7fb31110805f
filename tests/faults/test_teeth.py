"""Faults that only a mutant showed to be untested."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from gsd_fsm.cli import run
from gsd_fsm.core.codec import digest_of, encode_event
from gsd_fsm.core.errors import CannotWrite, Corrupt, Refused
from gsd_fsm.core.journal import journal as journal_module
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.scan import into_fold
from gsd_fsm.core.syscalls import LockedDir
from gsd_fsm.history.replay import in_bulk
from tests.support.events import append, draft, new_journal, start_draft
from tests.support.faults import (
    files_in,
    judge,
    long_bytes,
    long_journal,
    note,
    say,
    sums,
    wired,
)
from tests.support.power import Disk


def test_transaction_writes_nothing_if_second_event_is_refused(tmp_path: Path) -> None:
    gsd = tmp_path / "p" / ".gsd"
    journal = long_journal(gsd, 4)
    before = (gsd / "journal.jsonl").read_bytes()
    refused = draft("answer", "lp-1", "human", {"text": "to nothing"})
    with pytest.raises(Refused):
        append(journal, note("accepted"), refused)
    assert (gsd / "journal.jsonl").read_bytes() == before
    written = say(journal, "on")[0]
    assert judge((gsd / "journal.jsonl").read_bytes()) == (5, written["sum"], 0, 0)


def test_last_line_without_newline_needs_its_sum(tmp_path: Path) -> None:
    data = long_bytes(tmp_path / "p" / ".gsd", 6)
    good = data[: data.rindex(b"\n", 0, -1) + 1]
    line = data[len(good) : -1]
    assert judge(good + line) == judge(data)
    other = line[:-18] + line[-18:].upper()
    assert other != line
    assert judge(good + other) == (5, sums(good)[-1], len(line), 0)


def test_lost_sector_before_last_line_is_damage(tmp_path: Path) -> None:
    gsd = tmp_path / "p" / ".gsd"
    say(long_journal(gsd, 3), "y" * 3000)
    say(Journal(str(gsd)), "acknowledged")
    data = (gsd / "journal.jsonl").read_bytes()
    lost = (data.index(b"y" * 512) // 512 + 1) * 512
    hurt = data[:lost] + bytes(512) + data[lost + 512 :]
    last = data.rindex(b"\n", 0, -1) + 1
    assert judge(hurt[:last]).torn > 3000  # as the last line it is an append that never returned
    assert judge(hurt).damaged == 4


def test_waiting_process_waits_for_holder_of_replaced_lock_file(
    tmp_path: Path,
) -> None:
    gsd = tmp_path / "p" / ".gsd"
    journal = Journal(str(gsd), lock_seconds=0.1)
    before = long_bytes(gsd, 3)
    assert append(journal) == []  # it keeps the lock file open
    (gsd / "journal.lock").unlink()
    holder = LockedDir(str(gsd))
    holder.acquire(1)
    with pytest.raises(CannotWrite, match="held by another process"):
        say(journal, "two at once")
    assert (gsd / "journal.jsonl").read_bytes() == before
    holder.close()
    assert say(journal, "one after the other")[0]["seq"] == 4


def test_snapshot_of_other_fold_version_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SMALL", 0)
    gsd = tmp_path / "p" / ".gsd"
    long_journal(gsd, 70)
    path = gsd / "snapshot.json"
    first, _, ended = path.read_text().partition("\n")
    body = json.loads(first)["body"]
    body["fold"] += 1
    body["loops"]["loops"][0]["goal"] = "as another fold understood it"
    rest = json.dumps(body, separators=(",", ":")) + "}\n" + ended
    path.write_text(f'{{"digest":"{digest_of(rest)}","body":{rest}')
    assert Journal(str(gsd)).read_cached().by_id["lp-1"].goal == "seed 0"


def test_power_cut_keeps_torn_tail_or_its_saved_copy(tmp_path: Path) -> None:
    gsd = tmp_path / "p" / ".gsd"
    tail = b'{"v":1,"seq":5,"text":"' + b"t" * 700
    torn = long_bytes(gsd, 4) + tail
    (gsd / "journal.jsonl").write_bytes(torn)
    disk = Disk(files_in(gsd))
    with wired(disk.watch):
        append(Journal(str(gsd)))
    choose, kept = random.Random(7), 0
    for step in [*range(len(disk.log) + 1)] * 20:
        image = disk.before(step).image(choose, 512)
        asides = [data for name, data in image.items() if name.startswith("journal.broken-")]
        assert image["journal.jsonl"] == torn or asides == [tail]
        kept += asides == [tail]
    assert kept


def test_zeros_after_whole_last_line_are_removed_first(tmp_path: Path) -> None:
    gsd = tmp_path / "p" / ".gsd"
    data = long_bytes(gsd, 4)
    for zeros in (1, 2, 600):
        (gsd / "journal.jsonl").write_bytes(data[:-1] + bytes(zeros))
        written = say(Journal(str(gsd)), "next")[0]
        found = (gsd / "journal.jsonl").read_bytes()
        assert found.startswith(data)
        assert judge(found) == (5, written["sum"], 0, 0)


def test_open_writer_continues_in_replaced_file(
    tmp_path: Path,
) -> None:
    gsd = tmp_path / "p" / ".gsd"
    journal = long_journal(gsd, 4)
    path = gsd / "journal.jsonl"
    (gsd / "journal.new").write_bytes(path.read_bytes())
    (gsd / "journal.new").rename(path)  # as a repair by another process does
    written = say(journal, "into the new one")[0]
    assert judge(path.read_bytes()) == (5, written["sum"], 0, 0)


@pytest.mark.parametrize("wrong", [{"seq": 7}, {"ts": "2026-11-15T23:00:00.12xZ"}], ids=str)
def test_reader_refuses_what_fold_refuses(tmp_path: Path, wrong: dict[str, object]) -> None:
    data = long_bytes(tmp_path / "p" / ".gsd", 2)
    last, when = sums(data)[-1], {"ts": "2026-11-15T23:00:00.123Z"}
    for seq, change in ((3, {}), (4, {}), (5, wrong)):
        line, last = encode_event({"v": 1, "seq": seq, **when, **note("again"), **change}, last)
        data += line
    (tmp_path / "p" / ".gsd" / "journal.jsonl").write_bytes(data)
    for reader in (into_fold, in_bulk):
        with pytest.raises(Corrupt) as found:
            Journal(str(tmp_path / "p" / ".gsd")).read(reader)
        assert found.value.line == 5


def test_resume_reports_damage_hidden_by_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SMALL", 0)
    gsd = tmp_path / "p" / ".gsd"
    journal = long_journal(gsd, 70)
    append(journal, draft("pause", "lp-1", "human", {"code": "manual"}))
    path = gsd / "journal.jsonl"
    hurt = path.read_bytes().replace(b'"text":"5 ', b'"text":"6 ')
    path.write_bytes(hurt)
    assert Journal(str(gsd)).read_cached().seq == 71  # the snapshot stands behind the damage
    assert run(["--project", str(gsd.parent), "resume"]) == 5
    assert path.read_bytes() == hurt


def test_id_of_ended_loop_is_never_reused(tmp_path: Path) -> None:
    journal = new_journal(tmp_path / "p" / ".gsd")
    for loop in ("lp-1", "lp-2"):  # of the ended loops only the last is held in memory
        cancel = draft("cancel", loop, "human", {})
        append(journal, start_draft(loop), cancel)
    assert list(journal.loops.by_id) == ["lp-2"]
    for loop in ("lp-1", "lp-2"):
        with pytest.raises(Refused, match=r"already exists|cannot run 'start'"):
            append(journal, start_draft(loop))
    assert Journal(journal.path).read().seq == 5

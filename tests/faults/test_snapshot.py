"""Snapshots are a cache: damaged, forged or stale ones change no result."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.cli import run
from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.journal import journal as journal_module
from gsd_fsm.core.journal import snapshot
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.snapshot import pack
from tests.support.events import append, draft
from tests.support.faults import long_journal, say


@pytest.fixture
def gsd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a journal whose snapshot is a few events old."""
    monkeypatch.setattr(journal_module, "SMALL", 0)
    made = tmp_path / "p" / ".gsd"
    long_journal(made, 70)
    assert (made / "snapshot.json").exists()
    return made


def _run(gsd: Path, *words: str) -> int:
    return run(["--project", str(gsd.parent), *words])


def _loops(gsd: Path) -> Any:
    journal = Journal(str(gsd))
    loops = journal.read_cached()
    return loops.seq, journal.at.sum, [pack(loop) for loop in loops.by_id.values()]


def _forge(gsd: Path, change: dict[str, Any], in_loops: dict[str, Any], goal: str = "") -> None:
    """Write a snapshot with other content and its valid digest."""
    first, _, ended = (gsd / "snapshot.json").read_text().partition("\n")
    body = json.loads(first)["body"]
    if goal:
        body["loops"]["loops"][0]["goal"] = goal
    body.update(change)
    body["loops"].update(in_loops)
    rest = json.dumps(body, separators=(",", ":")) + "}\n" + ended
    (gsd / "snapshot.json").write_text(f'{{"digest":"{digest_of(rest)}","body":{rest}')


def test_only_fsck_and_replay_use_no_snapshot(gsd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = snapshot.load_snapshot

    def load(*arguments: Any) -> Any:
        found = real(*arguments)
        seen.append(found and found[0].seq)
        return found

    monkeypatch.setattr(snapshot, "load_snapshot", load)
    with_it = _loops(gsd)
    assert seen == [32]
    assert [_run(gsd, command, "--json") for command in ("fsck", "replay")] == [0, 0]
    path = gsd / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"seq":5,', b'"seq":6,'))
    assert _run(gsd, "fsck", "--json") == 5
    assert seen == [32]
    path.write_bytes(whole)
    (gsd / "snapshot.json").unlink()
    assert _loops(gsd) == with_it
    assert seen == [32, None]


def test_snapshot_damaged_at_any_byte_changes_nothing(gsd: Path) -> None:
    path = gsd / "snapshot.json"
    good, truth = path.read_bytes(), _loops(gsd)
    choose = random.Random(1)
    for offset in range(0, len(good), max(1, len(good) // 120)):
        for hurt in (
            good[:offset] + bytes([good[offset] ^ 1 << choose.randrange(8)]) + good[offset + 1 :],
            good[:offset],
            good[:offset] + b"\0" * (len(good) - offset),
        ):
            path.write_bytes(hurt)
            assert _loops(gsd) == truth, offset


@pytest.mark.parametrize(
    ("change", "in_loops"),
    [
        *[({"offset": offset}, {}) for offset in (77, -5, -(1 << 70), 1 << 50, "77")],
        *[(change, {}) for change in ({"sum": "0123456789abcdef"}, {"fold": 99}, {"line": 3})],
        *[({}, {"loops": loops}) for loops in (5, [{}])],
        ({}, {"seq": 12}),
    ],
    ids=str,
)
def test_forged_snapshot_changes_nothing(gsd: Path, change: Any, in_loops: Any) -> None:
    truth = _loops(gsd)
    _forge(gsd, change, in_loops, goal="Something else")
    assert _loops(gsd) == truth
    assert _run(gsd, "status") == 0
    assert say(Journal(str(gsd)), "next")[0]["seq"] == 71


def test_unknown_members_of_a_snapshot_are_ignored(gsd: Path) -> None:
    truth = _loops(gsd)
    _forge(gsd, {}, {"journal": "j-other", "ended": None})
    assert _loops(gsd) == truth


def test_snapshot_of_cloned_repository_cannot_forge_trust(gsd: Path) -> None:
    truth = _loops(gsd)
    _forge(gsd, {}, {}, goal="Something that nobody has started")
    # The clone has the same bytes in other files.
    data = (gsd / "journal.jsonl").read_bytes()
    (gsd / "journal.jsonl").rename(gsd.parent / "original")
    (gsd / "journal.jsonl").write_bytes(data)
    assert _loops(gsd) == truth


def test_stale_snapshot_is_caught_up_and_that_of_a_longer_journal_ignored(gsd: Path) -> None:
    path, journal = gsd / "snapshot.json", Journal(str(gsd))
    before, old, shorter = _loops(gsd), path.read_bytes(), (gsd / "journal.jsonl").read_bytes()
    for number in range(130):
        say(journal, f"later {number}")
    new, truth = path.read_bytes(), _loops(gsd)
    assert new != old
    path.write_bytes(old)
    assert _loops(gsd) == truth
    path.unlink()
    assert _loops(gsd) == truth
    path.write_bytes(new)
    (gsd / "journal.jsonl").write_bytes(shorter)
    assert _loops(gsd) == before


def test_snapshot_of_other_journal_or_fold_version_is_ignored(gsd: Path, tmp_path: Path) -> None:
    truth, path = _loops(gsd), gsd / "snapshot.json"
    fold = json.loads(path.read_text().partition("\n")[0])["body"]["fold"]
    _forge(gsd, {"fold": fold + 1}, {}, goal="as another fold understood it")
    assert _loops(gsd) == truth
    long_journal(tmp_path / "q" / ".gsd", 80, seed=7)
    path.write_bytes((tmp_path / "q" / ".gsd" / "snapshot.json").read_bytes())
    assert _loops(gsd) == truth


def test_resume_reports_damage_hidden_by_snapshot(gsd: Path) -> None:
    append(Journal(str(gsd)), draft("pause", "lp-1", "human", {"code": "manual"}))
    path = gsd / "journal.jsonl"
    hurt = path.read_bytes().replace(b'"text":"5 ', b'"text":"6 ')
    path.write_bytes(hurt)
    assert Journal(str(gsd)).read_cached().seq == 71  # the damage is before the snapshot
    assert _run(gsd, "resume") == 5
    assert path.read_bytes() == hurt

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


def _status(gsd: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(["--project", str(gsd.parent), "status", "--json"]) == 0
    return capsys.readouterr().out


def _loops(gsd: Path) -> Any:
    journal = Journal(str(gsd))
    loops = journal.read_cached()
    return loops.seq, journal.at.sum, [pack(loop) for loop in loops.by_id.values()]


def _forged(text: str, change: dict[str, Any], in_world: dict[str, Any]) -> str:
    """Return a snapshot with other content and its valid digest."""
    first, _, ended = text.partition("\n")
    body = json.loads(first)["body"]
    body.update(change)
    body["loops"].update(in_world)
    rest = json.dumps(body, separators=(",", ":")) + "}\n" + ended
    return f'{{"digest":"{digest_of(rest)}","body":{rest}'


def test_snapshot_is_used(gsd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = snapshot.load_snapshot

    def load(*arguments: Any) -> Any:
        found = real(*arguments)
        seen.append(found and found[0].seq)
        return found

    monkeypatch.setattr(snapshot, "load_snapshot", load)
    with_it = _loops(gsd)
    assert seen == [32]
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


FORGERIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another sum": ({"sum": "0123456789abcdef"}, {}),
    "another offset": ({"offset": 77}, {}),
    "an offset before the file": ({"offset": -5}, {}),
    "an offset far before the file": ({"offset": -(1 << 70)}, {}),
    "an offset behind the file": ({"offset": 1 << 50}, {}),
    "an offset that is a text": ({"offset": "77"}, {}),
    "another fold": ({"fold": 99}, {}),
    "another line": ({"line": 3}, {}),
    "loops that are a number": ({}, {"loops": 5}),
    "a loop without members": ({}, {"loops": [{}]}),
    "another seq": ({}, {"seq": 12}),
    "another journal": ({}, {"journal": "j-other"}),
    "ended that is null": ({}, {"ended": None}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_snapshot_changes_nothing(
    gsd: Path, capsys: pytest.CaptureFixture[str], forgery: str
) -> None:
    path = gsd / "snapshot.json"
    truth = _status(gsd, capsys)
    path.write_text(_forged(path.read_text(), *FORGERIES[forgery]))
    assert _status(gsd, capsys) == truth
    assert say(Journal(str(gsd)), "next")[0]["seq"] == 71


def test_snapshot_of_cloned_repository_cannot_forge_trust(
    gsd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = gsd / "snapshot.json"
    truth = _status(gsd, capsys)
    loops = json.loads(path.read_text().splitlines()[0])["body"]["loops"]["loops"]
    loops[0]["goal"] = "Something that nobody has started"
    path.write_text(_forged(path.read_text(), {}, {"loops": loops}))
    # The clone has the same bytes in other files.
    data = (gsd / "journal.jsonl").read_bytes()
    (gsd / "journal.jsonl").rename(gsd.parent / "original")
    (gsd / "journal.jsonl").write_bytes(data)
    assert _status(gsd, capsys) == truth


def test_stale_snapshot_is_caught_up(gsd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = gsd / "snapshot.json"
    old = path.read_bytes()
    journal = Journal(str(gsd))
    for number in range(130):
        say(journal, f"later {number}")
    assert path.read_bytes() != old
    truth = _status(gsd, capsys)
    path.write_bytes(old)
    assert _status(gsd, capsys) == truth
    path.unlink()
    assert _status(gsd, capsys) == truth


def test_snapshot_of_other_or_longer_journal_is_ignored(
    gsd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = _status(gsd, capsys)
    long_journal(tmp_path / "q" / ".gsd", 80, seed=7)
    (gsd / "snapshot.json").write_bytes((tmp_path / "q" / ".gsd" / "snapshot.json").read_bytes())
    assert _status(gsd, capsys) == truth
    path = gsd / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    journal = Journal(str(gsd))
    for number in range(70):
        say(journal, f"later {number}")
    path.write_bytes(b"".join(lines))
    assert _status(gsd, capsys) == truth


def test_fsck_and_replay_never_use_the_snapshot(
    gsd: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_arguments: Any) -> Any:
        raise AssertionError("the snapshot was read")

    monkeypatch.setattr(snapshot, "load_snapshot", never)
    assert run(["--project", str(gsd.parent), "fsck", "--json"]) == 0
    assert run(["--project", str(gsd.parent), "replay", "--json"]) == 0
    (gsd / "journal.jsonl").write_bytes(
        (gsd / "journal.jsonl").read_bytes().replace(b'"seq":5,', b'"seq":6,')
    )
    assert run(["--project", str(gsd.parent), "fsck", "--json"]) == 5


def test_snapshot_of_other_fold_version_is_ignored(gsd: Path) -> None:
    path = gsd / "snapshot.json"
    body = json.loads(path.read_text().partition("\n")[0])["body"]
    loops = body["loops"]["loops"]
    loops[0]["goal"] = "as another fold understood it"
    path.write_text(_forged(path.read_text(), {"fold": body["fold"] + 1}, {"loops": loops}))
    assert Journal(str(gsd)).read_cached().by_id["lp-1"].goal == "seed 0"


def test_resume_reports_damage_hidden_by_snapshot(gsd: Path) -> None:
    append(Journal(str(gsd)), draft("pause", "lp-1", "human", {"code": "manual"}))
    path = gsd / "journal.jsonl"
    hurt = path.read_bytes().replace(b'"text":"5 ', b'"text":"6 ')
    path.write_bytes(hurt)
    assert Journal(str(gsd)).read_cached().seq == 71  # the damage is before the snapshot
    assert run(["--project", str(gsd.parent), "resume"]) == 5
    assert path.read_bytes() == hurt

"""Repeated reads of one journal object: new events only, and none that the file has lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.errors import Corrupt
from gsd_fsm.core.journal import journal as journal_module
from gsd_fsm.core.journal.journal import Author, Journal

USER = Author("human")


def note(journal: Journal, text: str) -> None:
    with journal.transaction(USER) as tx:
        tx.append(tx.loops.by_id["lp-1"], "note", {"text": text})


@pytest.fixture
def started(journal: Journal) -> Journal:
    """Return a journal with one goal loop, lp-1, and one note."""
    with journal.transaction(USER) as tx:
        tx.start("lp-1", {"kind": "goal", "mode": "yolo", "goal": "Be read", "limits": {}})
    note(journal, "first")
    return journal


def notes(journal: Journal) -> list[str]:
    return [note.text for note in journal.read_cached().by_id["lp-1"].notes.values()]


def test_read_cached_folds_only_new_events_of_other_process(
    started: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Journal(started.path)
    assert notes(reader) == ["first"]
    note(started, "second")
    taken: list[bytes] = []
    fold = journal_module.into_fold

    def counting(loops: journal_module.Loops) -> object:
        take = fold(loops)
        return lambda line: (taken.append(line), take(line))

    monkeypatch.setattr(journal_module, "into_fold", counting)
    assert notes(reader) == ["first", "second"]
    assert len(taken) == 1


def test_read_cached_after_damage_rereads_restored_file(
    started: Journal,
) -> None:
    reader = Journal(started.path)
    assert notes(reader) == ["first"]
    note(started, "second")
    note(started, "third")
    path = Path(started.journal_path())
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"third", b"thirt"))
    with pytest.raises(Corrupt):
        reader.read_cached()
    path.write_bytes(whole)
    assert notes(reader) == ["first", "second", "third"]


@pytest.mark.parametrize("how", ["replaced", "truncated"])
def test_read_cached_of_replaced_or_truncated_file_forgets_lost_events(
    started: Journal, how: str
) -> None:
    reader = Journal(started.path)
    note(started, "second")
    assert notes(reader) == ["first", "second"]
    path = Path(started.journal_path())
    shorter = b"".join(path.read_bytes().splitlines(keepends=True)[:3])
    if how == "truncated":
        path.write_bytes(shorter)
    else:
        copy = path.with_name("copy")
        copy.write_bytes(shorter)
        started.close()  # Windows replaces no file that is open
        copy.replace(path)
    assert notes(reader) == ["first"]

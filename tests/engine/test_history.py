"""The list of ended loops comes from the whole journal, not from the state."""

from __future__ import annotations

from pathlib import Path

from gsd_fsm.engine.context import Context
from gsd_fsm.engine.history import event_count, history
from scripts.synthetic import ended_loops, write_journal
from tests.support.events import new_journal


def test_history_has_every_ended_loop_and_reports_progress(tmp_path: Path) -> None:
    journal = new_journal(tmp_path / ".gsd")
    write_journal(tmp_path / ".gsd" / "journal.jsonl", ended_loops(1_200))
    context = Context(tmp_path)
    seen: list[int] = []
    found = history(context, 0, seen.append)
    assert found.total == 1_200
    assert [it.loop for it in found.loops] == [f"lp-{n:06d}" for n in reversed(range(1_200))]
    assert seen == [1_000, 2_000]
    assert event_count(context) == 2_401
    assert {it.duration_ms for it in found.loops} == {250}
    assert len(journal.read().by_id) == 1  # the state alone would show one of them

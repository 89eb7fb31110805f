"""Golden journals: journals of each version always replay to the same result.

To record the replays again, run: GSD_RECORD=1 pytest tests/core/loop/test_golden.py
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.fold import Loops
from tests.support.command_line import Here, here
from tests.support.golden import DIRECTORY, NAMES, journal_bytes, write_lines

__all__ = ["here"]


def golden_events(name: str) -> list[Any]:
    return [parse_json(line.decode("ascii")) for line in journal_bytes(name).splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_golden_journal_is_written_and_replays_to_recorded_bytes(name: str, here: Here) -> None:
    here.gsd.mkdir()
    here.journal.write_bytes(journal_bytes(name))
    events, loops = golden_events(name), Loops()
    for event in events:
        loops.apply(event)
    assert write_lines(events) == journal_bytes(name)
    replayed = "".join(here.ok("replay", "--json", "--loop", loop).out for loop in loops.by_id)
    expected = DIRECTORY / f"{name}.replay.json"
    if os.environ.get("GSD_RECORD") == "1":
        expected.write_text(replayed, "utf-8")
    assert replayed == expected.read_text("utf-8")
    assert here.journal.read_bytes() == journal_bytes(name)
    assert sorted(path.name for path in here.gsd.iterdir()) == ["journal.jsonl"]


def test_golden_journals_are_complete() -> None:
    found = [f"{path.parent.name}/{path.stem}" for path in DIRECTORY.glob("*/*.jsonl")]
    assert sorted(found) == sorted(NAMES)
    assert {event["v"] for name in NAMES for event in golden_events(name)} == {1, 2}
    assert len({event["type"] for name in NAMES for event in golden_events(name)}) == 27

"""Mark a phase complete in `state.json` and `STATE.md`; all other bytes stay."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.phase.state_files import complete_in_json, complete_in_markdown
from tests.support.phases import NOW, FinishedPhase

STATE = """\
---
milestone: v0.6.0
last_active: 2026-01-19
phases_complete: []
phases_in_progress: [1]
phases_pending: [2, 1, 3]  # later

loop:
  phases_complete: []
---
phases_complete: []
"""
ENDED = (
    STATE.replace("phases_complete: []", "phases_complete: [1]", 1)
    .replace("[1]\nphases_pending: [2, 1, 3]", "[]\nphases_pending: [2, 3]")
    .replace("2026-01-19", NOW)
)


def changed(text: str, phase: int | str = 1, later: tuple[int, ...] = ()) -> str:
    once = complete_in_json(text, phase, NOW, later)
    assert complete_in_json(once, phase, "later", later) == once
    return once


def changed_markdown(text: str, phase: int | str = 1) -> str:
    once = complete_in_markdown(text, phase, NOW)
    assert complete_in_markdown(once, phase, "later") == once
    return once


def test_json_flat_lists_are_edited_in_place() -> None:
    frame = (
        '{{ "phases_complete": [1 ,2{}],"phases_in_progress":[{}],\n  "phases_pending": [4,5{}] }}'
    )
    assert changed(frame.format("", "3", " , 3"), 3) == frame.format(", 3", "", "")


def test_json_nested_lists_are_edited_in_place() -> None:
    text = '{"last_active": "x", "a": "…",\n "phases": { "complete": [], "in_progress": [1, 7] }}'
    ended = text.replace('"x"', f'"{NOW}"').replace("[]", "[1]").replace("[1, 7]", "[7]")
    assert changed(text) == ended
    both = {"phases_complete": None, "phases_pending": [1, 2], "phases": {"in_progress": ["01"]}}
    nested = {"in_progress": [], "complete": [1]}
    found = {"phases_complete": [1], "phases_pending": [2], "phases": nested}
    assert json.loads(changed(json.dumps(both))) == found


def test_json_without_lists_gets_flat_ones() -> None:
    text = '{\r\n  "milestone": "v1"\r\n}\r\n'
    lists = {"phases_complete": [2], "phases_in_progress": [], "phases_pending": [3, 4]}
    assert json.loads(changed(text, 2, later=(3, 4))) == {"milestone": "v1", **lists}
    assert "\n" not in changed(text, 2).replace("\r\n", "")


def test_pending_phases_come_from_the_roadmap(phase: FinishedPhase) -> None:
    phase.state.write_text("{}")
    phase.roadmap.write_text("## Phase 3: C\n## Phase 1: A\n## Phase 02: B\n")
    assert phase.end() == ["summary.md", "state.json", "roadmap.md"]
    assert json.loads(phase.state.read_text())["phases_pending"] == [2, 3]


def test_json_phase_is_found_in_every_spelling() -> None:
    for spelled in (1, 1.0, "1", "01", "phase-1", "Phase 1"):
        text = json.dumps({"phases_complete": [spelled], "phases_pending": [2]})
        assert changed(text) == text
        moved = changed(json.dumps({"phases_complete": [], "phases_in_progress": [spelled, "x"]}))
        assert json.loads(moved) == {"phases_complete": [1], "phases_in_progress": ["x"]}
    assert json.loads(changed('{"phases_complete": ["1"]}', 2)) == {"phases_complete": ["1", "2"]}
    assert json.loads(changed('{"phases_complete": []}', "2b")) == {"phases_complete": ["2b"]}
    kept = '{"phases_complete": [1], "phases_in_progress": [true, {"n": 1}, 10, 1.5]}'
    assert changed(kept) == kept


def test_json_loop_and_task_counter_of_the_phase_are_reset() -> None:
    loop = {"active": True, "phase": 1, "task_retries": {"T01": 2}, "max_iterations": 9, "own": 1}
    text = json.dumps({"phases_complete": [1], "loop": loop, "last_updated": "x"})
    reset = {**loop, "active": False, "phase": None, "task_retries": {}}
    found = {"phases_complete": [1], "loop": reset, "last_updated": NOW}
    assert json.loads(changed(text)) == found
    other = text.replace('"phase": 1', '"phase": 2')
    assert changed(other) == other
    text = '{"phases_complete": [1], "phase": 1, "task": 3, "status": "executing"}'
    assert changed(text) == text.replace("3", "null").replace("executing", "executed")
    other = text.replace('"phase": 1', '"phase": 2')
    assert changed(other) == other
    custom = text.replace("executing", "my own words").replace("3", "null")
    assert changed(custom) == custom


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{\n  "a": 1,\n}', "state.json:3: "),
        (b"[]", "not a JSON object"),
        (b" " * (5 << 20), "larger than 4 MiB"),
        (b'{"phases_complete": 3}', "phases_complete is not a list"),
        (b'{"phases": {"complete": [], "pending": "x"}}', "phases.pending is not a list"),
        (b'{"phases_complete": [%s1]}' % (b"1," * 600), "more than 500"),
        (b'{\n"a": "\xff"}', "state.json:2: not valid UTF-8"),
    ],
)
def test_malformed_json_state_is_refused_and_nothing_changes(phase, content, problem) -> None:
    phase.state.write_bytes(content)
    phase.roadmap.write_text("## Phase 1: A\n")
    before = phase.everything()
    with pytest.raises(UsageError, match=problem) as error:
        phase.changes()
    assert "state.json" in error.value.message
    assert error.value.hint
    assert phase.everything() == before


@given(text=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_json_text_is_edited_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert json.loads(changed(text))


def test_markdown_lists_are_edited_in_place_and_entries_keep_their_style() -> None:
    assert changed_markdown(STATE) == ENDED
    assert changed_markdown(STATE.replace("\n", "\r\n")) == ENDED.replace("\n", "\r\n")
    frame = "---\nphases_complete: [{}]\nphases_pending: [{}]\nlast_updated: {} # when\n---\n"
    assert changed_markdown(frame.format('"1"', "3,2 ,4", '"x"'), 2) == (
        frame.format('"1", "2"', "3,4", f'"{NOW}"')
    )
    assert changed_markdown(frame.format("1,", "", "y"), "2b") == frame.format("1, 2b", "", NOW)
    assert changed_markdown(frame.format("01", "x", "y")) == frame.format("01", "x", "y")


def test_markdown_without_flow_lists_in_front_matter_stays() -> None:
    for text in ("", "phases_complete: []\n", "---\nphases_complete: []\n"):
        assert changed_markdown(text) == text
        assert changed_markdown(f"# Title\n{text}---\n") == f"# Title\n{text}---\n"
    for value in ("\n  - 2", "[[1], 2]", "[2] and more", "[\n  2]"):
        text = f"---\nphases_complete: {value}\n---\n"
        assert changed_markdown(text) == text


def test_markdown_state_is_edited_only_without_a_foreign_state(own: FinishedPhase) -> None:
    own.state.write_bytes(b"\xef\xbb\xbf" + STATE.encode() + b"\xff\n")
    assert own.end() == ["summary.md", "STATE.md"]
    assert own.state.read_bytes() == b"\xef\xbb\xbf" + ENDED.encode() + b"\xff\n"
    assert own.end() == []
    foreign = FinishedPhase(own.root, ".opti-gsd")
    own.state.write_text(STATE)
    assert foreign.end() == ["summary.md"]
    assert own.state.read_text() == STATE


LINES = st.sampled_from(["---", "phases_complete: [2]", "phases_pending: [1]", "last_active: x"])


@given(st.lists(LINES | st.text()).map("\n".join))
def test_markdown_edit_is_idempotent_and_keeps_the_number_of_lines(text: str) -> None:
    assert changed_markdown(text).count("\n") == text.count("\n")

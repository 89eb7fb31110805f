"""Mark a phase complete in `state.json` and `STATE.md`; all other bytes stay."""

from __future__ import annotations

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.views.state_md import loop_section
from gsd_fsm.phase.state_files import (
    complete_in_json,
    complete_in_markdown,
    hide_loop,
    loop_members,
    show_loop,
    shows_foreign_loop,
)
from tests.support.foreign_files import PHASE_STATE
from tests.support.phases import NOW, FinishedPhase
from tests.support.story import Story

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


def a_loop(kind: str = "execute") -> Story:
    """Return a live loop of phase 1 with three tasks."""
    return Story(kind, phase=1, tasks=[{"id": f"T0{n}", "title": "t"} for n in (1, 2, 3)])


def test_json_shows_a_live_loop_and_nothing_else_changes() -> None:
    story = a_loop()
    story.task("T01", "running", ref="abc")
    text = PHASE_STATE.replace('{\n  "loop"', '{\r\n  "a" : [1,2],\n  "loop"')
    once = show_loop(text, story.loop)
    assert show_loop(once, story.loop) == once
    document = json.loads(once)
    retries = {"T01": 0, "T02": 0}  # a task that the file lists stays
    assert {name: document["loop"][name] for name in ("started", "task_retries", "wave")} == {
        "started": story.loop.started, "task_retries": retries, "wave": None,
    }  # fmt: skip
    assert "iteration" not in document["loop"]
    assert once.startswith('{\r\n  "a" : [1,2],\n  "loop": {\n    "active": true,\n')
    assert json.loads(hide_loop(once, a_loop().loop)) == {"a": [1, 2], "loop": {
        **document["loop"], **{name: value for name, value in loop_members(Loop()).items()
                               if name in document["loop"]}}}  # fmt: skip
    assert hide_loop(text, story.loop) == text


def test_json_members_of_a_loop_say_the_same_as_state_md() -> None:
    def assert_same(loop: Loop) -> None:
        shown = loop_members(loop, ["T01", "T02", "T03"])
        section = yaml.safe_load("\n".join(loop_section(loop)))["loop"]
        common = shown.keys() & section.keys()
        assert len(common) == 11
        assert {name: shown[name] for name in common} == {name: section[name] for name in common}

    assert_same(Loop())
    story = a_loop("verify")
    story("gap", action="found", gap="G1", kind="stub")
    story("verified", passed=False)
    assert_same(story("iteration"))
    story.fail("T02")
    assert_same(story("wait", for_="human", question="Which?"))
    assert_same(story("pause", code="manual", reason="lunch"))


def test_json_counter_is_the_last_task_up_to_which_all_are_done() -> None:
    story = a_loop()
    text = '{"phase": "01", "task": null, "loop": {}}'
    for task, status, counter in (
        ("T02", "complete", None), ("T03", "complete", None), ("T01", "skipped", 3),
    ):  # fmt: skip
        story.task(task, "running")
        story.task(task, status)
        text = show_loop(text, story.loop)
        assert json.loads(text)["task"] == counter
    other = '{"phase": 2, "task": 1, "loop": {}}'
    assert json.loads(show_loop(other, story.loop))["task"] == 1


def test_json_shows_a_foreign_loop_until_ours_is_shown() -> None:
    loop = a_loop().loop
    assert shows_foreign_loop(PHASE_STATE, [loop], is_ours=True)
    assert not shows_foreign_loop(show_loop(PHASE_STATE, loop), [loop], is_ours=False)
    assert not shows_foreign_loop(PHASE_STATE.replace("true", "false"), [loop], is_ours=False)
    assert shows_foreign_loop('{"phase": 1, "task": 2}', [loop], is_ours=False)
    assert not shows_foreign_loop('{"phase": 1, "task": 2}', [loop], is_ours=True)


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

"""The front matter of `STATE.md` is edited within its lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.phase.state_lines import with_phase_complete
from tests.support.finished_phase import NOW, Phase

STATE = """\
---
milestone: v0.6.0
phase: 1
task: 7/7

last_active: 2026-01-19
phases_complete: []
phases_in_progress: [1]
phases_pending: [2, 1, 3]  # later

loop:
  phases_complete: []
---

## Session Context
phases_complete: []
"""
ENDED = (
    STATE.replace("phases_complete: []", "phases_complete: [1]", 1)
    .replace("[1]\nphases_pending: [2, 1, 3]", "[]\nphases_pending: [2, 3]")
    .replace("2026-01-19", NOW)
)


def changed(text: str, phase: int | str = 1) -> str:
    once = with_phase_complete(text, phase, NOW)
    assert with_phase_complete(once, phase, "later") == once
    return once


def test_the_lists_are_edited_and_the_rest_stays() -> None:
    assert changed(STATE) == ENDED
    assert changed(STATE.replace("\n", "\r\n")) == ENDED.replace("\n", "\r\n")


def test_entries_keep_their_style() -> None:
    frame = "---\nphases_complete: [{}]\nphases_pending: [{}]\nlast_updated: {} # when\n---\n"
    assert changed(frame.format('"1"', "3,2 ,4", '"x"'), 2) == (
        frame.format('"1", "2"', "3,4", f'"{NOW}"')
    )
    assert changed(frame.format("1,", "", "y"), "2b") == frame.format("1, 2b", "", NOW)
    assert changed(frame.format("01", "x", "y")) == frame.format("01", "x", "y")


def test_what_is_no_flow_list_in_front_matter_is_left_alone() -> None:
    for text in (
        "",
        "phases_complete: []\n",
        "---\nphases_complete: []\n",
        "---\nphases_complete:\n  - 2\n---\n",
        "---\nphases_complete: [[1], 2]\n---\n",
        "---\nphases_complete: [2] and more\n---\n",
        "---\nphases_complete: [\n  2]\n---\n",
        "# Title\n---\nphases_complete: []\n---\n",
    ):
        assert changed(text) == text


def test_a_project_with_plans_of_our_own_has_its_state_there(own: Phase) -> None:
    own.state.write_bytes(b"\xef\xbb\xbf" + STATE.encode() + b"\xff\n")
    assert own.end() == ["summary.md", "STATE.md"]
    assert own.state.read_bytes() == b"\xef\xbb\xbf" + ENDED.encode() + b"\xff\n"
    assert own.end() == []


def test_beside_a_foreign_state_it_is_not_touched(phase: Phase) -> None:
    (phase.root / ".gsd").mkdir()
    state = phase.root / ".gsd" / "STATE.md"
    state.write_text(STATE)
    assert phase.end() == ["summary.md"]
    assert state.read_text() == STATE


@given(
    st.lists(
        st.sampled_from(["---", "phases_complete: [2]", "phases_pending: [1]", "last_active: x"])
        | st.text()
    ).map("\n".join)
)
def test_ending_twice_is_ending_once(text: str) -> None:
    assert changed(text).count("\n") == text.count("\n")

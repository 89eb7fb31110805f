"""A phase moves among the complete ones in `state.json`; all else keeps its bytes."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.phase.project_state import FLAT, NESTED, with_phase_complete
from tests.support.finished_phase import NOW, Phase

NEW = {
    "milestone": None,
    "branch": "master",
    "phase": None,
    "task": None,
    "status": "milestone_started",
    "phases": {"complete": [], "in_progress": [], "pending": []},
    "last_active": "2026-01-26T00:00:00Z",
    "context": "Ready…",
}


def changed(text: str, phase: int | str = 1, later: tuple[int, ...] = ()) -> str:
    once = with_phase_complete(text, phase, NOW, later)
    assert with_phase_complete(once, phase, "later", later) == once
    return once


def test_flat_lists_are_edited_in_their_places() -> None:
    text = (
        '{ "phases_complete": [1 ,2],"phases_in_progress":[3],\n'
        '  "phases_pending": [4,5 , 3], "note":  1.50 }\n'
    )
    assert changed(text, 3) == (
        '{ "phases_complete": [1 ,2, 3],"phases_in_progress":[],\n'
        '  "phases_pending": [4,5], "note":  1.50 }\n'
    )


def test_nested_lists_are_edited_in_their_places() -> None:
    text = json.dumps(NEW, indent=2, ensure_ascii=False) + "\n"
    assert json.loads(changed(text)) == {
        **NEW,
        "phases": {"complete": [1], "in_progress": [], "pending": []},
        "last_active": NOW,
    }
    assert '"context": "Ready…"' in changed(text)
    busy = text.replace('"in_progress": []', '"in_progress": [1, 7]')
    assert json.loads(changed(busy))["phases"]["in_progress"] == [7]


def test_without_any_lists_the_flat_ones_are_added() -> None:
    text = '{\r\n  "milestone": "v1"\r\n}\r\n'
    found = json.loads(changed(text, 2, later=(3, 4)))
    assert found == {
        "milestone": "v1",
        "phases_complete": [2],
        "phases_in_progress": [],
        "phases_pending": [3, 4],
    }
    assert "\n" not in changed(text, 2).replace("\r\n", "")


def test_pending_phases_come_from_the_roadmap(phase: Phase) -> None:
    phase.state.write_text("{}")
    phase.roadmap.write_text("## Phase 3: C\n## Phase 1: A\n## Phase 02: B\n")
    assert phase.end() == ["summary.md", "state.json", "roadmap.md"]
    assert json.loads(phase.state.read_text())["phases_pending"] == [2, 3]


def test_one_phase_has_many_spellings_and_is_complete_once() -> None:
    for spelled in (1, 1.0, "1", "01", "phase-1", "Phase 1"):
        text = json.dumps({"phases_complete": [spelled], "phases_pending": [2]})
        assert changed(text) == text
        moved = changed(json.dumps({"phases_complete": [], "phases_in_progress": [spelled, "x"]}))
        assert json.loads(moved) == {"phases_complete": [1], "phases_in_progress": ["x"]}
    assert json.loads(changed('{"phases_complete": ["1"]}', 2)) == {"phases_complete": ["1", "2"]}
    assert json.loads(changed('{"phases_complete": []}', "2b")) == {"phases_complete": ["2b"]}
    kept = '{"phases_complete": [1], "phases_in_progress": [true, {"n": 1}, 10, 1.5]}'
    assert changed(kept) == kept


def test_the_loop_is_at_rest_in_the_keys_that_it_has() -> None:
    loop = {"active": True, "phase": 1, "task_retries": {"T01": 2}, "max_iterations": 9, "own": 1}
    text = json.dumps({"phases_complete": [1], "loop": loop, "last_updated": "x"})
    assert json.loads(changed(text)) == {
        "phases_complete": [1],
        "loop": {"active": False, "phase": None, "task_retries": {}, "max_iterations": 9, "own": 1},
        "last_updated": NOW,
    }
    other = text.replace('"phase": 1', '"phase": 2')
    assert changed(other) == other


def test_the_task_counter_is_reset_only_if_it_is_of_this_phase() -> None:
    text = '{"phases_complete": [1], "phase": 1, "task": 3, "status": "executing"}'
    assert json.loads(changed(text)) == {
        "phases_complete": [1],
        "phase": 1,
        "task": None,
        "status": "executed",
    }
    other = text.replace('"phase": 1', '"phase": 2')
    assert changed(other) == other
    said = text.replace("executing", "my own words").replace("3", "null")
    assert changed(said) == said


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{\n  "a": 1,\n}', "line 3, column 1"),
        (b"", "line 1, column 1"),
        (b"[]", "not a JSON object"),
        (b'{"phases_complete": 3}', "phases_complete is not a list"),
        (b'{"phases": {"complete": [], "pending": "x"}}', "phases.pending is not a list"),
        (b'{"phases_complete": [%s1]}' % (b"1," * 600), "more than 500"),
        (b'{\n"a": "\xff"}', "state.json:2: not valid UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1}\0', "NUL"),
        (b" " * (5 << 20), "larger than 4 MiB"),
    ],
)
def test_a_damaged_state_is_told_with_its_place_and_nothing_changes(
    phase: Phase, content: bytes, told: str
) -> None:
    phase.state.write_bytes(content)
    phase.roadmap.write_text("## Phase 1: A\n")
    before = phase.everything()
    with pytest.raises(UsageError) as error:
        phase.changes()
    assert told in error.value.message
    assert "state.json" in error.value.message
    assert error.value.hint
    assert phase.everything() == before


names = st.sampled_from([1, "1", "01", 2, 3, "x", None, True, {"n": 1}])
lists = st.lists(names, max_size=4) | st.none()
flat = st.dictionaries(st.sampled_from(FLAT), lists)
nested = st.dictionaries(st.sampled_from(NESTED), lists)
others = st.dictionaries(
    st.text(), st.none() | st.integers() | st.text() | st.lists(st.floats(0, 9))
)
layouts = st.sampled_from([{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}])


def is_one(entry: Any) -> bool:
    return entry in ("1", "01") or (entry == 1 and not isinstance(entry, bool))


@given(flat=flat, phases=nested | st.none(), other=others, layout=layouts)
def test_whatever_the_shape_the_phase_is_complete_and_the_rest_is_kept(
    flat: dict, phases: dict | None, other: dict, layout: dict
) -> None:
    known = {"phases", *FLAT, "loop", "task", "status", "phase", "last_active", "last_updated"}
    document = {name: value for name, value in other.items() if name not in known} | flat
    if phases is not None:
        document["phases"] = phases
    after = json.loads(changed(json.dumps(document, **layout)))
    found = []
    for shape, names in ((after, FLAT), (after.get("phases") or {}, NESTED)):
        if any(name in shape for name in names):
            found.append(shape[names[0]])
            for name in names[1:]:
                assert not any(is_one(entry) for entry in shape.get(name) or [])
    assert found
    assert all(any(is_one(entry) for entry in entries) for entries in found)
    for name, value in document.items():
        if name not in known:
            assert after[name] == value
    for name in FLAT:
        rest = [entry for entry in document.get(name) or [] if not is_one(entry)]
        assert [entry for entry in after.get(name) or [] if not is_one(entry)] == rest


@given(text=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_state_or_is_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert json.loads(changed(text))

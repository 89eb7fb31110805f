"""Any file is read as a loop or rejected, and the view of an imported loop equals the file."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.events.goals import SHAPES, STAGES
from gsd_fsm.core.loop.state import LIVE
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.views.loop_json import state, workflow_state
from gsd_fsm.core.views.state_md import loop_section
from tests.support.foreign_files import RALPH, STATE, STATE_MD, WORKFLOW, loop_of, read, refused
from tests.support.lines import json_values

GOOD = [json.dumps(STATE), json.dumps(WORKFLOW), STATE_MD, RALPH]


@pytest.mark.parametrize(
    "content",
    ["", "\n\n", "# Notes\n", "{}", '{"status": "in_progress"}', '{"a": {"spec": 1, "criteria": 2}}',
     "---\ntitle: a\niteration: 1\n---\n", "loop:\n  active: true\n", "<?xml version='1.0'?>", "null",
     json.dumps([STATE]), '{"spec": 1, "criteria": 2, "stage": 3, "task": 4}', "-----\nloop: 1\n---\n"],
)  # fmt: skip
def test_unknown_format_is_rejected(content: str) -> None:
    assert refused(content) == "FILE: unknown loop format"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{\n\xff}", "FILE:2: not valid UTF-8"),
        (b'{"spec": "a",\n "criteria": }', "FILE:2:14: not valid JSON: "),
        (b'{"a": {"x\\n": 1, "x\\n": 2}}', "FILE:1: duplicate key: x\\u{a}"),
        (b"---\nloop: 1\n", "FILE:1: the front matter has no closing"),
        (b'---\n"loop:\n---\n', "FILE:"),
    ],
)
def test_damage_is_reported_with_its_place(content: bytes, message: str) -> None:
    assert refused(content).startswith(message)


def test_numbers_of_any_length_are_refused_and_odd_characters_replaced() -> None:
    for number in ("9" * 100_000, "1e999999", "-" + "9" * 30, "1" + "0" * 18):
        text = json.dumps(STATE).replace('"iteration": 2', f'"iteration": {number}')
        assert "iteration must be a whole number" in refused(text)
    odd = {"\ud800": 1, "\x1b[31m\n": 2, "\u202e" * 500: 3}
    note = read({**STATE, **odd}).notes[0]
    assert note.startswith("Not imported: \ufffd\ufffd\ufffd, \\u{1b}[31m\\u{a}, \\u{202e}")
    assert len(note) < 700
    assert read({**STATE, "spec": "a\ud800b"}).start["goal"] == "a\ufffd\ufffd\ufffdb"


@given(st.sampled_from(GOOD), st.data())
def test_damaged_file_is_read_or_rejected(good: str, data: st.DataObject) -> None:
    raw = bytearray(good.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        end = at + data.draw(st.integers(0, 8))
        raw[at:end] = data.draw(st.binary(max_size=4) | st.sampled_from([b"{", b"\n", b": "]))
    assert_read_or_rejected(bytes(raw))


@given(st.sampled_from([STATE, WORKFLOW]), st.data())
def test_member_with_any_value_is_read_or_rejected(good: dict[str, Any], data: Any) -> None:
    document = json.loads(json.dumps(good))
    inside = [document, *(item for item in document.values() if isinstance(item, dict))]
    place = data.draw(st.sampled_from(inside))
    name = data.draw(st.sampled_from(list(place)) | st.text(max_size=3))
    place[name] = data.draw(json_values)
    assert_read_or_rejected(json.dumps(document).encode())


def assert_read_or_rejected(content: bytes) -> None:
    try:
        found = loop_of(read(content)).status
    except UsageError as error:
        found = error.message
    assert found.startswith((*LIVE, "FILE"))


# Round trips

counts = st.integers(0, 10**6)
# PyYAML writes a NEL that it reads as a blank.
letters = st.characters(blacklist_categories=("Cs",), blacklist_characters="\x85")


def texts(longest: int = 60) -> st.SearchStrategy[str]:
    """Return texts without secrets."""
    found = st.text(letters, min_size=1, max_size=longest).map(str.strip)
    return found.filter(lambda text: text and "\0" not in text and redact(text) == text)


seconds = st.datetimes().filter(lambda when: 1970 <= when.year < 9999)
times = seconds.map(lambda when: f"{when:%Y-%m-%dT%H:%M:%S}Z".zfill(20))


@st.composite
def states(draw: st.DrawFn) -> dict[str, Any]:
    status = draw(st.dictionaries(texts(), st.booleans(), max_size=4))
    steps = draw(st.dictionaries(texts(), st.booleans()))
    unmet = draw(st.sampled_from([*status, ""]))
    return {
        "spec": draw(texts(300)), "criteria": list(status), "criteriaStatus": status,
        "exit_signal": all(status.values()) and draw(st.booleans()), "steps": list(steps),
        "completedSteps": [title for title, done in steps.items() if done],
        "remainingSteps": [title for title, done in steps.items() if not done],
        "iteration": draw(counts), "status": "in_progress",
        "circuitBreaker": {"stuckCount": draw(counts), "lastUnmet": unmet},
    }  # fmt: skip


scores = {"score": st.floats(0, 10) | counts, "issues": counts}
light = st.fixed_dictionaries({}, optional={**scores, "blockers": counts})
outcomes = [(True, 0), (False, None), (False, 0), (False, 3)]
thorough = st.one_of(
    st.fixed_dictionaries(
        {"passed": st.just(passed), "blockers_remaining": st.just(blockers)}, optional=scores
    )
    for passed, blockers in outcomes
)
waves = st.dictionaries(st.integers(0, 99).map("wave_{}".format), light, max_size=4)
workflows = st.fixed_dictionaries({
    "version": st.just(1), "stage": st.sampled_from(STAGES[:-1]), "task": texts(300),
    "spec_score": st.none() | st.integers(0, 10), "fit_score": st.none() | st.integers(0, 75),
    "shape_chosen": st.none() | st.sampled_from(SHAPES), "started_at": times,
    "last_updated": times, "recall_surfaced": st.lists(texts(), max_size=5),
    "reviews": waves | st.builds(lambda some, last: {**some, "thorough": last}, waves, thorough),
})  # fmt: skip
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,10}", fullmatch=True)
pauses = st.just((False, None)) | st.tuples(st.just(True), texts())
sections = st.builds(
    lambda section, pause: {
        **section, "active": not pause[0], "paused": pause[0], "pause_reason": pause[1]
    },
    st.fixed_dictionaries({
        "type": st.sampled_from(("execute", "verify")), "phase": st.none() | counts | texts(5),
        "iteration": counts, "max_iterations": counts, "gaps_remaining": st.integers(0, 5),
        "task_retries": st.dictionaries(ids, counts, max_size=4), "started": times,
        "last_iteration": st.none() | times, "last_error": st.none() | texts(),
        "history": st.lists(texts(), max_size=3),
    }),
    pauses,
)  # fmt: skip


@given(states(), st.booleans())
def test_view_of_an_imported_state_equals_the_file(document: dict, ascii_only: bool) -> None:
    old = read(json.dumps(document, ensure_ascii=ascii_only))
    assert state(loop_of(old)) == document
    assert old.notes == []


@given(workflows)
def test_view_of_an_imported_workflow_equals_the_file(document: dict[str, Any]) -> None:
    assert workflow_state(loop_of(read(document))) == document


@given(sections, st.sampled_from([None, True, False]), st.booleans())
def test_view_of_an_imported_loop_section_equals_the_file(
    section: dict[str, Any], flow: bool | None, unicode: bool
) -> None:
    if flow is True:
        front = f"loop: {yaml.safe_dump(section, default_flow_style=True, width=10**6)}"
    else:
        whole = {"before": "x: y", "loop": section, "zero": 0}
        options: Any = {"default_flow_style": flow, "allow_unicode": unicode}
        front = yaml.safe_dump(whole, sort_keys=False, **options)
    section = yaml.safe_load(front)["loop"]  # PyYAML reads a bare NEL as a line break
    loop = loop_of(read(f"---\n{front}---\n"))
    shown = yaml.safe_load("\n".join(loop_section(loop)))["loop"]
    for name in ("started", "last_iteration"):
        shown[name] = shown[name] and shown[name].replace(".000Z", "Z")
    assert shown == section

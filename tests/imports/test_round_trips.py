"""A file becomes a loop, and the view of that loop is the file again."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.events.goals import SHAPES, STAGES
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.views.loop_json import state, workflow_state
from gsd_fsm.core.views.state_md import loop_section
from tests.support.foreign_files import loop_of, read

counts = st.integers(0, 10**6)
# A NEL that PyYAML writes is a blank when PyYAML reads it.
letters = st.characters(blacklist_categories=("Cs",), blacklist_characters="\x85")


def texts(longest: int = 60) -> st.SearchStrategy[str]:
    """Texts that nothing is taken from on their way into the journal."""
    found = st.text(letters, min_size=1, max_size=longest).map(str.strip)
    return found.filter(lambda text: text and "\0" not in text and redact(text) == text)


seconds = st.datetimes().filter(lambda when: 1970 <= when.year < 9999)
times = seconds.map(lambda when: f"{when:%Y-%m-%dT%H:%M:%S}Z".zfill(20))


@st.composite
def states(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(texts(), unique=True, max_size=4))
    status = {name: draw(st.booleans()) for name in names}
    steps = [(title, draw(st.booleans())) for title in draw(st.lists(texts(), unique=True))]
    return {
        "spec": draw(texts(300)),
        "criteria": names,
        "criteriaStatus": status,
        "exit_signal": all(status.values()) and draw(st.booleans()),
        "steps": [title for title, _ in steps],
        "completedSteps": [title for title, done in steps if done],
        "remainingSteps": [title for title, done in steps if not done],
        "iteration": draw(counts),
        "status": "in_progress",
        "circuitBreaker": {
            "stuckCount": draw(counts),
            "lastUnmet": draw(st.sampled_from([*names, ""])),
        },
    }


light = st.fixed_dictionaries(
    {}, optional={"score": st.floats(0, 10) | counts, "issues": counts, "blockers": counts}
)
figures = st.fixed_dictionaries({}, optional={"score": counts, "issues": counts})
outcomes = st.sampled_from([(True, 0), (False, None), (False, 0), (False, 3)])
thorough = st.tuples(outcomes, figures).map(
    lambda both: {"passed": both[0][0], "blockers_remaining": both[0][1], **both[1]}
)


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    waves = draw(st.dictionaries(st.integers(0, 99).map("wave_{}".format), light, max_size=4))
    last = draw(st.fixed_dictionaries({}, optional={"thorough": thorough}))
    return {
        "version": 1,
        "stage": draw(st.sampled_from(STAGES[:-1])),
        "task": draw(texts(300)),
        "spec_score": draw(st.none() | st.integers(0, 10)),
        "fit_score": draw(st.none() | st.integers(0, 75)),
        "shape_chosen": draw(st.none() | st.sampled_from(SHAPES)),
        "started_at": draw(times),
        "last_updated": draw(times),
        "recall_surfaced": draw(st.lists(texts(), max_size=5)),
        "reviews": {**waves, **last},
    }


ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,10}", fullmatch=True)


@st.composite
def sections(draw: st.DrawFn) -> dict[str, Any]:
    paused = draw(st.booleans())
    return {
        "active": not paused,
        "type": draw(st.sampled_from(("execute", "verify"))),
        "phase": draw(st.none() | counts | texts(5)),
        "iteration": draw(counts),
        "max_iterations": draw(counts),
        "task_retries": draw(st.dictionaries(ids, counts, max_size=4)),
        "gaps_remaining": draw(st.integers(0, 5)),
        "started": draw(times),
        "last_iteration": draw(st.none() | times),
        "paused": paused,
        "pause_reason": draw(texts()) if paused else None,
        "last_error": draw(st.none() | texts()),
        "history": draw(st.lists(texts(), max_size=3)),
    }


@given(states(), st.booleans())
def test_a_state_is_shown_as_it_was_read(document: dict[str, Any], ascii_only: bool) -> None:
    old = read(json.dumps(document, ensure_ascii=ascii_only))
    assert state(loop_of(old)) == document
    assert old.notes == []


@given(workflows())
def test_a_workflow_is_shown_as_it_was_read(document: dict[str, Any]) -> None:
    assert workflow_state(loop_of(read(document))) == document


@given(sections(), st.sampled_from([None, True, False]), st.booleans())
def test_a_section_is_shown_as_it_was_read(
    section: dict[str, Any], flow: bool | None, unicode: bool
) -> None:
    front = yaml.safe_dump(
        {"before": "x: y", "loop": section, "zero": 0},
        sort_keys=False,
        default_flow_style=flow,
        allow_unicode=unicode,
    )
    if flow is True:
        front = f"loop: {_inner(section)}"
    section = yaml.safe_load(front)["loop"]  # a bare NEL is a line break once it is written
    loop = loop_of(read(f"---\n{front}---\n"))
    shown = yaml.safe_load("\n".join(loop_section(loop)))["loop"]
    assert _plain(shown) == _plain(section)


def _inner(section: dict[str, Any]) -> str:
    return str(yaml.safe_dump(section, default_flow_style=True, width=10**6))


def _plain(section: dict[str, Any]) -> dict[str, Any]:
    """The section with its times in one form."""
    form = {
        name: section[name] and section[name].replace(".000Z", "Z")
        for name in ("started", "last_iteration")
    }
    return {**section, **form}

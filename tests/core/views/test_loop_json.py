"""The JSON views of a goal loop have exactly the members that other programs expect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.views.loop_json import LOOP_FILES, state, view_files, workflow_state
from gsd_fsm.engine.status import status_view
from tests.support.story import Story

WORKFLOW_STATE: dict[str, Any] = {
    "version": 1, "stage": "executing", "task": "original user request", "spec_score": 7,
    "fit_score": 35, "shape_chosen": "tool-review", "started_at": "2026-02-05T10:00:00Z",
    "last_updated": "2026-02-05T10:15:00Z",
    "recall_surfaced": ["auth edge cases", "validation patterns"],
    "reviews": {
        "wave_1": {"score": 8, "issues": 2, "blockers": 0},
        "wave_2": {"score": 7, "issues": 3, "blockers": 1},
        "thorough": {"passed": False, "blockers_remaining": 1},
    },
}  # fmt: skip
STATE: dict[str, Any] = {
    "spec": "original user request verbatim",
    "criteria": ["tests pass", "lint clean", "no type errors"],
    "criteriaStatus": {"tests pass": False, "lint clean": True, "no type errors": False},
    "exit_signal": False, "steps": ["step1", "step2", "step3"], "completedSteps": ["step1"],
    "remainingSteps": ["step2", "step3"], "iteration": 2, "status": "in_progress",
    "circuitBreaker": {"stuckCount": 0, "lastUnmet": "tests pass"},
}  # fmt: skip


def test_workflow_state_has_exactly_its_members_in_order() -> None:
    times = {"started": "2026-02-05T10:00:00.000Z", "updated": "2026-02-05T10:15:00.000Z"}
    story = Story("goal", goal="original user request", carried=times)  # imported in one append
    events: list[tuple[str, dict[str, Any]]] = [
        *(("stage", {"stage": stage}) for stage in ("intent", "shape", "decompose", "executing")),
        ("score", {"spec_score": 7, "fit_score": 35, "shape": "tool-review"}),
        *(("note", {"kind": "recall", "text": t}) for t in WORKFLOW_STATE["recall_surfaced"]),
        ("review", {"action": "begun"}),
        ("review", {"action": "failed", "blockers": 1}),
        ("review", {"action": "light", "wave": 2, "score": 7, "issues": 3, "blockers": 1}),
        ("review", {"action": "light", "wave": 1, "score": 8, "issues": 2, "blockers": 0}),
    ]
    for kind, data in events:
        story(kind, **data, _after=0)
    assert json.dumps(workflow_state(story.loop)) == json.dumps(WORKFLOW_STATE)
    story("note", text="on", _after=1234)
    shown = workflow_state(story.loop)
    assert shown["started_at"] == "2026-02-05T10:00:00Z"
    assert shown["last_updated"] == story.loop.last_event == "2026-11-15T23:00:03.234Z"


def test_workflow_state_of_new_loop_has_nulls_and_stage_executing() -> None:
    shown = workflow_state(Story("goal").loop)
    assert [shown[name] for name in ("spec_score", "fit_score", "shape_chosen")] == [None] * 3
    assert (shown["stage"], shown["recall_surfaced"], shown["reviews"]) == ("executing", [], {})
    assert shown["started_at"] == shown["last_updated"] == "2026-11-15T23:00:02Z"


def test_state_has_exactly_its_members_in_order() -> None:
    criteria = [{"name": name, "met": met} for name, met in STATE["criteriaStatus"].items()]
    steps = [{"id": f"S{n}", "title": f"step{n}", "step": True} for n in (1, 2, 3)]
    steps[0]["status"] = "complete"
    carried = {"iteration": 2, "stuck": 0, "last_unmet": "tests pass"}
    story = Story("goal", goal=STATE["spec"], criteria=criteria, tasks=steps, carried=carried)
    assert json.dumps(state(story.loop)) == json.dumps(STATE)


def test_state_without_steps_lists_tasks_and_counts_skipped_ones_as_done() -> None:
    tasks = [{"id": "T1", "title": "one"}, {"id": "T2"}, {"id": "T3", "title": "three"}]
    story = Story("goal", tasks=tasks)
    story.task("T1", "skipped")
    story.task("T2", "running")
    shown = state(story.loop)
    assert shown["steps"] == ["one", "T2", "three"]
    assert (shown["completedSteps"], shown["remainingSteps"]) == (["one"], ["T2", "three"])
    assert shown["circuitBreaker"] == {"stuckCount": 0, "lastUnmet": ""}
    story("task", task="T4", status="pending", title="four")
    assert state(story.loop)["remainingSteps"] == ["T2", "three", "four"]


@pytest.mark.parametrize("ending", ["completed", "cancelled"])
def test_state_and_workflow_state_show_how_the_loop_ended(ending: str) -> None:
    story = Story("goal", views=["workflow-state"])
    story("exit")
    story("pause", code="manual")
    assert state(story.loop)["status"] == "in_progress"
    story("resume")
    story("complete" if ending == "completed" else "cancel")
    assert (state(story.loop)["status"], state(story.loop)["exit_signal"]) == (ending, True)
    stage = "complete" if ending == "completed" else "executing"
    assert workflow_state(story.loop)["stage"] == stage
    assert status_view(story.loop, "")["stage"] == stage


def test_status_has_the_stage_of_the_view_and_none_without_stages() -> None:
    plain, staged = Story("goal"), Story("goal")
    for story in (plain, staged):
        if story is staged:
            story("stage", stage="intent")
            story("review", action="begun")
            story("review", action="passed")
        assert status_view(story.loop, "")["stage"] == story.loop.stage
        story("exit")
        story("complete")
    assert status_view(plain.loop, "")["stage"] is None
    assert (
        status_view(staged.loop, "")["stage"] == workflow_state(staged.loop)["stage"] == "complete"
    )


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(texts, st.lists(texts, unique=True, max_size=3), st.sampled_from([8, 7.5, 0.1, 1e22]))
def test_view_files_equal_output_of_json_module(text: str, names: list[str], score: float) -> None:
    criteria = [{"name": name} for name in names]
    story = Story("goal", goal=text, criteria=criteria, views=list(LOOP_FILES))
    story("note", kind="recall", text=text)
    if score < 1 << 53:
        story("review", action="light", wave=1, score=score)
    shown = {file.name: file.data.decode() for file in view_files(story.loops)}
    for name, value in (("workflow-state.json", workflow_state), ("state.json", state)):
        wanted = json.dumps(value(story.loop), indent=2, ensure_ascii=False) + "\n"
        assert shown[name] == wanted
        assert json.loads(shown[name]) == value(story.loop)

"""Every field of the loop-state schemas in use today can be derived from a journal."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop, open_gaps, unmet
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.engine.status import status_view
from tests.support.events import start_draft

TS = "2026-11-15T23:00:{:02d}.000Z"


def fold(*drafts: dict[str, Any]) -> Loop:
    loops = Loops()
    header = {"loop": None, "type": "journal", "by": "cli", "data": {"id": "j-1"}}
    for seq, fields in enumerate((header, *drafts), 1):
        loops.apply({"v": 1, "seq": seq, "ts": TS.format(seq), **fields})
    return loops.by_id["lp-1"]


def event(type_: str, /, by: str = "agent", **data: Any) -> dict[str, Any]:
    return {"loop": "lp-1", "type": type_, "by": by, "data": data}


@pytest.fixture
def execute() -> Loop:
    tasks = [{"id": "T01", "wave": 1}, {"id": "T02", "wave": 1}, {"id": "T03", "wave": 2}]
    return fold(
        start_draft(tasks=tasks, phase=1, limits={"max_retries": 1}),
        event("task", task="T01", status="running", ref="abc123"),
        event("task", task="T02", status="running", ref="def456"),
        event("iteration", by="hook", activity=True),
        event("gap", action="found", gap="G1", kind="stub", description="empty"),
        event("failure", task="T02", error="Type error in auth.ts", **{"class": "logic"}),
        event("failure", task="T02", error="Type error in auth.ts", **{"class": "logic"}),
    )


@pytest.fixture
def goal() -> Loop:
    return fold(
        start_draft(
            kind="goal",
            goal="Add validation to auth",
            criteria=[{"name": "tests pass", "check": "make test"}, {"name": "lint clean"}],
            tasks=[{"id": f"S{n}", "title": f"step{n}", "step": True} for n in (1, 2, 3)],
            must_not=["change the API"],
            limits={"budget_usd": 25, "max_iterations": 10},
        ),
        event("score", spec_score=7, fit_score=35, shape="tool-review"),
        event("note", kind="recall", text="auth edge cases"),
        event("stage", stage="intent"),
        event("task", task="S1", status="running"),
        event("task", task="S1", status="complete"),
        event("criterion", criterion="lint clean", met=True),
        event("iteration", by="hook", activity=True),
        event("review", action="light", wave=1, score=8, issues=2, blockers=0),
        event("review", action="begun"),
        event("review", action="failed", blockers=1),
        event("spend", usd=4.5),
        event("failure", error="lint failed", **{"class": "logic"}),
    )


def test_the_loop_section_of_state_md_can_be_derived(execute: Loop) -> None:
    view = status_view(execute, "8:0")
    assert {
        "active": view["status"] not in ("paused", "completed", "cancelled"),
        "type": view["kind"],
        "phase": view["phase"],
        "iteration": view["iteration"],
        "max_iterations": view["max_iterations"],
        "task_retries": view["task_retries"],
        "gaps_remaining": view["gaps_remaining"],
        "started": view["started"],
        "last_iteration": view["last_iteration"],
        "paused": view["status"] == "paused",
        "pause_reason": view["pause_reason"],
        "last_error": view["last_error"],
    } == {
        "active": False,
        "type": "execute",
        "phase": 1,
        "iteration": 1,
        "max_iterations": 20,
        "task_retries": {"T01": 0, "T02": 1, "T03": 0},
        "gaps_remaining": 1,
        "started": TS.format(2),
        "last_iteration": TS.format(5),
        "paused": True,
        "pause_reason": "Task T02 failed after 1 retry",
        "last_error": "Type error in auth.ts",
    }
    assert [line.split(" ", 2)[2] for line in view["history"]] == [
        "idle -> running: start",
        "running -> fixing: gap G1",
        "fixing -> retrying: failure T02",
        "retrying -> paused: failure T02",
    ]


def test_the_background_tasks_and_the_wave_can_be_derived(execute: Loop) -> None:
    view = status_view(execute, "8:0")
    running = [{"task_id": "abc123", "task_num": "T01", "status": "running"}]
    assert (view["background_tasks"], view["wave"]) == (running, 1)
    assert (view["last_error"], view["started"]) == ("Type error in auth.ts", TS.format(2))


def test_the_workflow_state_can_be_derived(goal: Loop) -> None:
    assert {
        "stage": goal.stage,
        "task": goal.goal,
        "spec_score": goal.spec_score,
        "fit_score": goal.fit_score,
        "shape_chosen": goal.shape,
        "started_at": goal.started,
        "last_updated": goal.last_event,
        "recall_surfaced": goal.recalled,
        "reviews": {name: review.facts() for name, review in goal.reviews.items()},
    } == {
        "stage": "intent",
        "task": "Add validation to auth",
        "spec_score": 7,
        "fit_score": 35,
        "shape_chosen": "tool-review",
        "started_at": TS.format(2),
        "last_updated": TS.format(14),
        "recall_surfaced": ["auth edge cases"],
        "reviews": {
            "wave_1": {"score": 8, "issues": 2, "blockers": 0},
            "thorough": {"passed": False, "blockers_remaining": 1},
        },
    }


def test_the_state_with_criteria_and_circuit_breaker_can_be_derived(goal: Loop) -> None:
    view = status_view(goal, "8:0")
    assert {
        "spec": view["goal"],
        "criteria": [criterion["name"] for criterion in view["criteria"]],
        "criteriaStatus": {item["name"]: item["met"] for item in view["criteria"]},
        "exit_signal": view["exit_signal"],
        "steps": [step["step"] for step in view["steps"]],
        "completedSteps": [it["step"] for it in view["steps"] if it["status"] == "complete"],
        "remainingSteps": [it["step"] for it in view["steps"] if it["status"] != "complete"],
        "iteration": view["iteration"],
        "circuitBreaker": {"stuckCount": view["stuck"], "lastUnmet": view["last_unmet"]},
    } == {
        "spec": "Add validation to auth",
        "criteria": ["tests pass", "lint clean"],
        "criteriaStatus": {"tests pass": False, "lint clean": True},
        "exit_signal": False,
        "steps": ["step1", "step2", "step3"],
        "completedSteps": ["step1"],
        "remainingSteps": ["step2", "step3"],
        "iteration": 1,
        "circuitBreaker": {"stuckCount": 0, "lastUnmet": "tests pass"},
    }
    assert unmet(goal) == ["tests pass"]


def test_the_task_metadata_can_be_derived(goal: Loop) -> None:
    view = status_view(goal, "8:0")
    assert {
        "cost": view["spent_usd"],
        "budget": view["budget_usd"],
        "maxIterations": view["max_iterations"],
        "shape": view["shape"],
        "startedAt": view["started"],
        "lastCheckpoint": view["last_iteration"],
        "errors": [error.text for error in goal.errors],
        "mustNot": list(goal.must_not),
    } == {
        "cost": 4.5,
        "budget": 25,
        "maxIterations": 10,
        "shape": "tool-review",
        "startedAt": TS.format(2),
        "lastCheckpoint": TS.format(9),
        "errors": ["lint failed"],
        "mustNot": ["change the API"],
    }
    assert (current_wave(goal), open_gaps(goal)) == (None, [])

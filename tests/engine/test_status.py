"""`status --json` has every member of the loop states that other tools write."""

from __future__ import annotations

from gsd_fsm.engine.status import status_view
from tests.support.story import Story

TS = "2026-11-15T23:00:{:02d}.000Z"


def test_status_view_of_execute_loop_has_state_md_members_and_background_tasks() -> None:
    tasks = [{"id": "T01", "wave": 1}, {"id": "T02", "wave": 1}, {"id": "T03", "wave": 2}]
    story = Story("execute", tasks=tasks, phase=1, limits={"max_retries": 1})
    story.task("T01", "running", ref="abc123")
    story.task("T02", "running", ref="def456")
    story("iteration", activity=True, _by="hook")
    story.gap("G1", kind="stub", description="empty")
    for _ in range(2):
        story.fail("T02", error="Type error in auth.ts")
    view = status_view(story.loop, "8:0")
    assert view == view | {
        "kind": "execute", "status": "paused", "phase": 1, "wave": 1, "iteration": 1,
        "max_iterations": 20, "task_retries": {"T01": 0, "T02": 1, "T03": 0},
        "background_tasks": [{"task_id": "abc123", "task_num": "T01", "status": "running"}],
        "gaps_remaining": 1, "started": TS.format(2), "last_iteration": TS.format(5),
        "pause_reason": "Task T02 failed after 1 retry", "last_error": "Type error in auth.ts",
    }  # fmt: skip
    assert [line.split(" ", 2)[2] for line in view["history"]] == [
        "idle -> running: start", "running -> fixing: gap G1", "fixing -> retrying: failure T02",
        "retrying -> paused: failure T02",
    ]  # fmt: skip


def test_status_view_of_goal_loop_has_criteria_steps_circuit_breaker_and_costs() -> None:
    story = Story(
        "goal",
        goal="Add validation to auth",
        criteria=[{"name": "tests pass", "check": "make test"}, {"name": "lint clean"}],
        tasks=[{"id": f"S{n}", "title": f"step{n}", "step": True} for n in (1, 2)],
        limits={"budget_usd": 25, "max_iterations": 10},
    )
    story("score", spec_score=7, fit_score=35, shape="tool-review")
    story("stage", stage="intent")
    story.task("S1", "running")
    story.task("S1", "complete")
    story("criterion", criterion="lint clean", met=True)
    story("iteration", activity=True, _by="hook")
    story("review", action="light", wave=1, score=8, issues=2, blockers=0)
    story("review", action="begun")
    story("review", action="failed", blockers=1)
    story("spend", usd=4.5)
    story.fail(error="lint failed")
    view = status_view(story.loop, "8:0")
    assert view == view | {
        "goal": "Add validation to auth", "stage": "intent", "wave": None, "iteration": 1,
        "max_iterations": 10, "spec_score": 7, "fit_score": 35, "shape": "tool-review",
        "steps": [{"step": "step1", "id": "S1", "status": "complete"},
                  {"step": "step2", "id": "S2", "status": "pending"}],
        "reviews": {"wave_1": {"score": 8, "issues": 2, "blockers": 0},
                    "thorough": {"passed": False, "blockers_remaining": 1}},
        "gaps_remaining": 0, "exit_signal": False, "stuck": 0, "last_unmet": "tests pass",
        "started": TS.format(2), "last_iteration": TS.format(8), "last_event": TS.format(13),
        "spent_usd": 4.5, "budget_usd": 25, "last_error": "lint failed",
    }  # fmt: skip
    met = {criterion["name"]: criterion["met"] for criterion in view["criteria"]}
    assert met == {"tests pass": False, "lint clean": True}

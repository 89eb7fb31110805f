"""Gaps: found, closed and reopened."""

from __future__ import annotations

from tests.support.story import Story


def test_gaps_open_close_and_reopen_under_one_id() -> None:
    story = Story("verify")
    story.gap("G1", kind="missing", file="a.py", description="no login", evidence="404")
    story.gap("G2")
    assert story.gap("G1", "closed").status == "fixing"
    assert story.gap("G2", "closed").status == "running"
    assert "reopen G1" in story.refused("gap", gap="G1", action="found").hint
    story.refused("gap", gap="G1", action="closed")
    assert story.gap("G1", "reopened", evidence="500").status == "fixing"
    story.refused("gap", gap="G1", action="reopened")
    gap = story.loop.gaps["G1"]
    assert (gap.reopened, gap.evidence, gap.description) == (1, "500", "no login")
    for action in ("closed", "reopened"):
        assert "G9" in story.refused("gap", gap="G9", action=action).message


def test_gap_without_auto_loop_pauses_with_report() -> None:
    story = Story("verify", auto_loop=False)
    assert story.gap("G1").status == "paused"
    assert (story.loop.pause_code, "G1" in story.loop.pause_reason) == ("manual", True)
    story("resume")
    assert story.gap("G1", "closed").status == "running"
    assert story.gap("G1", "reopened").status == "paused"


def test_reopened_gap_without_plan_leaves_task_of_same_name() -> None:
    story = Story("execute", tasks=[{"id": "T1"}])
    story("task", task="T1", status="running")
    story("task", task="T1", status="complete")
    for action in ("found", "closed", "reopened", "closed"):
        story("gap", action=action, gap="T1", kind="stub", description="d")
    story("complete")
    assert story.loop.status == "completed"

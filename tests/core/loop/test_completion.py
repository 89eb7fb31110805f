"""Conditions of completion for each kind of loop."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.completion import has_tree, missing, stale
from tests.support.story import Story


def proof(command: str = "make", exit_code: int = 0, **more: Any) -> dict[str, Any]:
    return {"command": command, "exit_code": exit_code, **more}


def not_done(story: Story, *words: str, **data: Any) -> None:
    message = story.refused("complete", **data).message
    for word in words:
        assert word in message


def test_execute_loop_completes_when_all_tasks_are_complete_or_skipped() -> None:
    not_done(Story("execute"), "no task")
    story = Story("execute", tasks=[{"id": "T1"}, {"id": "T2"}])
    not_done(story, "task T1 is pending", "task T2 is pending")
    for status in ("running", "checkpoint"):
        story.task("T1", status)
        not_done(story, f"task T1 is {status}")
    story.task("T1", "complete")
    story.fail("T2")
    not_done(story, "task T2 is failed")
    story.task("T2", "skipped")
    assert missing(story.loop) == []
    assert story("complete").status == "completed"


def test_verify_loop_needs_pass_after_last_closed_gap() -> None:
    story = Story("verify")
    not_done(story, "verification")
    story.gap("G1")
    story("verified", passed=True)
    not_done(story, "gap G1 is open")
    story.gap("G1", "closed")
    not_done(story, "verification")
    story("verified", passed=False)
    not_done(story, "verification")
    story("verified", passed=True)
    assert story.loop.round == 3
    assert story("complete").status == "completed"


@pytest.mark.parametrize("later", ["found", "reopened", "failed round"])
def test_verify_loop_pass_is_void_after_next_gap(later: str) -> None:
    story = Story("verify")
    story.gap("G1")
    story.gap("G1", "closed")
    story("verified", passed=True)
    if later == "failed round":
        story("verified", passed=False)
        not_done(story, "verification")
    else:
        story.gap("G1" if later == "reopened" else "G2", later)
        not_done(story, "is open", "verification")


def test_goal_loop_needs_all_criteria_and_exit_signal() -> None:
    story = Story("goal", criteria=[{"name": "A"}, {"name": "B"}])
    not_done(story, "criterion not met: A", "criterion not met: B", "exit signal")
    assert "A, B" in story.refused("exit").message
    story("criterion", criterion="A", met=True)
    assert "unmet: B" in story.refused("exit").message
    story("criterion", criterion="B", met=True)
    not_done(story, "exit signal")
    story("exit", reason="done")
    assert story("complete").status == "completed"


def test_unmet_criterion_withdraws_exit_signal() -> None:
    story = Story("goal", criteria=[{"name": "A"}])
    story("criterion", criterion="A", met=True)
    story("exit")
    story("criterion", criterion="A", met=False)
    story("criterion", criterion="A", met=True)
    not_done(story, "exit signal")


def test_goal_loop_without_criteria_needs_exit_signal_only() -> None:
    story = Story("goal")
    not_done(story, "exit signal")
    story("exit")
    assert story("complete").status == "completed"


THOROUGH: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "option": [],
    "scored": [("score", {"spec_score": 80})],
    "staged": [("stage", {"stage": "intent"})],
    "begun": [("review", {"action": "begun"}), ("review", {"action": "failed", "blockers": 1})],
    "passed before": [("review", {"action": a}) for a in ("begun", "passed", "begun", "failed")],
}


@pytest.mark.parametrize("why", THOROUGH)
def test_scored_or_staged_goal_needs_thorough_review(why: str) -> None:
    story = Story("goal", **({"review": True} if why == "option" else {}))
    for kind, data in THOROUGH[why]:
        story(kind, **data)
    story("exit")
    not_done(story, "thorough review")
    story("review", action="light", wave=1)
    not_done(story, "thorough review")
    story("review", action="begun")
    not_done(story, "thorough review")
    story("review", action="passed")
    assert story("complete").status == "completed"


@pytest.mark.parametrize("evidence", [None, proof(exit_code=1), proof("true"), proof("make ")])
def test_criterion_with_check_is_met_by_its_check_only(evidence: Any) -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}])
    more = {} if evidence is None else {"evidence": evidence}
    refusal = story.refused("criterion", criterion="A", met=True, **more)
    assert refusal.hint == "Run: gsd-fsm check"
    story("criterion", criterion="A", met=True, evidence=proof())
    assert story.loop.criteria["A"].met is True


@pytest.mark.parametrize("kind", ["execute", "verify", "goal"])
def test_evidence_of_other_content_is_stale_and_unmet(kind: str) -> None:
    story = Story(kind, criteria=[{"name": "A", "check": "make"}])
    story("criterion", criterion="A", met=True, evidence=proof(tree="old"))
    story("verified", passed=True)
    story("exit")
    story.task("T1", "skipped")
    assert has_tree(story.loop)
    for tree in ({"tree": "new"}, {"tree": None}, {}):
        not_done(story, "stale: A", **tree)
    assert stale(story.loop, "old") == []
    assert story("complete", tree="old").status == "completed"


def test_evidence_without_tree_is_never_stale() -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}])
    story("criterion", criterion="A", met=True, evidence=proof(tree=None))
    story("exit")
    assert not has_tree(story.loop)
    assert story("complete", tree="any").status == "completed"


def test_all_criteria_need_evidence_of_the_same_content() -> None:
    criteria = [{"name": "A", "check": "a"}, {"name": "B", "check": "b"}]
    story = Story("goal", criteria=criteria)
    story("criterion", criterion="A", met=True, evidence=proof("a", tree="1"))
    story("criterion", criterion="B", met=True, evidence=proof("b", tree="2"))
    story("exit")
    not_done(story, "stale: A", tree="2")
    not_done(story, "stale: B", tree="1")
    story("criterion", criterion="A", met=True, evidence=proof("a", tree="2"))
    assert story("complete", tree="2").status == "completed"


@pytest.mark.parametrize("kind", ["execute", "verify"])
def test_criteria_are_required_in_every_kind_of_loop(kind: str) -> None:
    story = Story(kind, criteria=[{"name": "A"}])
    story.task("T1", "skipped")
    story("verified", passed=True)
    not_done(story, "criterion not met: A")

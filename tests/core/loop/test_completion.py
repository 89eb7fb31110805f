"""Conditions of completion for each kind of loop."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.completion import has_tree, missing, proof_counts, stale
from tests.support.story import Story


def proof(command: str = "make", exit_code: int = 0, **more: Any) -> dict[str, Any]:
    return {"command": command, "exit_code": exit_code, **more}


def not_done(story: Story, *words: str, **data: Any) -> None:
    message = story.refused("complete", **data).message
    assert [word for word in words if word not in message] == []


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


def test_verify_loop_needs_pass_after_the_last_change_of_a_gap() -> None:
    story = Story("verify")
    not_done(story, "verification")
    for gap, action in (("G1", "found"), ("G1", "reopened"), ("G2", "found")):
        story.gap(gap, action)
        not_done(story, f"gap {gap} is open", "verification")
        story("verified", passed=True)
        not_done(story, f"gap {gap} is open")
        story.gap(gap, "closed")
        not_done(story, "verification")
        story("verified", passed=True)
        assert missing(story.loop) == []
    story("verified", passed=False)
    not_done(story, "verification")
    story("verified", passed=True)
    assert story.loop.round == 8
    assert story("complete").status == "completed"


def test_goal_loop_needs_all_criteria_and_exit_signal() -> None:
    story = Story("goal", criteria=[{"name": "A"}, {"name": "B"}])
    not_done(story, "criterion not met: A", "criterion not met: B", "exit signal")
    assert "A, B" in story.refused("exit").message
    story("criterion", criterion="A", met=True)
    assert "unmet: B" in story.refused("exit").message
    story("criterion", criterion="B", met=True)
    not_done(story, "exit signal")
    story("exit", reason="done")
    for met in (False, True):  # an unmet criterion withdraws the exit signal
        story("criterion", criterion="A", met=met)
    for waiting in (story, Story("goal")):
        not_done(waiting, "exit signal")
        waiting("exit")
        assert waiting("complete").status == "completed"


THOROUGH: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "option": [],
    "scored": [("score", {"spec_score": 80})],
    "staged": [("stage", {"stage": "intent"})],
    "begun": [("review", {"action": "begun"}), ("review", {"action": "failed", "blockers": 1})],
    "passed before": [("review", {"action": a}) for a in ("begun", "passed", "begun", "failed")],
}


@pytest.mark.parametrize("why", THOROUGH)
def test_scored_or_staged_goal_needs_thorough_review(why: str) -> None:
    story = Story("goal", **({"review": True} if why == "option" else {})).then(*THOROUGH[why])
    story("exit")
    not_done(story, "thorough review")
    for data in ({"action": "light", "wave": 1}, {"action": "begun"}):
        story("review", **data)
        not_done(story, "thorough review")
    story("review", action="passed")
    assert story("complete").status == "completed"


@pytest.mark.parametrize("rules", [{"rules": {}}, {}], ids=["rules", "no rules"])
def test_staged_goal_needs_its_tasks_complete_or_skipped(rules: dict[str, Any]) -> None:
    story = Story("goal", tasks=[{"id": "A"}, {"id": "B"}, {"id": "C"}], **rules)
    story("exit")
    assert missing(story.loop) == []  # not staged
    story("stage", stage="intent")
    story.task("F1", "pending", condition="review")
    assert "task F1 is pending" not in missing(story.loop)  # it restates a condition
    story.then(("review", {"action": "begun"}), ("review", {"action": "passed"}))
    for name, status in (("A", "skipped"), ("B", "running")):
        story.task(name, status)
    if rules:
        not_done(story, "task B is running", "task C is pending")
        story.task("B", "skipped")
        story.task("C", "skipped")
    assert story("complete").status == "completed"


def test_proof_counts_tell_checked_criteria_from_everything_claimed() -> None:
    criteria = [{"name": "A", "check": "make"}, {"name": "B"}, {"name": "C", "check": "make"}]
    story = Story("goal", criteria=criteria, tasks=[{"id": "T1"}, {"id": "T2"}, {"id": "T3"}])
    assert proof_counts(story.loop) == ({}, {})
    story("criterion", criterion="A", met=True, evidence=proof())
    story("criterion", criterion="B", met=True)
    story("criterion", criterion="C", met=False, evidence=proof(exit_code=1))
    story.then(("review", {"action": "begun"}), ("review", {"action": "passed"}))
    story.task("T1", "running")
    story.task("T1", "complete")
    story.task("T2", "skipped")
    claimed = {"criterion": 1, "task": 1, "review": 1}
    assert proof_counts(story.loop) == ({"criterion": 1}, claimed)
    verified = Story("verify").then(("verified", {"passed": True}))
    assert proof_counts(verified.loop) == ({}, {"verification": 1})
    assert proof_counts(Story("goal")("exit")) == ({}, {"exit signal": 1})


@pytest.mark.parametrize("evidence", [None, proof(exit_code=1), proof("true"), proof("make ")])
def test_criterion_with_check_is_met_by_its_check_only(evidence: Any) -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}])
    more = {} if evidence is None else {"evidence": evidence}
    refusal = story.refused("criterion", criterion="A", met=True, **more)
    assert refusal.hint == "Run: gsd-fsm check"
    assert story("criterion", criterion="A", met=True, evidence=proof()).criteria["A"].met is True


@pytest.mark.parametrize("kind", ["execute", "verify", "goal"])
def test_evidence_of_other_content_is_stale_and_unmet(kind: str) -> None:
    story = Story(kind, criteria=[{"name": "A", "check": "make"}])
    story("verified", passed=True)
    story.task("T1", "skipped")
    not_done(story, "criterion not met: A")
    story("criterion", criterion="A", met=True, evidence=proof(tree="old"))
    story("exit")
    assert has_tree(story.loop)
    for tree in ({"tree": "new"}, {"tree": None}, {}):
        not_done(story, "stale: A", **tree)
    assert stale(story.loop, "old") == []
    assert story("complete", tree="old").status == "completed"


def test_all_criteria_need_evidence_of_the_same_content_if_it_names_one() -> None:
    story = Story("goal", criteria=[{"name": name, "check": "make"} for name in "ABC"])
    for name, tree in (("A", "1"), ("B", "2"), ("C", None)):
        story("criterion", criterion=name, met=True, evidence=proof(tree=tree))
    story("exit")
    not_done(story, "stale: A", tree="2")
    not_done(story, "stale: B", tree="1")
    story("criterion", criterion="A", met=True, evidence=proof(tree="2"))
    assert story("complete", tree="2").status == "completed"
    story = Story("goal", criteria=[{"name": "A", "check": "make"}])
    story("criterion", criterion="A", met=True, evidence=proof(tree=None))
    story("exit")
    assert not has_tree(story.loop)
    assert story("complete", tree="any").status == "completed"

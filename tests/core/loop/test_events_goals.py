"""Criteria, stages, reviews and scores of goal loops."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.journal.snapshot import pack, unpack
from gsd_fsm.core.text.questions import pending_question
from tests.support.story import Story


def test_added_criterion_withdraws_exit_signal() -> None:
    story = Story("goal", criteria=[{"name": "a", "met": True}])
    story("exit")
    story("plan", criteria=[{"name": "a"}, {"name": "b"}], must_not=["x"], file="SHAPE.md")
    assert story.loop.exit_signal is False
    assert {name: c.met for name, c in story.loop.criteria.items()} == {"a": True, "b": False}
    assert list(story.loop.must_not) == ["x"]


def test_added_check_joins_criterion_without_check() -> None:
    story = Story("goal", criteria=[{"name": "a"}, {"name": "b", "check": "make b"}])
    for name, command in (("a", "look"), ("b", "make b")):
        evidence = {"command": command, "exit_code": 0}
        story("criterion", criterion=name, met=True, evidence=evidence)
    story("exit")
    story("plan", criteria=[{"name": "b", "check": "make other"}, {"name": "a"}], joins=True)
    story("plan", criteria=[{"name": "a", "check": "make a"}])  # as earlier versions wrote it
    assert story.loop.exit_signal is True
    story("plan", criteria=[{"name": "a", "check": "make a"}], joins=True)
    assert story.loop.exit_signal is False
    found = [(c.check, c.met, bool(c.evidence)) for c in story.loop.criteria.values()]
    assert found == [("make a", False, False), ("make b", True, True)]


def test_colleague_without_steps_asks_after_each_iteration() -> None:
    story = Story("goal", mode="yolo")
    story("score", spec_score=5, fit_score=25, shape="colleague")
    assert pending_question(story.loop) is None
    story("iteration")
    assert (pending_question(story.loop) or ("",))[0] == "turn:1"
    story("stage", stage="intent")
    assert pending_question(story.loop) is None


def test_advice_is_counted_in_goal_loops_only() -> None:
    for kind, counted in (("goal", 1), ("verify", 0)):
        story = Story(kind)
        story("iteration")
        story.fail(error="boom")
        story("iteration")
        assert (story.loop.failed_verifications, story.loop.advice_given) == (1, counted)


def test_failed_check_is_evidence_and_is_counted_until_the_check_passes() -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}, {"name": "B"}])
    proof = {"command": "make", "exit_code": 2, "tail": "boom"}
    criterion = story("criterion", criterion="A", met=False, evidence=proof).criteria["A"]
    assert (criterion.met, criterion.evidence["tail"]) == (False, "boom")
    assert criterion.evidence["seq"] == story.events[-1]["seq"]
    story.task("T1", "running")
    story.task("T1", "complete")
    story("criterion", criterion="B", met=True)
    assert story.loop.failed_verifications == 1
    story("criterion", criterion="A", met=True, evidence={**proof, "exit_code": 0})
    assert story.loop.failed_verifications == 0
    assert "A, B" in story.refused("criterion", criterion="C", met=True).hint


def test_baseline_meets_fails_and_revokes_nothing_and_yields_to_other_evidence() -> None:
    story = Story("goal", criteria=[{"name": name, "check": "make"} for name in "ABC"])
    proof = {"command": "make", "exit_code": 2, "tree": "t1"}
    passed = {**proof, "exit_code": 0}
    story("criterion", criterion="C", met=True, evidence=passed)
    for name, evidence in (("A", proof), ("B", passed), ("C", proof)):
        story("criterion", criterion=name, met=False, baseline=True, evidence=evidence)
    loop = story.loop
    assert loop.baseline == {"A": False, "B": True, "C": False}
    assert [it.met for it in loop.criteria.values()] == [False, False, True]
    shown = [(it.evidence or {}).get("baseline", False) for it in loop.criteria.values()]
    assert shown == [True, True, False]
    assert (loop.failed_verifications, loop.has_progressed()) == (0, True)
    assert unpack(pack(loop)).refuted == loop.refuted == {}  # also from a snapshot
    story("criterion", criterion="B", met=False, evidence=proof)
    assert story.loop.failed_verifications == 1
    story("criterion", criterion="B", met=True, evidence=passed)
    assert story.loop.failed_verifications == 0  # the baseline of A is not a failed attempt


def test_check_that_passed_on_changing_content_is_stale_and_not_a_failed_verification() -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}])
    proof = {"command": "make", "exit_code": 0, "tree": "t2", "before": "t1", "changed": ["a"]}
    loop = story("criterion", criterion="A", met=False, stale=True, evidence=proof)
    assert (loop.criteria["A"].stale, loop.failed_verifications) == (True, 0)


def test_criterion_is_flaky_only_on_content_on_which_its_check_passed_and_failed() -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}])

    def proof(tree: str | None, exit_code: int = 0, **more: int) -> dict[str, Any]:
        return {"command": "make", "exit_code": exit_code, "tree": tree, **more}

    for number in range(25):
        story("criterion", criterion="A", met=True, evidence=proof(f"t{number}"))
    story("criterion", criterion="A", met=False, evidence=proof(None, 1))
    criterion = story.loop.criteria["A"]
    assert list(criterion.outcomes) == [f"t{number}" for number in range(5, 25)]
    cases = (proof("t24", 1), proof("t24"), proof("t4", 1), proof(None), proof(None, reruns=1))
    assert [criterion.is_flaky(case) for case in cases] == [True, False, False, False, True]
    assert not criterion.is_flaky(proof("t25", 1, reruns=2))


def test_stages_follow_each_other_without_skipping_and_may_go_back() -> None:
    stages = ("intent", "shape", "decompose", "executing", "review", "complete")
    story = Story("goal")
    for number, stage in enumerate(stages):
        for later in stages[number + 1 :]:
            assert stage in story.refused("stage", stage=later).hint
        assert story("stage", stage=stage).stage == stage
    assert story("stage", stage="shape").stage == "shape"
    story.refused("stage", stage="executing")
    story("score", spec_score=4, shape="tool")
    with pytest.raises(Refused, match="stays in intent"):  # an unclear goal may only go back
        story("stage", stage="decompose")
    assert story("stage", stage="intent").stage == "intent"


def test_reviews_are_kept_by_wave_and_thorough_verdict() -> None:
    story = Story("goal")
    story("review", action="light", wave=2, score=8, issues=1, blockers=0)
    assert story.loop.reviews["wave_2"].facts() == {"score": 8, "issues": 1, "blockers": 0}
    story("review", action="begun")
    assert story.loop.reviews["thorough"].passed is False
    story.refused("review", action="passed", blockers=1)
    assert story("review", action="failed", blockers=2).status == "fixing"
    assert story.loop.reviews["thorough"].facts() == {"passed": False, "blockers_remaining": 2}
    story("review", action="begun")
    story("review", action="passed", score=9)
    thorough = {"passed": True, "blockers_remaining": 0, "score": 9}
    assert story.loop.reviews["thorough"].facts() == thorough

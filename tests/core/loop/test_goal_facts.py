"""Facts of goal loops, as the fold keeps them."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.text.questions import pending_question
from tests.support.story import Story

COLLEAGUE = {"spec_score": 5, "fit_score": 25, "shape": "colleague"}


def question(story: Story) -> str | None:
    asked = pending_question(story.loop)
    return asked[0] if asked else None


def test_added_criterion_withdraws_exit_signal() -> None:
    story = Story("goal", criteria=[{"name": "a", "met": True}])
    story("exit")
    story("plan", criteria=[{"name": "a"}, {"name": "b"}], must_not=["x"], file="SHAPE.md")
    assert story.loop.exit_signal is False
    assert {name: c.met for name, c in story.loop.criteria.items()} == {"a": True, "b": False}
    assert list(story.loop.must_not) == ["x"]


def test_added_check_joins_criterion_without_check() -> None:
    story = Story("goal", criteria=[{"name": "a"}, {"name": "b", "check": "make b"}])
    proof = {"command": "make b", "exit_code": 0}
    story("criterion", criterion="a", met=True, evidence={"command": "look", "exit_code": 0})
    story("criterion", criterion="b", met=True, evidence=proof)
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
    story("score", **COLLEAGUE)
    assert question(story) is None
    story("iteration")
    assert question(story) == "turn:1"
    story("stage", stage="intent")
    assert question(story) is None


def test_unclear_goal_may_go_back_but_not_forward() -> None:
    story = Story("goal")
    for stage in ("intent", "shape"):
        story("stage", stage=stage)
    story("score", spec_score=4, shape="tool")
    with pytest.raises(Refused, match="stays in intent"):
        story("stage", stage="decompose")
    story("stage", stage="intent")
    assert story.loop.stage == "intent"


@pytest.mark.parametrize(
    "data",
    [
        {"criteria": [{"name": "a", "check": "true", "met": True}]},
        {"criteria": [{"name": "a"}], "carried": {"exit_signal": True}},
    ],
)
def test_nothing_is_carried_that_could_not_have_been(data: dict[str, object]) -> None:
    with pytest.raises(Refused):
        Story("goal", **data)


def test_imported_failed_tasks_are_failed() -> None:
    tasks = [{"id": "A", "status": "failed", "retries": 2}, {"id": "B", "status": "complete"}]
    story = Story("goal", tasks=tasks, carried={"iteration": 4, "stuck": 2, "last_unmet": "x"})
    assert (list(story.loop.failed), story.loop.tasks["A"].retries) == (["A"], 2)
    assert (story.loop.iteration, story.loop.stuck, story.loop.last_unmet) == (4, 2, "x")
    story.task("A", "running")
    assert not story.loop.failed


def test_advice_is_counted_in_goal_loops_only() -> None:
    for kind, counted in (("goal", 1), ("verify", 0)):
        story = Story(kind)
        story("iteration")
        story.fail(error="boom")
        story("iteration")
        assert (story.loop.failed_verifications, story.loop.advice_given) == (1, counted)


def test_failed_verifications_are_counted_until_check_passes() -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}, {"name": "B"}])
    proof = {"command": "make", "exit_code": 1}
    story("criterion", criterion="A", met=False, evidence=proof)
    story.task("T1", "running")
    story.task("T1", "complete")
    story("criterion", criterion="B", met=True)
    assert story.loop.failed_verifications == 1
    story("criterion", criterion="A", met=True, evidence={**proof, "exit_code": 0})
    assert story.loop.failed_verifications == 0


def test_only_latest_transcripts_are_remembered() -> None:
    story = Story("goal", _session="s-1")
    story("spend", tokens=1, source="s-1", counted=99, messages=["m"])
    for number in range(60):
        story("spend", tokens=1, source=f"agent-{number}", counted=10, messages=["m"])
    assert story.loop.spent_tokens == 61
    assert list(story.loop.offsets) == ["s-1", *[f"agent-{n}" for n in range(11, 60)]]


def test_meter_reset_counts_from_zero_and_first_total_adds_nothing() -> None:
    story = Story("goal")
    for total in (5, 6.5, 1, 1.25):
        story("spend", meter="s", total_usd=total)
    assert story.loop.spent_usd == 2.75


def test_explicit_waves_are_not_recomputed() -> None:
    story = Story("goal", tasks=[{"id": "A", "wave": 3}, {"id": "B", "wave": 1, "depends": ["A"]}])
    assert [task.wave for task in story.loop.tasks.values()] == [3, 1]
    story.task("C", "pending", depends=["A"], wave=7)
    assert [task.wave for task in story.loop.tasks.values()] == [3, 1, 7]


def test_started_task_ignores_new_dependencies() -> None:
    story = Story("goal", tasks=[{"id": "T1"}, {"id": "T2"}])
    story.task("T1", "running", depends=["T2"])
    assert not story.loop.tasks["T1"].depends
    story.task("T1", "complete")

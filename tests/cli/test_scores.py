"""Scores of a goal: what they come to, which shape they give it, and how that shape waits."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.engine.goals import DIMENSIONS, score_of
from tests.support.command_line import AGENT, Here

CLEAR = (2, 2, 2, 2, 2)
REVIEWED = (2, 2, 1, 1, 1)  # spec 7, fit 35
COLLEAGUE = (1, 1, 1, 1, 1)  # spec 5, fit 25


def score(here: Here, *points: int, familiarity: int = 0, **how: Any) -> Any:
    named = [x for name, n in zip(DIMENSIONS, points, strict=True) for x in (f"--{name}", str(n))]
    more = ("--familiarity", str(familiarity), "--json")
    return here.ok("score", *named, *more, **how).json


def yes(here: Here) -> None:
    here.ok("answer", "go on")


@pytest.mark.parametrize(
    ("points", "familiarity", "spec", "fit", "shape"),
    [
        (CLEAR, 0, 10, 65, "tool"),
        (CLEAR, 10, 10, 75, "tool"),
        ((2, 2, 2, 2, 0), 0, 8, 50, "tool"),
        (REVIEWED, 0, 7, 35, "tool-review"),
        (REVIEWED, 4, 7, 39, "tool-review"),
        (REVIEWED, 5, 7, 40, "tool"),
        ((2, 1, 1, 1, 0), 5, 5, 30, "tool-review"),
        (COLLEAGUE, 0, 5, 25, "colleague"),
        (COLLEAGUE, 4, 5, 29, "colleague"),
        ((2, 2, 0, 0, 0), 4, 4, 24, "blocked"),
        ((2, 2, 0, 0, 0), 10, 4, 30, "tool-review"),
        ((0, 0, 0, 0, 0), 0, 0, 0, "blocked"),
    ],
)
def test_the_fit_is_five_times_the_spec_and_what_is_clear_besides(
    points: tuple[int, ...], familiarity: int, spec: int, fit: int, shape: str
) -> None:
    named = dict(zip(DIMENSIONS, points, strict=True))
    assert score_of(named, familiarity) == (spec, fit, shape)


def test_a_score_is_recorded_with_its_points_and_shown(here: Here) -> None:
    here.start("goal", "g")
    assert score(here, 2, 1, 2, 1, 1, familiarity=3)["shape"] == "tool"
    status = here.status()
    assert [status[name] for name in ("spec_score", "fit_score", "shape")] == [7, 43, "tool"]
    assert here.last()["data"]["spec"] == {
        "outcome": 2, "scope": 1, "constraints": 2, "success": 1, "done": 1, "familiarity": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [("--outcome", "3"), ("--outcome", "-1"), ("--familiarity", "11"), ("--scope", "x")]
)
def test_points_that_are_out_of_range_or_missing_are_refused(
    here: Here, wrong: tuple[str, str]
) -> None:
    here.start("goal", "g")
    points = {f"--{name}": "1" for name in DIMENSIONS}
    given = {**points, wrong[0]: wrong[1]}
    here.refused(2, "score", *[text for pair in given.items() for text in pair])
    here.refused(2, "score", "--outcome", "2")


def test_only_goals_are_scored(here: Here) -> None:
    here.start("execute", "--task", "T1")
    answer = here.refused(4, "score", *[x for name in DIMENSIONS for x in (f"--{name}", "1")])
    assert "only goal loops are scored" in answer.err


def test_a_goal_with_a_spec_below_five_stays_in_intent_and_waits_to_be_clarified(
    here: Here,
) -> None:
    here.start("goal", "g", "--mode", "yolo")
    found = score(here, 2, 2, 0, 0, 0, familiarity=10)
    assert (found["shape"], found["stage"], found["status"]) == ("tool-review", "intent", "waiting")
    question = here.status()["next"]
    assert "spec 4/10" in question
    assert "constraints, success, done" in question
    answer = here.refused(4, "stage", "shape")
    assert "stays in intent" in answer.err
    here.ok("answer", "It must keep the API, and it is done when the tests pass.")
    assert "score it again" in here.ok("next").out
    assert score(here, 2, 2, 1, 1, 2)["status"] == "running"
    here.ok("stage", "shape")


def test_a_blocked_goal_does_not_start_executing(here: Here) -> None:
    here.start("goal", "g", "--step", "one", "--mode", "yolo")
    assert score(here, 1, 1, 0, 0, 0)["shape"] == "blocked"
    here.ok("answer", "I do not know yet")
    assert "is blocked" in here.refused(4, "task", "S1", "running").err
    here.refused(4, "stage", "shape")


def test_an_agent_scores_higher_once_the_user_has_made_the_goal_clearer(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo")
    score(here, 1, 1, 0, 0, 0, env=AGENT)
    here.ok("answer", "It must keep the API, and it is done when the tests pass.")
    assert score(here, *CLEAR, env=AGENT)["shape"] == "tool"


def test_a_low_spec_keeps_tasks_from_running_whatever_its_shape(here: Here) -> None:
    here.start("goal", "g", "--step", "one", "--mode", "yolo")
    assert score(here, 2, 2, 0, 0, 0, familiarity=10)["shape"] == "tool-review"
    here.ok("answer", "go")
    here.refused(4, "task", "S1", "running")


def test_a_reviewed_tool_waits_after_its_last_wave_too(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--task", "A", "--task", "B")
    score(here, *REVIEWED)
    for name in ("A", "B"):
        here.ok("task", name, "running")
        here.ok("task", name, "complete")
    assert "All waves are complete. Finish the loop?" in here.status()["next"]


def test_a_later_score_takes_a_goal_back_to_intent(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo")
    for _ in range(4):
        here.ok("stage")
    assert score(here, 1, 1, 1, 0, 0)["stage"] == "intent"


def test_a_colleague_waits_for_a_human_after_each_step(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "one", "--step", "two")
    assert score(here, *COLLEAGUE)["shape"] == "colleague"
    here.ok("task", "S1", "running", env=AGENT)
    answer = here.ok("task", "S1", "complete", env=AGENT)
    assert "1 of 2 steps are done. Continue?" in answer.out
    assert here.status()["status"] == "waiting"
    here.refused(4, "task", "S2", "running", env=AGENT)
    here.refused(4, "answer", "yes", env=AGENT)
    here.ok("answer", "yes")
    here.ok("task", "S2", "running", env=AGENT)
    here.ok("task", "S2", "complete", env=AGENT)
    assert here.status()["status"] == "waiting"


def test_a_no_after_a_step_pauses_the_loop(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "one", "--step", "two")
    score(here, *COLLEAGUE)
    here.ok("task", "S1", "running")
    here.ok("task", "S1", "complete")
    here.ok("answer", "no, let us talk")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "manual")


def test_a_reviewed_tool_waits_at_each_wave_and_not_before(here: Here) -> None:
    tasks = ("--task", "A", "--task", "B", "--task", "C", "--blocked-by", "C=A,B")
    here.start("goal", "g", "--mode", "yolo", *tasks)
    assert score(here, *REVIEWED)["shape"] == "tool-review"
    for name in ("A", "B"):
        assert here.status()["status"] == "running"
        here.ok("task", name, "running", env=AGENT)
        here.ok("task", name, "complete", env=AGENT)
    status = here.status()
    assert status["status"] == "waiting"
    assert "Wave 1 complete. Continue to Wave 2?" in status["next"]


@pytest.mark.parametrize("points", [CLEAR, None])
def test_a_tool_and_what_was_never_scored_wait_at_no_step(
    here: Here, points: tuple[int, ...] | None
) -> None:
    tasks = ("--task", "A", "--task", "B", "--blocked-by", "B=A")
    here.start("goal", "g", "--mode", "yolo", *tasks)
    if points:
        score(here, *points)
    for name in ("A", "B"):
        here.ok("task", name, "running")
        here.ok("task", name, "complete")
        assert here.status()["status"] == "running"


def test_an_agent_does_not_loosen_the_shape_by_itself(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "one")
    score(here, *COLLEAGUE, env=AGENT)
    clear = [x for name in DIMENSIONS for x in (f"--{name}", "2")]
    assert "until the user sends a message" in here.refused(4, "score", *clear, env=AGENT).err
    score(here, *CLEAR)
    assert here.status()["shape"] == "tool"


def test_a_colleague_waits_between_iterations_that_are_begun_by_hand(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--criterion", "docs")
    score(here, 1, 1, 1, 1, 1)
    here.ok("iterate")
    answer = here.run("iterate")
    assert (answer.code, "Iteration 1 is done. Continue?" in answer.err) == (4, True)
    assert "answer TEXT" in answer.err
    here.ok("answer", "yes")
    here.ok("iterate")
    assert here.status()["iteration"] == 2


def test_a_failed_task_of_an_unclear_goal_is_not_retried_before_it_is_clear(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "a")
    here.ok("task", "S1", "running")
    here.ok("fail", "S1", "--error", "boom")
    score(here, 0, 1, 1, 1, 1)
    here.ok("answer", "it should be good")
    assert " score " in here.ok("next", "--json").json["command"]

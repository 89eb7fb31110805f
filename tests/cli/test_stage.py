"""score and stage, and the shapes of a goal."""

from __future__ import annotations

import pytest

from gsd_fsm.engine.goals import DIMENSIONS, score_of
from tests.support.command_line import AGENT, CLEAR, COLLEAGUE, REVIEWED, Here, score, score_options

YOLO = ("goal", "g", "--mode", "yolo")


def finish(here: Here, *tasks: str) -> None:
    for task in tasks:
        here.ok("task", task, "running", env=AGENT)
        here.ok("task", task, "complete", env=AGENT)


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
def test_score_of_computes_spec_fit_and_shape(
    points: tuple[int, ...], familiarity: int, spec: int, fit: int, shape: str
) -> None:
    named = dict(zip(DIMENSIONS, points, strict=True))
    assert score_of(named, familiarity) == (spec, fit, shape)


def test_score_is_recorded_with_its_points_and_shown(here: Here) -> None:
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
def test_score_with_invalid_or_missing_points_is_refused(
    here: Here, wrong: tuple[str, str]
) -> None:
    here.start("goal", "g")
    points = {f"--{name}": "1" for name in DIMENSIONS}
    given = {**points, wrong[0]: wrong[1]}
    here.refused(2, "score", *[text for pair in given.items() for text in pair])
    here.refused(2, "score", "--outcome", "2")


def test_score_of_other_loops_is_refused(here: Here) -> None:
    here.start("execute", "--task", "T1")
    answer = here.refused(4, "score", *score_options(*COLLEAGUE))
    assert "only goal loops are scored" in answer.err


def test_score_below_spec_5_waits_in_intent_until_scored_again(
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


@pytest.mark.parametrize(
    ("points", "familiarity", "shape"),
    [((1, 1, 0, 0, 0), 0, "blocked"), ((2, 2, 0, 0, 0), 10, "tool-review")],
)
def test_score_below_spec_5_keeps_tasks_from_running(
    here: Here, points: tuple[int, ...], familiarity: int, shape: str
) -> None:
    here.start(*YOLO, "--step", "one")
    assert score(here, *points, familiarity=familiarity)["shape"] == shape
    here.ok("answer", "I do not know yet")
    refused = here.refused(4, "task", "S1", "running").err
    assert shape != "blocked" or "is blocked" in refused
    here.refused(4, "stage", "shape")


def test_score_by_agent_may_rise_after_the_user_answered(here: Here) -> None:
    here.start(*YOLO)
    score(here, 1, 1, 0, 0, 0, env=AGENT)
    here.ok("answer", "It must keep the API, and it is done when the tests pass.")
    assert score(here, *CLEAR, env=AGENT)["shape"] == "tool"


def test_score_by_agent_cannot_loosen_the_shape(here: Here) -> None:
    here.start(*YOLO, "--step", "one")
    score(here, *COLLEAGUE, env=AGENT)
    refused = here.refused(4, "score", *score_options(*CLEAR), env=AGENT).err
    assert "until the user sends a message" in refused
    score(here, *CLEAR)
    assert here.status()["shape"] == "tool"


def test_low_score_in_a_later_stage_returns_to_intent(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo")
    for _ in range(4):
        here.ok("stage")
    assert score(here, 1, 1, 1, 0, 0)["stage"] == "intent"


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [("yes", "running", None), ("no, let us talk", "paused", "manual")],
)
def test_colleague_waits_for_the_user_after_each_step(
    here: Here, answer: str, status: str, code: str | None
) -> None:
    here.start(*YOLO, "--step", "one", "--step", "two")
    assert score(here, *COLLEAGUE)["shape"] == "colleague"
    here.ok("task", "S1", "running", env=AGENT)
    told = here.ok("task", "S1", "complete", env=AGENT)
    assert "1 of 2 steps are done. Continue?" in told.out
    assert here.status()["status"] == "waiting"
    here.refused(4, "task", "S2", "running", env=AGENT)
    here.refused(4, "answer", "yes", env=AGENT)
    here.ok("answer", answer)
    found = here.status()
    assert (found["status"], found["pause_code"]) == (status, code)
    if status == "running":
        finish(here, "S2")
        assert here.status()["status"] == "waiting"


def test_colleague_waits_between_iterations_begun_by_hand(here: Here) -> None:
    here.start(*YOLO, "--criterion", "docs")
    score(here, *COLLEAGUE)
    here.ok("iterate")
    answer = here.run("iterate")
    assert (answer.code, "Iteration 1 is done. Continue?" in answer.err) == (4, True)
    assert "answer TEXT" in answer.err
    here.ok("answer", "yes")
    here.ok("iterate")
    assert here.status()["iteration"] == 2


@pytest.mark.parametrize(
    ("tasks", "question"),
    [
        (("--task", "C", "--blocked-by", "C=A,B"), "Wave 1 complete. Continue to Wave 2?"),
        ((), "All waves are complete. Finish the loop?"),
    ],
)
def test_tool_review_waits_after_each_wave(
    here: Here, tasks: tuple[str, ...], question: str
) -> None:
    here.start(*YOLO, "--task", "A", "--task", "B", *tasks)
    assert score(here, *REVIEWED)["shape"] == "tool-review"
    for name in ("A", "B"):
        assert here.status()["status"] == "running"
        finish(here, name)
    status = here.status()
    assert status["status"] == "waiting"
    assert question in status["next"]


@pytest.mark.parametrize("points", [CLEAR, None])
def test_tool_and_unscored_goal_do_not_wait(here: Here, points: tuple[int, ...] | None) -> None:
    here.start(*YOLO, "--task", "A", "--task", "B", "--blocked-by", "B=A")
    if points:
        score(here, *points)
    for name in ("A", "B"):
        finish(here, name)
        assert here.status()["status"] == "running"


def test_next_of_unclear_goal_scores_before_it_retries_a_task(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "a")
    here.ok("task", "S1", "running")
    here.ok("fail", "S1", "--error", "boom")
    score(here, 0, 1, 1, 1, 1)
    here.ok("answer", "it should be good")
    assert " score " in here.ok("next", "--json").json["command"]


def test_next_asks_for_a_light_review_between_waves_of_a_scored_goal(here: Here) -> None:
    here.start("goal", "g", "--task", "A", "--task", "B", "--blocked-by", "B=A", "--mode", "yolo")
    score(here, *CLEAR)
    here.ok("task", "A", "running")
    here.ok("task", "A", "complete")
    assert "review light --wave 1" in here.ok("next", "--json").json["command"]
    here.ok("review", "light", "--wave", "1", "--score", "8", "--issues", "2", "--blockers", "0")
    assert here.ok("next", "--json").json["command"].endswith("task B running")


def test_stage_enters_each_stage_in_order_and_requires_the_review(here: Here) -> None:
    here.start("goal", "g")
    here.ok("stage")
    assert here.status()["stage"] == "intent"
    answer = here.refused(4, "stage", "decompose")
    assert "gsd-fsm stage shape" in answer.err
    for name in ("shape", "decompose", "executing", "review"):
        assert f"Stage {name}." in here.ok("stage").out
    here.ok("exit-signal")
    assert "review has not passed" in here.run("complete").err
    here.ok("stage", "complete")
    assert "last stage" in here.refused(4, "stage").err
    here.refused(2, "stage", "party")


def test_stage_adds_shape_file_to_a_goal_but_not_to_a_plan(here: Here) -> None:
    (here.root / "SHAPE.md").write_text("# Criteria\n- it greets\n")
    (here.root / "plan.txt").write_text("plan\n")
    here.start("execute", "--task", "T1", "--plan", "plan.txt")
    here.refused(4, "stage", "intent", "--shape-file", "SHAPE.md")
    here.start("goal", "g", "--fresh", "--plan", "plan.txt")
    here.ok("stage", "intent", "--shape-file", "SHAPE.md")
    assert here.last()["data"] == {"criteria": [{"name": "it greets"}]}

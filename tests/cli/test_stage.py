"""score, stage and review; complete of a goal makes tasks of unmet conditions and blockers."""

from __future__ import annotations

from typing import Any

from gsd_fsm.engine.goals import DIMENSIONS, score_of
from tests.support.command_line import (
    AGENT,
    CLEAR,
    COLLEAGUE,
    REVIEWED,
    Here,
    score,
    score_options,
    without_loop,
)

YOLO = ("goal", "g", "--mode", "yolo")


def finish(here: Here, *tasks: str) -> None:
    for task in tasks:
        here.ok("task", task, "running", env=AGENT)
        here.ok("task", task, "complete", env=AGENT)


def tasks(here: Here) -> dict[str, tuple[str, str]]:
    return {task["id"]: (task["title"], task["status"]) for task in here.status()["tasks"]}


def refused_completion(here: Here) -> str:
    """Run `complete` of a goal that is not done; return its message."""
    answer = here.run("complete")
    assert (answer.code, here.status()["status"] == "completed") == (4, False), answer
    return answer.err


def issues(here: Here) -> list[Any]:
    return [line["data"] for line in here.lines() if line["type"] == "issue"]


def review(here: Here, verdict: str, *options: str) -> Any:
    """Begin a thorough review and end it with this verdict."""
    here.ok("review", "begun")
    return here.ok("review", verdict, *options)


def test_score_of_computes_spec_fit_and_shape() -> None:
    for points, familiarity, *expected in (
        (CLEAR, 0, 10, 65, "tool"),
        ((2, 2, 2, 2, 0), 0, 8, 50, "tool"),
        (REVIEWED, 4, 7, 39, "tool-review"),
        (REVIEWED, 5, 7, 40, "tool"),
        (COLLEAGUE, 0, 5, 25, "colleague"),
        (COLLEAGUE, 4, 5, 29, "colleague"),
        ((2, 2, 0, 0, 0), 4, 4, 24, "blocked"),
        ((2, 2, 0, 0, 0), 10, 4, 30, "tool-review"),
    ):
        assert list(score_of(dict(zip(DIMENSIONS, points, strict=True)), familiarity)) == expected


def test_score_is_recorded_and_shown_or_refused_with_invalid_points(here: Here) -> None:
    here.start("goal", "g")
    assert score(here, 2, 1, 2, 1, 1, familiarity=3)["shape"] == "tool"
    status = here.status()
    assert [status[name] for name in ("spec_score", "fit_score", "shape")] == [7, 43, "tool"]
    assert here.last()["data"]["spec"] == {
        "outcome": 2, "scope": 1, "constraints": 2, "success": 1, "done": 1, "familiarity": 3,
    }  # fmt: skip

    for option, value in (("outcome", "3"), ("outcome", "-1"), ("familiarity", "11")):
        points = {**dict.fromkeys(DIMENSIONS, "1"), option: value}
        here.refused(2, "score", *(f"--{name}={points[name]}" for name in points))
    here.refused(2, "score", "--outcome", "2")
    here.start("execute", "--task", "T1", "--fresh")
    refused = here.refused(4, "score", *score_options(*COLLEAGUE)).err
    assert "only goal loops are scored" in refused


def test_score_below_spec_5_returns_to_intent_and_waits_until_scored_again(here: Here) -> None:
    for outcome, familiarity, shape in (((2, 1), 0, "blocked"), ((2, 2), 10, "tool-review")):
        here.start(*YOLO, "--step", "one", "--fresh")
        for _ in range(4):
            here.ok("stage")
        here.ok("fail", "S1", "--error", "boom")
        found = score(here, *outcome, 0, 0, 0, familiarity=familiarity, env=AGENT)
        assert (found["shape"], found["stage"], found["status"]) == (shape, "intent", "waiting")
        question = here.status()["next"]
        assert f"spec {sum(outcome)}/10" in question
        assert "constraints, success, done" in question
        assert "stays in intent" in here.refused(4, "stage", "shape").err
        here.ok("answer", "It must keep the API, and it is done when the tests pass.")
        refused = here.refused(4, "task", "S1", "running").err
        assert shape != "blocked" or "is blocked" in refused
        here.refused(4, "stage", "shape")
        assert "score it again" in here.ok("next").out
        found = score(here, *CLEAR, env=AGENT)
        assert (found["shape"], found["status"]) == ("tool", "retrying")
        here.ok("stage", "shape")


def test_score_by_agent_cannot_loosen_the_shape(here: Here) -> None:
    here.start(*YOLO, "--step", "one")
    score(here, *COLLEAGUE, env=AGENT)
    refused = here.refused(4, "score", *score_options(*CLEAR), env=AGENT).err
    assert "until the user sends a message" in refused
    assert score(here, *CLEAR)["shape"] == "tool"


def test_colleague_waits_for_the_user_after_each_step(here: Here) -> None:
    here.start(*YOLO, "--step", "one", "--step", "two")
    assert score(here, *COLLEAGUE)["shape"] == "colleague"
    here.ok("task", "S1", "running", env=AGENT)
    output = here.ok("task", "S1", "complete", env=AGENT).out
    assert "1 of 2 steps are done. Continue?" in output
    here.refused(4, "task", "S2", "running", env=AGENT)
    here.refused(4, "answer", "yes", env=AGENT)
    here.ok("answer", "yes")
    finish(here, "S2")
    assert here.status()["status"] == "waiting"


def test_colleague_waits_between_iterations_begun_by_hand(here: Here) -> None:
    here.start(*YOLO, "--criterion", "docs")
    score(here, *COLLEAGUE)
    here.ok("iterate")
    answer = here.run("iterate")
    assert (answer.code, "answer TEXT" in without_loop(answer.err)) == (4, True)
    assert "Iteration 1 is done. Continue?" in answer.err
    here.ok("answer", "yes")
    here.ok("iterate")


def test_tool_review_waits_after_each_wave_but_tool_and_unscored_goal_do_not(here: Here) -> None:
    two_waves = ("--task", "C", "--blocked-by", "C=A,B")
    figures = "(review: score 8, 1 issue, 0 blockers)"
    for points, more, question in (
        (REVIEWED, two_waves, f"Wave 1 complete {figures}. Continue to Wave 2?"),
        (REVIEWED, (), f"All waves are complete {figures}. Finish the loop?"),
        (CLEAR, two_waves, ""),
        (None, two_waves, ""),
    ):
        here.start(*YOLO, "--fresh", "--task", "A", "--task", "B", *more)
        if points:
            score(here, *points)
        for name in ("A", "B"):
            finish(here, name)
            assert here.status()["status"] == "running"
        due = "review light --wave 1" if points else "Start task C"
        assert due in without_loop(here.ok("next").out)
        review = (
            "review",
            "light",
            "--wave",
            "1",
            "--score",
            "8",
            "--issues",
            "1",
            "--blockers",
            "0",
        )
        assert here.ok(*review).out.startswith(f"Review light. {question}".strip())
        assert here.status()["status"] == ("waiting" if question else "running")
        assert question in here.ok("next").out


def test_stage_enters_each_stage_in_order_and_requires_the_review(here: Here) -> None:
    (here.root / "SHAPE.md").write_text("# Criteria\n- it greets\n")
    here.start("execute", "--task", "T1")
    here.refused(4, "stage", "intent", "--shape-file", "SHAPE.md")
    here.start("goal", "g", "--fresh")
    for name in ("intent", "shape", "decompose", "executing", "review"):
        assert f"Stage {name}." in here.ok("stage").out
    here.ok("exit-signal")
    assert "review has not passed" in here.run("complete").err
    here.ok("stage", "complete")
    assert "last stage" in here.refused(4, "stage").err
    here.refused(2, "stage", "party")


def test_complete_makes_a_task_of_each_unmet_condition(here: Here) -> None:
    here.start("goal", "g", "--criterion", "docs", "--check", "tests=false")
    here.ok("stage")
    message = refused_completion(here)
    wanted = [
        *("criterion not met: docs", "criterion not met: tests"),
        "the thorough review has not passed",
    ]
    assert all(words in message for words in wanted)
    assert tasks(here) == {f"F{n}": (words, "pending") for n, words in enumerate(wanted, 1)}
    assert "Each is a task now: F1, F2, F3\n  → Run: gsd-fsm next\n" in message


def test_met_condition_completes_its_task_and_none_is_made_twice(here: Here) -> None:
    here.start("goal", "g", "--criterion", "docs", "--criterion", "tests")
    refused_completion(here)
    here.ok("criterion", "docs", "met")
    assert [status for _, status in tasks(here).values()] == ["complete", "pending"]
    refused_completion(here)
    assert len(tasks(here)) == 2
    here.ok("criterion", "tests", "met")
    assert {status for _, status in tasks(here).values()} == {"complete"}
    here.ok("criterion", "docs", "unmet")
    refused_completion(here)
    assert tasks(here)["F3"] == ("criterion not met: docs", "pending")
    assert len(tasks(here)) == 3


def test_next_names_the_command_that_meets_the_condition_of_a_task(here: Here) -> None:
    here.start("goal", "g", "--check", "tests=test -e done")
    refused_completion(here)
    assert without_loop(here.ok("next", "--json").json["command"]) == "gsd-fsm check"
    (here.root / "done").touch()
    here.ok("check")
    assert without_loop(here.ok("next", "--json").json["command"]) == "gsd-fsm complete"


def test_tasks_of_unmet_conditions_are_not_counted_as_steps(here: Here) -> None:
    here.start(*YOLO, "--step", "one", "--criterion", "c")
    score(here, *COLLEAGUE)
    refused_completion(here)
    here.ok("criterion", "c", "met")
    assert here.status()["status"] == "running"
    finish(here, "S1")
    assert "1 of 1 steps are done" in here.status()["next"]
    assert "Tasks done: S1; remaining: none." in here.ok("cancel").out


def test_refused_complete_keeps_the_status_and_its_tasks_cannot_start(here: Here) -> None:
    here.start("goal", "g", "--criterion", "c")
    here.ok("fail", "--class", "logic", "--error", "boom")
    refused_completion(here)
    assert here.status()["status"] == "retrying"
    for status in ("running", "complete", "skipped"):
        assert "once its condition holds" in here.refused(4, "task", "F1", status).err
    here.refused(4, "fail", "F1", "--error", "x")


def test_light_review_records_its_findings_and_makes_no_task(here: Here) -> None:
    here.start("goal", "g", "--task", "A")
    here.ok("review", "light", "--wave", "1", "--score", "7", "--finding", "blocker: leaks")
    assert here.status()["reviews"] == {"wave_1": {"score": 7, "issues": 1, "blockers": 1}}
    assert issues(here) == [{"text": "leaks", "severity": "BLOCKER"}]
    assert list(tasks(here)) == ["A"]


def test_failed_review_records_findings_and_makes_a_task_of_each_blocker(here: Here) -> None:
    here.start("goal", "g")
    findings = ("BLOCKER: tokens never expire", "Warning: slow", "SUGGESTION: rename it")
    named = [f"--finding={finding}" for finding in findings]
    assert "To resolve: B1." in review(here, "failed", "--score", "6", *named).out
    assert tasks(here) == {"B1": ("tokens never expire", "pending")}
    assert here.status()["reviews"]["thorough"]["issues"] == 3
    assert [issue["severity"] for issue in issues(here)] == ["BLOCKER", "WARNING", "SUGGESTION"]
    assert "task B1 running" in without_loop(here.ok("next").out)
    review(here, "failed", named[0], "--finding=BLOCKER: races")
    assert [title for title, _ in tasks(here).values()] == ["tokens never expire", "races"]


def test_failed_review_or_complete_makes_tasks_of_counted_blockers_up_to_20(here: Here) -> None:
    here.start("goal", "g")
    for blockers, count in (("2", 2), ("1", 2), ("5", 5), ("1000000", 20)):
        review(here, "failed", "--finding", "WARNING: slow", "--blockers", blockers)
        assert list(tasks(here)) == [f"B{number}" for number in range(1, count + 1)]
        assert here.status()["reviews"]["thorough"]["issues"] == int(blockers)
    lines = here.journal.read_bytes().splitlines(keepends=True)
    here.journal.write_bytes(b"".join(lines[:-1]))  # killed before the last task
    refused_completion(here)
    assert "B20" in tasks(here)


def test_review_must_pass_once_begun_and_only_after_its_blockers_are_resolved(here: Here) -> None:
    here.start("goal", "g")
    here.ok("exit-signal")
    here.ok("review", "begun")
    blockers = ("--finding", "BLOCKER: leaks", "--finding", "BLOCKER: races")
    here.ok("review", "failed", "--issues", "3", "--score", "4.5", *blockers)
    assert here.status()["reviews"]["thorough"] == {
        "passed": False, "blockers_remaining": 2, "score": 4.5, "issues": 3,
    }  # fmt: skip
    assert "review has not passed" in refused_completion(here)
    finish(here, "B1")
    here.ok("review", "begun")
    assert "blockers" in here.refused(4, "review", "passed", "--blockers", "1").err
    here.refused(4, "review", "passed", "--finding", "BLOCKER: leaks")
    refused = here.refused(4, "review", "passed", "--score", "9").err
    assert "the review cannot pass while a blocker is open: B2\n" in refused
    for then in ("task B2 running", "task B2 complete", "review passed"):
        command = here.ok("next", "--json").json["command"]
        assert without_loop(command) == f"gsd-fsm {then}"
        if then != "review passed":
            here.ok(*command.split()[1:])
    here.ok("review", "passed", "--score", "9", "--finding", "WARNING: slow")
    assert issues(here)[2:] == [{"text": "slow", "severity": "WARNING"}]
    assert {status for _, status in tasks(here).values()} == {"complete"}
    here.ok("complete")


def test_review_before_it_is_begun_or_with_invalid_options_is_refused(here: Here) -> None:
    here.start("goal", "g")
    refused = here.refused(4, "review", "passed").err
    assert "cannot run 'review passed'" in refused
    assert "review begun" in refused
    assert "--wave" in here.refused(2, "review", "light").err
    here.refused(2, "review", "light", "--wave", "1", "--score", "nan")
    here.ok("review", "begun")
    for wrong in ("leaks", "FATAL: leaks", "BLOCKER:", ": leaks", ""):
        here.refused(2, "review", "failed", "--finding", wrong)


def test_complete_of_unclear_goal_is_refused(here: Here) -> None:
    here.start(*YOLO, "--criterion", "docs")
    score(here, 0, 1, 1, 1, 1)
    here.ok("answer", "it should be good")
    for command in ("criterion docs met", "review begun", "review passed", "exit-signal"):
        here.ok(*command.split())
    assert "the goal is not clear" in refused_completion(here)
    score(here, *CLEAR)
    here.ok("complete")


def test_complete_needs_a_review_after_the_last_work(here: Here) -> None:
    here.start(*YOLO, "--step", "late", "--step", "b", "--criterion", "docs")
    for command in ("review begun", "review passed", "criterion docs met", "exit-signal"):
        here.ok(*command.split())
    finish(here, "S1")
    assert "work was done after the thorough review" in refused_completion(here)
    here.ok("task", "S2", "skipped")
    assert "work was done after the thorough review" in refused_completion(here)
    command = here.ok("next", "--json").json["command"]
    assert without_loop(command) == "gsd-fsm review begun"
    review(here, "passed")
    here.ok("complete")

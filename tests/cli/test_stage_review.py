"""review, and complete of a goal: unmet conditions and blockers become tasks."""

from __future__ import annotations

from typing import Any

from tests.support.command_line import CLEAR, Here, score


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


def test_complete_makes_a_task_of_each_unmet_condition(here: Here) -> None:
    here.start("goal", "g", "--criterion", "docs", "--check", "tests=false")
    here.ok("stage")
    said = refused_completion(here)
    wanted = [
        "criterion not met: docs",
        "criterion not met: tests",
        "no exit signal",
        "the thorough review has not passed",
    ]
    assert all(words in said for words in wanted)
    assert tasks(here) == {f"F{n}": (words, "pending") for n, words in enumerate(wanted, 1)}
    assert "F1, F2, F3, F4" in said


def test_complete_makes_no_task_twice_and_a_met_condition_completes_its_task(
    here: Here,
) -> None:
    here.start("goal", "g", "--criterion", "docs", "--criterion", "tests")
    refused_completion(here)
    here.ok("criterion", "docs", "met")
    assert [status for _, status in tasks(here).values()] == ["complete", "pending", "pending"]
    refused_completion(here)
    assert len(tasks(here)) == 3
    here.ok("criterion", "tests", "met")
    here.ok("exit-signal")
    assert {status for _, status in tasks(here).values()} == {"complete"}
    here.ok("criterion", "docs", "unmet")
    refused_completion(here)
    assert tasks(here)["F4"] == ("criterion not met: docs", "pending")
    assert tasks(here)["F5"] == ("no exit signal", "pending")


def test_next_names_the_command_that_meets_the_condition_of_a_task(here: Here) -> None:
    here.start("goal", "g", "--check", "tests=test -e done")
    refused_completion(here)
    assert here.ok("next", "--json").json["command"].endswith(" check")
    (here.root / "done").touch()
    here.ok("check")
    assert here.ok("next", "--json").json["command"].endswith(" exit-signal")
    here.ok("exit-signal")
    here.ok("complete")


def test_tasks_of_unmet_conditions_are_not_counted_as_steps(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "one", "--criterion", "c")
    for _ in range(4):
        here.ok("stage")
    score(here, 1, 1, 1, 1, 1)
    refused_completion(here)
    here.ok("criterion", "c", "met")
    assert here.status()["status"] == "running"
    here.ok("task", "S1", "running")
    here.ok("task", "S1", "complete")
    assert "1 of 1 steps are done" in here.status()["next"]
    here.ok("answer", "yes")
    here.ok("review", "light", "--wave", "1")
    assert here.ok("next", "--json").json["command"].endswith(" stage review")
    said = here.ok("cancel").out
    assert "Tasks done: S1; remaining: none." in said


def test_task_and_fail_refuse_tasks_of_unmet_conditions(here: Here) -> None:
    here.start("goal", "g", "--criterion", "c")
    refused_completion(here)
    for status in ("running", "complete", "skipped"):
        assert "once its condition holds" in here.refused(4, "task", "F1", status).err
    here.refused(4, "fail", "F1", "--error", "x")


def test_refused_complete_keeps_the_retrying_status(here: Here) -> None:
    here.start("goal", "g", "--criterion", "c")
    here.ok("fail", "--class", "logic", "--error", "boom")
    refused_completion(here)
    assert here.status()["status"] == "retrying"


def test_complete_adds_tasks_of_a_review_that_were_not_recorded(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.ok("review", "failed", "--blockers", "2")
    lines = here.journal.read_bytes().splitlines(keepends=True)
    here.journal.write_bytes(b"".join(lines[:-1]))  # killed before the last task
    refused_completion(here)
    assert "B2" in tasks(here)


def test_light_review_records_its_findings_and_makes_no_task(here: Here) -> None:
    here.start("goal", "g", "--task", "A")
    here.ok("review", "light", "--wave", "1", "--score", "7", "--finding", "blocker: leaks")
    assert here.status()["reviews"] == {"wave_1": {"score": 7, "issues": 1, "blockers": 1}}
    assert list(tasks(here)) == ["A"]
    assert issues(here) == [{"text": "leaks", "severity": "BLOCKER"}]
    assert here.status()["status"] == "running"


def test_failed_review_makes_a_task_of_each_blocker_and_records_all_findings(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    findings = ("BLOCKER: tokens never expire", "Warning: slow", "SUGGESTION: rename it")
    named = [text for finding in findings for text in ("--finding", finding)]
    answer = here.ok("review", "failed", "--score", "6", *named)
    assert "To resolve: B1." in answer.out
    assert tasks(here) == {"B1": ("tokens never expire", "pending")}
    assert here.status()["reviews"]["thorough"] == {
        "passed": False, "blockers_remaining": 1, "score": 6, "issues": 3,
    }  # fmt: skip
    assert [issue["severity"] for issue in issues(here)] == ["BLOCKER", "WARNING", "SUGGESTION"]
    assert "task B1 running" in here.ok("next").out


def test_failed_review_makes_tasks_of_counted_blockers_up_to_20(here: Here) -> None:
    here.start("goal", "g")
    review(here, "failed", "--blockers", "2")
    assert list(tasks(here)) == ["B1", "B2"]
    review(here, "failed", "--blockers", "1")
    assert list(tasks(here)) == ["B1", "B2"]
    review(here, "failed", "--blockers", "1000000")
    assert len(tasks(here)) == 20


def test_failed_review_with_known_blocker_makes_no_second_task(here: Here) -> None:
    here.start("goal", "g")
    for texts in (("leaks",), ("leaks", "races")):
        review(here, "failed", *(f"--finding=BLOCKER: {text}" for text in texts))
    assert [title for title, _ in tasks(here).values()] == ["leaks", "races"]


def test_passed_review_completes_the_tasks_of_its_blockers(here: Here) -> None:
    here.start("goal", "g")
    here.ok("exit-signal")
    here.ok("review", "begun")
    here.ok("review", "failed", "--finding", "BLOCKER: leaks", "--finding", "BLOCKER: races")
    here.ok("task", "B1", "running")
    here.ok("task", "B1", "complete")
    here.ok("review", "begun")
    here.ok("review", "passed", "--score", "9")
    assert {status for _, status in tasks(here).values()} == {"complete"}
    here.ok("complete")


def test_review_with_blocker_cannot_pass(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.refused(4, "review", "passed", "--finding", "BLOCKER: leaks")
    here.ok("review", "passed", "--finding", "WARNING: slow")
    assert issues(here) == [{"text": "slow", "severity": "WARNING"}]


def test_review_rejects_findings_without_known_severity(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    for wrong in ("leaks", "FATAL: leaks", "BLOCKER:", ": leaks", ""):
        here.refused(2, "review", "failed", "--finding", wrong)


def test_review_counts_at_least_as_many_issues_as_blockers(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.ok("review", "failed", "--finding", "WARNING: slow", "--blockers", "5")
    assert here.status()["reviews"]["thorough"]["issues"] == 5


def test_review_changes_the_status_and_must_pass_once_begun(here: Here) -> None:
    here.start("goal", "g")
    here.ok("exit-signal")
    here.ok("review", "begun")
    assert here.status()["status"] == "reviewing"
    here.ok("review", "failed", "--blockers", "2", "--issues", "3", "--score", "4.5")
    assert here.status()["status"] == "fixing"
    assert here.status()["reviews"]["thorough"] == {
        "passed": False,
        "blockers_remaining": 2,
        "score": 4.5,
        "issues": 3,
    }
    assert "review has not passed" in refused_completion(here)
    here.ok("review", "begun")
    assert "blockers" in here.refused(4, "review", "passed", "--blockers", "1").err
    here.ok("review", "passed", "--score", "9")
    assert here.status()["status"] == "running"
    here.ok("review", "light", "--wave", "1", "--score", "8")
    assert here.status()["reviews"]["wave_1"] == {"score": 8}
    here.ok("complete")


def test_review_passed_before_begun_is_refused(here: Here) -> None:
    here.start("goal", "g")
    answer = here.refused(4, "review", "passed")
    assert "cannot run 'review passed'" in answer.err
    assert "review begun" in answer.err
    assert "--wave" in here.refused(2, "review", "light").err
    for wrong in ("nan", "inf", "-1"):
        here.refused(2, "review", "begun", "--score", wrong)


def test_complete_with_stale_evidence_withdraws_the_exit_signal(repository: Here) -> None:
    here = repository
    here.start("goal", "g", "--check", "t=true")
    here.ok("check")
    here.ok("exit-signal")
    (here.root / "code.py").write_text("two\n")
    said = refused_completion(here)
    assert "stale" in said
    assert "no exit signal" in said
    assert "Each is a task now: F1, F2" in said
    status = here.status()
    assert (status["exit_signal"], status["criteria"][0]["stale"]) == (False, True)
    assert tasks(here)["F1"][0] == "criterion not met: t"


def test_complete_of_unclear_goal_is_refused(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--criterion", "docs")
    score(here, 0, 1, 1, 1, 1)
    here.ok("answer", "it should be good")
    for command in ("criterion docs met", "review begun", "review passed", "exit-signal"):
        here.ok(*command.split())
    assert "score" in here.ok("next", "--json").json["command"]
    assert "the goal is not clear" in refused_completion(here)
    score(here, *CLEAR)
    here.ok("complete")


def test_complete_needs_a_review_after_the_last_work(here: Here) -> None:
    here.start(
        "goal", "g", "--mode", "yolo", "--step", "late", "--step", "b", "--criterion", "docs"
    )
    for command in ("review begun", "review passed", "criterion docs met", "exit-signal"):
        here.ok(*command.split())
    here.ok("task", "S1", "running")
    here.ok("task", "S1", "complete")
    assert "work was done after the thorough review" in refused_completion(here)
    here.ok("task", "S2", "skipped")
    assert "work was done after the thorough review" in refused_completion(here)
    assert here.ok("next", "--json").json["command"].endswith(" review begun")
    here.ok("review", "begun")
    here.ok("review", "passed")
    here.ok("complete")

"""Reviews of a goal, the tasks that their blockers become, and the gate before the end."""

from __future__ import annotations

from typing import Any

from tests.support.command_line import AGENT, Here
from tests.support.goal_scores import CLEAR, score


def tasks(here: Here) -> dict[str, tuple[str, str]]:
    return {task["id"]: (task["title"], task["status"]) for task in here.status()["tasks"]}


def gate(here: Here) -> str:
    answer = here.run("complete")
    assert answer.code == 4, answer
    return answer.err


def issues(here: Here) -> list[Any]:
    return [line["data"] for line in here.lines() if line["type"] == "issue"]


def test_each_failed_condition_of_the_gate_is_named_and_becomes_a_task(here: Here) -> None:
    here.start("goal", "g", "--criterion", "docs", "--check", "tests=false")
    here.ok("stage")
    said = gate(here)
    wanted = [
        "criterion not met: docs",
        "criterion not met: tests",
        "no exit signal",
        "the thorough review has not passed",
    ]
    assert all(words in said for words in wanted)
    assert tasks(here) == {f"F{n}": (words, "pending") for n, words in enumerate(wanted, 1)}
    assert "F1, F2, F3, F4" in said


def test_the_gate_makes_no_task_twice_and_a_condition_that_holds_settles_its_task(
    here: Here,
) -> None:
    here.start("goal", "g", "--criterion", "docs", "--criterion", "tests")
    gate(here)
    here.ok("criterion", "docs", "met")
    assert [status for _, status in tasks(here).values()] == ["complete", "pending", "pending"]
    gate(here)
    assert len(tasks(here)) == 3
    here.ok("criterion", "tests", "met")
    here.ok("exit-signal")
    assert {status for _, status in tasks(here).values()} == {"complete"}
    here.ok("criterion", "docs", "unmet")
    gate(here)
    assert tasks(here)["F4"] == ("criterion not met: docs", "pending")
    assert tasks(here)["F5"] == ("no exit signal", "pending")


def test_tasks_of_the_gate_do_not_hide_what_settles_them(here: Here) -> None:
    here.start("goal", "g", "--check", "tests=test -e done")
    gate(here)
    assert here.ok("next", "--json").json["command"].endswith(" check")
    (here.root / "done").touch()
    here.ok("check")
    assert here.ok("next", "--json").json["command"].endswith(" exit-signal")
    here.ok("exit-signal")
    here.ok("complete")


def test_tasks_of_the_gate_are_no_steps_and_hold_no_stage_up(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "one", "--criterion", "c")
    for _ in range(4):
        here.ok("stage")
    score(here, 1, 1, 1, 1, 1)
    gate(here)
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


def test_nobody_settles_a_condition_of_the_gate_but_the_condition(here: Here) -> None:
    here.start("goal", "g", "--criterion", "c")
    gate(here)
    for status in ("running", "complete", "skipped"):
        assert "once its condition holds" in here.refused(4, "task", "F1", status).err
    here.refused(4, "fail", "F1", "--error", "x")


def test_a_refused_end_does_not_take_a_failure_back(here: Here) -> None:
    here.start("goal", "g", "--criterion", "c")
    here.ok("fail", "--class", "logic", "--error", "boom")
    gate(here)
    assert here.status()["status"] == "retrying"


def test_a_shape_joins_a_goal_and_never_a_plan(here: Here) -> None:
    (here.root / "SHAPE.md").write_text("# Criteria\n- it greets\n")
    (here.root / "plan.txt").write_text("plan\n")
    here.start("execute", "--task", "T1", "--plan", "plan.txt")
    here.refused(4, "stage", "intent", "--shape-file", "SHAPE.md")
    here.start("goal", "g", "--fresh", "--plan", "plan.txt")
    here.ok("stage", "intent", "--shape-file", "SHAPE.md")
    assert here.last()["data"] == {"criteria": [{"name": "it greets"}]}


def test_the_gate_makes_up_for_tasks_of_a_review_that_were_never_recorded(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.ok("review", "failed", "--blockers", "2")
    lines = here.journal.read_bytes().splitlines(keepends=True)
    here.journal.write_bytes(b"".join(lines[:-1]))  # killed before the last task
    gate(here)
    assert "B2" in tasks(here)


def test_the_gate_of_other_loops_only_refuses(here: Here) -> None:
    here.start("execute", "--task", "T1")
    here.refused(4, "complete")


def test_a_light_review_informs_and_makes_no_task(here: Here) -> None:
    here.start("goal", "g", "--task", "A")
    here.ok("review", "light", "--wave", "1", "--score", "7", "--finding", "blocker: leaks")
    assert here.status()["reviews"] == {"wave_1": {"score": 7, "issues": 1, "blockers": 1}}
    assert list(tasks(here)) == ["A"]
    assert issues(here) == [{"text": "leaks", "severity": "BLOCKER"}]
    assert here.status()["status"] == "running"


def test_each_blocker_of_a_thorough_review_becomes_a_task_and_the_rest_is_kept(here: Here) -> None:
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


def test_blockers_that_are_only_counted_become_tasks_too(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.ok("review", "failed", "--blockers", "2")
    assert list(tasks(here)) == ["B1", "B2"]
    here.ok("review", "begun")
    here.ok("review", "failed", "--blockers", "1")
    assert list(tasks(here)) == ["B1", "B2"]


def test_countless_blockers_become_no_countless_tasks(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.ok("review", "failed", "--blockers", "1000000")
    assert len(tasks(here)) == 20


def test_a_blocker_that_is_found_again_is_the_task_that_it_was(here: Here) -> None:
    here.start("goal", "g")
    for texts in (("leaks",), ("leaks", "races")):
        here.ok("review", "begun")
        named = [x for text in texts for x in ("--finding", f"BLOCKER: {text}")]
        here.ok("review", "failed", *named)
    assert [title for title, _ in tasks(here).values()] == ["leaks", "races"]


def test_a_passed_review_settles_its_blockers(here: Here) -> None:
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


def test_a_review_that_leaves_a_blocker_has_not_passed(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.refused(4, "review", "passed", "--finding", "BLOCKER: leaks")
    here.ok("review", "passed", "--finding", "WARNING: slow")
    assert issues(here) == [{"text": "slow", "severity": "WARNING"}]


def test_a_finding_without_a_known_severity_is_refused(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    for wrong in ("leaks", "FATAL: leaks", "BLOCKER:", ": leaks", ""):
        here.refused(2, "review", "failed", "--finding", wrong)


def test_the_review_is_mandatory_once_the_goal_is_scored(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo")
    score(here, *CLEAR)
    here.ok("exit-signal")
    assert "the thorough review has not passed" in gate(here)
    here.ok("review", "begun")
    here.ok("review", "passed")
    here.ok("complete")


def test_a_withdrawn_exit_signal_is_asked_for_again(here: Here) -> None:
    here.start("goal", "g", "--criterion", "docs")
    here.ok("criterion", "docs", "met", env=AGENT)
    here.ok("exit-signal", env=AGENT)
    here.ok("criterion", "docs", "unmet", env=AGENT)
    assert here.status()["exit_signal"] is False
    here.ok("criterion", "docs", "met", env=AGENT)
    assert "no exit signal" in gate(here)


def test_stale_evidence_withdraws_the_exit_signal(repository: Here) -> None:
    here = repository
    here.start("goal", "g", "--check", "t=true")
    here.ok("check")
    here.ok("exit-signal")
    (here.root / "code.py").write_text("two\n")
    said = gate(here)
    assert "stale" in said
    assert "no exit signal" in said
    assert "Each is a task now: F1, F2" in said
    status = here.status()
    assert (status["exit_signal"], status["criteria"][0]["stale"]) == (False, True)
    assert tasks(here)["F1"][0] == "criterion not met: t"


def test_an_unclear_goal_is_never_complete(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--criterion", "docs")
    score(here, 0, 1, 1, 1, 1)
    here.ok("answer", "it should be good")
    for command in ("criterion docs met", "review begun", "review passed", "exit-signal"):
        here.ok(*command.split())
    assert "score" in here.ok("next", "--json").json["command"]
    assert "the goal is not clear" in gate(here)
    score(here, *CLEAR)
    here.ok("complete")


def test_a_thorough_review_is_one_of_all_the_work(here: Here) -> None:
    here.start(
        "goal", "g", "--mode", "yolo", "--step", "late", "--step", "b", "--criterion", "docs"
    )
    for command in ("review begun", "review passed", "criterion docs met", "exit-signal"):
        here.ok(*command.split())
    here.ok("task", "S1", "running")
    here.ok("task", "S1", "complete")
    assert "work was done after the thorough review" in gate(here)
    here.ok("task", "S2", "skipped")
    assert "work was done after the thorough review" in gate(here)
    assert here.ok("next", "--json").json["command"].endswith(" review begun")
    here.ok("review", "begun")
    here.ok("review", "passed")
    here.ok("complete")


def test_there_are_at_least_as_many_issues_as_blockers(here: Here) -> None:
    here.start("goal", "g")
    here.ok("review", "begun")
    here.ok("review", "failed", "--finding", "WARNING: slow", "--blockers", "5")
    assert here.status()["reviews"]["thorough"]["issues"] == 5

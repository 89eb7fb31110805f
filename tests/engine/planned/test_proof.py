"""Reported tasks are settled by their own checks: files, commands, TDD, and what stays reported."""

from __future__ import annotations

import pytest

from tests.support.command_line import AGENT, Here, without_loop
from tests.support.plan_loops import report, start_plan, start_tdd, task_state
from tests.support.verification import document, task

# The command of T01 needs a file that T02 creates.
NEEDY = task("01", [("command", "grep -q two b.txt")], "a.txt")
GIVING = task("02", [("file", "b.txt exists")], "b.txt")


def write(here: Here, name: str, text: str = "text\n") -> None:
    (here.root / name).write_text(text)


def statuses(here: Here) -> list[str]:
    return [one["status"] for one in here.status()["tasks"]]


@pytest.fixture
def parallel(here: Here) -> Here:
    """Return a loop with two tasks of one wave; the first is reported, its command deferred."""
    start_plan(here, plan=document(NEEDY, GIVING))
    write(here, "a.txt")
    shown = here.ok("report", "T01", stdin=b"TASK COMPLETE", env=AGENT).out
    assert "T02" in shown
    assert statuses(here) == ["reported", "pending"]
    return here


def test_commands_of_a_parallel_wave_run_once_after_its_last_report(parallel: Here) -> None:
    assert not [event for event in parallel.lines() if "proof" in event["data"]]
    write(parallel, "b.txt", "two\n")
    answer = report(parallel, "T02", "TASK COMPLETE", env=AGENT)
    assert sorted(answer["proven"]) == ["T01", "T02"]
    proofs = [event["data"]["proof"] for event in parallel.lines() if "proof" in event["data"]]
    assert [(proof["check"], proof["exit_code"]) for proof in proofs] == [("T01#1", 0)]
    assert statuses(parallel) == ["complete", "complete"]


def test_failing_command_stays_reported_while_a_file_of_another_task_is_missing(
    parallel: Here,
) -> None:
    answer = report(parallel, "T02", "TASK COMPLETE", 7, env=AGENT)
    assert (answer["failed"], answer["reported"]) == (["T02"], ["T01"])
    assert statuses(parallel) == ["reported", "failed"]
    write(parallel, "b.txt", "two\n")
    parallel.ok("task", "T02", "running", env=AGENT)
    assert sorted(report(parallel, "T02", "TASK COMPLETE", env=AGENT)["proven"]) == ["T01", "T02"]


def test_failing_command_fails_its_task_with_evidence_and_exit_code_7(parallel: Here) -> None:
    write(parallel, "b.txt", "one\n")
    answer = report(parallel, "T02", "TASK COMPLETE", 7, env=AGENT)
    assert (answer["failed"], answer["proven"]) == (["T01"], ["T02"])
    failure = next(event for event in parallel.lines() if event["type"] == "failure")
    assert failure["data"]["class"] == "logic"
    assert "check T01#1 (grep -q two b.txt): exit code 1" in failure["data"]["error"]
    assert parallel.status()["task_retries"]["T01"] == 1


def test_report_without_the_file_fails_and_complete_obeys_the_same_rule(here: Here) -> None:
    start_plan(here, plan=document(GIVING))
    answer = here.run("report", "T02", stdin=b"TASK COMPLETE", env=AGENT)
    assert (answer.code, "missing file: b.txt" in answer.out + answer.err) == (7, True)
    here.ok("task", "T02", "running", env=AGENT)
    assert here.run("task", "T02", "complete", env=AGENT).code == 7
    assert statuses(here) == ["failed"]
    here.refused(4, "complete")


def test_unchanged_file_fails_the_task_unless_another_check_passes(here: Here) -> None:
    text = task("01", []).replace(
        "<files>\n",
        '<files>\n<file action="modify">a.txt</file>\n<file action="modify">b.txt</file>\n',
    )
    plain = text.replace("<verify>\n", "<verify>\nLook at it.\n")
    checked = text.replace("<verify>\n", '<verify>\n<check type="command">true</check>\n')
    for plan, code in ((plain, 7), (checked, 0)):
        write(here, "a.txt", "before\n")
        write(here, "b.txt", "before\n")
        start_plan(here, "start", "execute", "--phase", "1", "--mode", "yolo", "--fresh",
                   plan=document(plan))  # fmt: skip
        answer = here.run("report", "T01", stdin=b"TASK COMPLETE", env=AGENT)
        assert answer.code == code, answer
        assert "a.txt: not changed since its wave began" in answer.out + answer.err
    start_plan(here, "start", "execute", "--phase", "1", "--mode", "yolo", "--fresh",
               plan=document(plain))  # fmt: skip
    write(here, "a.txt", "after\n")
    assert report(here, "T01", "TASK COMPLETE", env=AGENT)["proven"] == ["T01"]


def test_complete_of_tdd_task_is_refused_until_its_tests_failed_and_passed(here: Here) -> None:
    start_tdd(here, "sh test_a.py")
    write(here, "a.py")
    for command in (("report", "T01"), ("task", "T01", "complete")):
        error = here.refused(4, *command, stdin=b"TASK COMPLETE", env=AGENT).err
        assert "its tests have not passed in GREEN: it is in RED" in error
        assert "tdd T01 --run" in without_loop(error)
    here.ok("tdd", "T01", env=AGENT)
    write(here, "test_a.py", "exit 1\n")
    here.ok("tdd", "T01", "--run", env=AGENT)
    assert task_state(here)["phase"] == "green"
    here.run("tdd", "T01", "--run", env=AGENT)
    error = here.refused(4, "report", "T01", stdin=b"TASK COMPLETE", env=AGENT).err
    assert "it is in GREEN" in error


def test_complete_repeats_file_checks_and_fails_the_task_whose_file_is_gone(here: Here) -> None:
    start_plan(here, plan=document(GIVING))
    write(here, "b.txt")
    report(here, "T02", "TASK COMPLETE", env=AGENT)
    (here.root / "b.txt").unlink()
    answer = here.run("complete", env=AGENT)
    assert (answer.code, "missing file: b.txt" in answer.err) == (7, True)
    assert (statuses(here), here.status()["status"]) == (["failed"], "retrying")
    failure = here.last()
    assert (failure["data"]["repeated"], failure["by"]) == (True, "cli")


def test_report_while_paused_runs_nothing_and_check_after_resume_settles_it(here: Here) -> None:
    start_plan(here, plan=document(GIVING))
    here.ok("pause")
    here.ok("report", "T02", stdin=b"TASK COMPLETE", env=AGENT)
    assert (statuses(here), here.status()["status"]) == (["reported"], "paused")
    here.ok("resume")
    assert here.run("check", env=AGENT).code == 7
    assert statuses(here) == ["failed"]


def test_missing_program_pauses_and_a_time_limit_fails_the_task(here: Here) -> None:
    start_plan(here, plan=document(task("01", [("command", "no-such-program-here -v")])))
    here.run("report", "T01", stdin=b"TASK COMPLETE", env=AGENT)
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "blocking")
    assert "no-such-program-here" in status["pause_reason"]
    here.ok("cancel")
    start_plan(
        here, plan=document(task("01", [("command", "sleep 20")])),
        settings="check_timeout_seconds = 1\n",
    )  # fmt: skip
    assert here.run("report", "T01", stdin=b"TASK COMPLETE", env=AGENT).code == 7
    assert statuses(here) == ["failed"]
    assert "timed out" in here.status()["last_error"]


def test_skip_by_agent_is_a_request_in_a_loop_without_plan(here: Here) -> None:
    here.start("execute", "--task", "T1", "--mode", "yolo")
    here.ok("task", "T1", "skipped", env=AGENT)
    assert (statuses(here), here.last()["data"].get("request")) == (["pending"], True)
    here.refused(4, "complete", env=AGENT)
    here.ok("task", "T1", "skipped")
    assert statuses(here) == ["skipped"]

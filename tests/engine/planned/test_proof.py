"""Proofs of reported tasks: what is run, when, and what becomes of the tasks."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.engine.context import Context
from tests.support.command_line import Here
from tests.support.events import write
from tests.support.faults import in_child, outcome
from tests.support.golden import write_lines
from tests.support.hook_agent import Agent
from tests.support.plan_loops import TITLE, report, start_plan, task_state
from tests.support.repositories import git

FILES = '<file action="create">{0}.txt</file>'


def task(number: str, *commands: str, files: str = FILES, wave: int = 1, more: str = "") -> str:
    """Return a task that creates NUMBER.txt, unless told otherwise, with these command checks."""
    checks = "".join(f'<check type="command">{it}</check>' for it in commands)
    return (
        f'<task id="{number}" wave="{wave}"{more}><files>{files.format(number)}</files>\n'
        f"<action>Write {number}.</action><verify>{checks or '<check>Look</check>'}</verify>\n"
        "<done>It is there.</done></task>\n"
    )


def start(here: Here, *tasks: str, **how: Any) -> Here:
    return start_plan(here, plan=TITLE + "".join(tasks), **how)


def deliver(here: Here, *names: str) -> None:
    for name in names:
        (here.root / f"{name}.txt").write_text(f"{name}\n")


def statuses(here: Here) -> list[str]:
    return [it["status"] for it in here.status()["tasks"]]


def ran(here: Here, name: str) -> int:
    """Return how often the command that counts its runs was run."""
    path = here.root / f"{name}.runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


# when commands run


def test_commands_of_a_parallel_wave_run_once_all_of_its_tasks_are_reported(here: Here) -> None:
    count = "echo run >> {}.runs; test -e {}.txt"
    start(here, task("01", count.format("01", "02")), task("02", count.format("02", "01")))
    deliver(here, "01")
    shown = here.ok("report", "T01", stdin=b"TASK COMPLETE").out
    assert "Reported: T01. Their commands (T01#1) run once these are reported: T02." in shown
    assert (statuses(here), ran(here, "01")) == (["reported", "pending"], 0)
    here.ok("check")
    assert ran(here, "01") == 0
    deliver(here, "02")
    found = report(here, "T02", "TASK FAILED: not yet")
    assert (found["reported"], ran(here, "01")) == (["T01"], 0)
    found = report(here, "T02", "TASK COMPLETE")
    assert (found["proven"], ran(here, "01"), ran(here, "02")) == (["T01", "T02"], 1, 1)
    assert [it["proof"] for it in here.status()["tasks"]] == ["proven", "proven"]


def test_commands_of_a_sequential_wave_run_at_once(here: Here) -> None:
    start(here, "## Wave 1 (Sequential)\n", task("01", "test -e 01.txt"), task("02", "true"))
    deliver(here, "01")
    assert report(here, "T01", "TASK COMPLETE")["proven"] == ["T01"]


def test_failing_command_fails_its_task_unless_files_of_another_are_missing(here: Here) -> None:
    start(here, task("01", "test -e 02.txt"), task("02", "true"))
    deliver(here, "01")
    here.ok("report", "T01", stdin=b"TASK COMPLETE")
    answer = here.run("report", "T02", stdin=b"TASK COMPLETE")
    assert (answer.code, statuses(here)) == (7, ["reported", "failed"])
    assert "missing file: 02.txt" in answer.out
    assert task_state(here, "T01")["retries"] == 0
    deliver(here, "02")
    assert report(here, "T02", "TASK COMPLETE")["proven"] == ["T01", "T02"]


def test_failing_command_is_a_failure_with_its_evidence_and_is_retried(here: Here) -> None:
    start(here, task("01", "echo broken pipe; exit 3"))
    deliver(here, "01")
    answer = here.run("report", "T01", stdin=b"TASK COMPLETE")
    assert answer.code == 7
    assert "check T01#1 failed" in answer.out
    assert "exit code 3\nbroken pipe\n--- end " in answer.out
    event = here.last()
    assert (event["type"], event["data"]["class"]) == ("failure", "logic")
    assert "exit code 3\nbroken pipe" in event["data"]["error"]
    assert (here.status()["status"], task_state(here)["retries"]) == ("retrying", 1)


def test_check_that_exceeds_its_time_limit_fails_the_task(here: Here) -> None:
    start(here, task("01", "sleep 60"))
    deliver(here, "01")
    assert here.run("report", "T01", "--timeout", "1", stdin=b"TASK COMPLETE").code == 7
    assert "timed out" in task_state(here)["errors"][0]


def test_program_missing_on_the_machine_pauses_the_loop_and_names_it(here: Here) -> None:
    start(here, task("01", "no-such-program --version"))
    deliver(here, "01")
    answer = here.run("report", "T01", stdin=b"TASK COMPLETE")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "blocking")
    assert "needs the program no-such-program, which is not installed" in status["pause_reason"]
    assert "no-such-program" in answer.out
    assert (statuses(here), task_state(here)["retries"]) == (["reported"], 0)


def test_program_that_the_task_should_have_created_is_its_failure(here: Here) -> None:
    start(here, task("01", "./01.txt"))
    deliver(here, "01")
    assert here.run("report", "T01", stdin=b"TASK COMPLETE").code == 7
    assert statuses(here) == ["failed"]


# killed and concurrent runs


def test_killed_run_keeps_its_proofs_and_the_next_check_runs_only_the_rest(here: Here) -> None:
    (here.root / "hold").touch()
    wait = "echo run >> b.runs; while test -e hold; do sleep 0.05; done"
    start(here, task("01", "echo run >> a.runs", wait))
    deliver(here, "01")

    def child() -> None:
        def kill_after_first_proof() -> None:
            while b'"check":"T01#1"' not in here.journal.read_bytes():
                pass
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=kill_after_first_proof, daemon=True).start()
        here.run("report", "T01", stdin=b"TASK COMPLETE")

    assert outcome(in_child(child)) == -signal.SIGKILL
    (here.root / "hold").unlink()
    assert statuses(here) == ["reported"]
    here.ok("check")
    assert (statuses(here), ran(here, "a")) == (["complete"], 1)


def test_text_after_a_killed_run_says_to_check_in_the_background(here: Here) -> None:
    start(here, task("01", "kill -9 $PPID; sleep 5"))
    deliver(here, "01")

    def child() -> None:
        here.run("report", "T01", stdin=b"TASK COMPLETE")

    assert outcome(in_child(child)) == -signal.SIGKILL
    shown = here.ok("next").out
    assert "Prove the reported task T01: run the checks in the background" in shown
    assert "gsd-fsm --loop" in shown
    assert " check" in shown


def test_second_run_waits_for_the_first_and_exits_6_at_its_deadline(here: Here) -> None:
    start(here, task("01", "true"))
    deliver(here, "01")
    with patch("gsd_fsm.engine.context._PATIENCE", 0.1), Context(here.root).proving():
        answer = here.run("report", "T01", stdin=b"TASK COMPLETE")
    assert (answer.code, statuses(here)) == (6, ["reported"])
    assert "gsd-fsm check" in answer.err
    here.ok("check")
    assert statuses(here) == ["complete"]


# waits, pauses and settings


@pytest.mark.parametrize("words", ["TASK COMPLETE", "TASK FAILED: no", "CHECKPOINT: which?"])
def test_report_of_paused_loop_runs_nothing_until_check_after_resume(
    here: Here, words: str
) -> None:
    start(here, task("01", "echo run >> a.runs"))
    deliver(here, "01")
    here.ok("pause")
    before = len(here.lines())
    here.ok("report", "T01", stdin=words.encode())
    assert [it["data"]["status"] for it in here.lines()[before:]] == ["reported"]
    assert (ran(here, "a"), here.status()["status"]) == (0, "paused")
    here.ok("resume")
    here.run("check")
    expected = {"TASK COMPLETE": "complete", "TASK FAILED: no": "failed"}
    assert statuses(here) == [expected.get(words, "checkpoint")]


def test_task_complete_obeys_the_same_rule_as_report(here: Here) -> None:
    start(here, task("01", "test -s 01.txt"), task("02", files="02.txt"))
    here.ok("task", "T01", "running")
    assert here.run("task", "T01", "complete").code == 7
    deliver(here, "01")
    here.ok("task", "T02", "running")
    here.ok("task", "T02", "complete")
    here.ok("task", "T01", "running")
    here.ok("task", "T01", "complete")
    assert [it["proof"] for it in here.status()["tasks"]] == ["proven", "claimed"]


def test_prove_tasks_off_in_the_settings_of_the_user_believes_reports(here: Here) -> None:
    write(Path(os.environ["XDG_CONFIG_HOME"]) / "gsd-fsm" / "config.toml", "prove_tasks = false\n")
    start(here, task("01", "false"))
    assert report(here, "T01", "TASK COMPLETE")["claimed"] == ["T01"]
    assert "T01 complete (claimed)" in here.ok("status").out
    here.ok("complete")


def test_loop_of_version_1_keeps_its_rules_and_its_lines(here: Here) -> None:
    start(here, task("01", "false"))
    raw = here.journal.read_bytes()
    lines = [it for it in here.lines() if it["type"] in ("journal", "start")]
    del lines[1]["data"]["rules"], lines[1]["data"]["tasks"][0]["checks"]
    assert b'"v":2' in raw
    here.journal.write_bytes(write_lines([{**it, "v": 1} for it in lines]))
    (here.gsd / "snapshot.json").unlink(missing_ok=True)
    here.ok("report", "T01", stdin=b"TASK COMPLETE")
    here.ok("complete")
    assert {it["v"] for it in here.lines()} == {1}
    assert here.status()["tasks"][0]["proof"] == "claimed"


# files that the plan names


def test_file_to_modify_must_change_since_its_wave_began(here: Here) -> None:
    (here.root / "old.txt").write_text("old\n")
    files = '<file action="modify">old.txt</file>'
    start(here, task("01", files=files), task("02", "true", files=files, wave=2))
    for _ in range(2):  # a retry does not reset it
        assert here.run("report", "T01", stdin=b"TASK COMPLETE").code == 7
    assert "old.txt: not changed since its wave began" in task_state(here)["errors"][-1]
    (here.root / "old.txt").write_text("new\n")
    assert report(here, "T01", "TASK COMPLETE")["proven"] == ["T01"]
    shown = here.ok("report", "T02", stdin=b"TASK COMPLETE").out
    assert "Note: T02: old.txt: not changed since its wave began." in shown


def test_file_to_delete_must_be_gone(here: Here) -> None:
    deliver(here, "01")
    start(here, task("01", files='<file action="delete">{0}.txt</file>'))
    assert here.run("report", "T01", stdin=b"TASK COMPLETE").code == 7
    (here.root / "01.txt").unlink()
    assert report(here, "T01", "TASK COMPLETE")["proven"] == ["T01"]


# the end


def test_complete_repeats_file_checks_and_fails_a_task_whose_file_is_gone(here: Here) -> None:
    start(here, task("01", "true"))
    deliver(here, "01")
    report(here, "T01", "TASK COMPLETE")
    (here.root / "01.txt").unlink()
    answer = here.run("complete")
    assert (answer.code, statuses(here)) == (7, ["failed"])
    assert "missing file: 01.txt" in answer.err
    assert here.status()["status"] == "retrying"
    deliver(here, "01")
    report(here, "T01", "TASK COMPLETE")
    here.ok("complete")


def test_complete_repeats_the_commands_of_tasks_whose_commits_are_gone(repository: Here) -> None:
    start(repository, task("01", "test -e 01.txt && test ! -e broken"), settings="commit = true\n")
    deliver(repository, "01")
    report(repository, "T01", "TASK COMPLETE")
    git(repository.root, "commit", "-q", "--amend", "-m", "other words")
    (repository.root / "broken").touch()
    assert repository.run("complete").code == 7
    (repository.root / "broken").unlink()
    report(repository, "T01", "TASK COMPLETE")
    git(repository.root, "commit", "-q", "--allow-empty", "--amend", "-m", "yet other words")
    assert "the commits of T01 are no longer on this branch" in repository.ok("complete").err


# subagents that end without a report


def test_task_whose_subagent_ended_without_a_report_fails_after_the_grace(agent: Agent) -> None:
    here = agent.here
    start_plan(here, plan=TITLE + task("01", "true"), env=agent.shell)
    agent.do("task T01 running --ref a-7")
    ended = agent.signal("SubagentStop", agent_id="a-7", last_assistant_message="Hm.")
    agent.send(ended)
    agent.send(ended)
    assert [it["data"].get("ended") for it in here.lines()].count(True) == 1
    agent.blocked()
    agent.blocked()
    assert statuses(here) == ["running"]
    assert "the subagent ended without a report" in agent.blocked()
    assert statuses(here) == ["failed"]
    assert Journal(str(here.gsd)).read().live()[0].tasks["T01"].errors[-1].error_class == "logic"

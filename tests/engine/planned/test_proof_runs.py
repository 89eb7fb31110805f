"""Runs of the checks of tasks: killed, concurrent, paused, switched off, and repeated at the end."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gsd_fsm.engine.context import Context
from tests.support.command_line import Here
from tests.support.events import write
from tests.support.faults import in_child, outcome
from tests.support.golden import write_lines
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


def test_commands_of_a_sequential_wave_run_at_once(here: Here) -> None:
    start(here, "## Wave 1 (Sequential)\n", task("01", "test -e 01.txt"), task("02", "true"))
    deliver(here, "01")
    assert report(here, "T01", "TASK COMPLETE")["proven"] == ["T01"]


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
    assert "gsd-fsm check --loop" in shown


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


@pytest.mark.parametrize("words", ["TASK FAILED: no", "CHECKPOINT: which?"])
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
    assert statuses(here) == ["failed" if "FAILED" in words else "checkpoint"]


def test_command_that_passes_on_a_rerun_proves_its_task_and_is_marked(here: Here) -> None:
    flaky = "test -e second || { touch second; exit 1; }"
    start(here, task("01", flaky), settings="check_reruns = 1\n")
    deliver(here, "01")
    shown = here.ok("report", "T01", stdin=b"TASK COMPLETE").out
    assert "check T01#1 is flaky: it failed first and passed on a rerun" in shown
    proofs = [it["data"]["proof"] for it in here.lines() if "proof" in it["data"]]
    assert [(proof["passed"], proof["reruns"]) for proof in proofs] == [(True, 1)]


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

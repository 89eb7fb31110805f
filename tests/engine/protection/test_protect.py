"""The checks of plans, settings and tests of tasks are protected like those of criteria."""

from __future__ import annotations

import pytest

from tests.support.command_line import Here, without_loop
from tests.support.events import write
from tests.support.plan_loops import YOLO, report, start_plan, start_tdd, task_state
from tests.support.verification import document, task

PASSES, WEAKER = "test -e made.txt\n", "exit 0\n"
PLAN = document(task("01", [("command", "sh check.sh made.txt")], "made.txt"))
VERIFY = ("start", "verify", "--phase", "1", "--mode", "yolo")


def weaken(here: Here, name: str = "check.sh") -> None:
    write(here.root / name, WEAKER)


@pytest.fixture
def planned(repository: Here) -> Here:
    """Return a repository with the script that the plan names, before a loop begins."""
    write(repository.root / "check.sh", PASSES)
    return repository


def test_task_of_a_plan_is_not_proven_while_its_script_is_altered(planned: Here) -> None:
    start_plan(planned, *YOLO, plan=PLAN)
    weaken(planned)
    write(planned.root / "made.txt", "")
    told = planned.run("report", "T01", stdin=b"TASK COMPLETE\n")
    assert told.code == 7
    assert "-test -e made.txt\n+exit 0\n" in told.out
    assert "Run: gsd-fsm restore 'T01#1'\n" in without_loop(told.out)
    assert task_state(planned, "T01")["status"] == "reported"
    told = without_loop(planned.ok("next").out)
    assert "protected file check.sh was changed, and check T01#1 depends on it" in told
    assert "Run: gsd-fsm restore 'T01#1'" in told
    planned.ok("restore", "T01#1")
    planned.ok("check")
    assert task_state(planned, "T01")["proof"] == "proven"
    planned.ok("complete")


def test_accepted_script_of_a_plan_proves_its_task(planned: Here) -> None:
    start_plan(planned, *YOLO, plan=PLAN)
    weaken(planned)
    write(planned.root / "made.txt", "")
    report(planned, "T01", "TASK COMPLETE\n", code=7)
    planned.ok("accept", "T01#1")
    planned.ok("check")
    assert task_state(planned, "T01")["proof"] == "proven"


def test_files_that_a_plan_names_may_change_although_a_check_reads_them(planned: Here) -> None:
    check = task("01", [("command", "sh check.sh")], "check.sh")
    start_plan(planned, *YOLO, plan=document(check.replace('"create"', '"modify"')))
    write(planned.root / "check.sh", "true\n")
    report(planned, "T01", "TASK COMPLETE\n")
    assert task_state(planned, "T01")["proof"] == "proven"
    assert "Since the start: changed: check.sh." in planned.ok("complete").out


def test_round_of_verification_does_not_pass_while_a_script_is_altered(planned: Here) -> None:
    write(planned.root / "made.txt", "")
    start_plan(planned, *VERIFY, plan=PLAN)
    weaken(planned)
    told = planned.run("verify")
    assert told.code == 7
    assert "-test -e made.txt\n+exit 0\n" in told.out
    assert "Run: gsd-fsm restore 'T01#1'\n" in without_loop(told.out)
    assert planned.run("complete").code == 4
    planned.ok("restore", "T01#1")
    planned.ok("verify")
    planned.ok("complete")


def test_ci_command_changed_in_the_settings_runs_as_frozen_until_accepted(planned: Here) -> None:
    write(planned.root / "ci.sh", "exit 3\n")
    write(planned.root / "made.txt", "")
    start_plan(planned, *VERIFY, plan=PLAN, settings="ci_test = 'sh ci.sh'\n")
    planned.configure(ci_test="true")
    failed = planned.run("verify")
    assert failed.code == 7
    assert "the settings have changed: ci:test is now true, but" in failed.err
    assert "runs sh ci.sh for it. To accept that, run: gsd-fsm accept" in failed.err
    assert "accept ci:test" in without_loop(failed.err)
    assert "Accepted for ci:test: the command 'true'." in planned.ok("accept", "ci:test").out
    assert "the settings have changed" not in planned.ok("verify").err
    assert "command for ci:test: true" in planned.ok("proof").out


def test_ci_script_altered_by_an_agent_is_named_with_its_check(planned: Here) -> None:
    write(planned.root / "ci.sh", PASSES)
    write(planned.root / "made.txt", "")
    start_plan(planned, *VERIFY, plan=PLAN, settings="ci_test = 'sh ci.sh'\n")
    weaken(planned, "ci.sh")
    assert planned.run("verify").code == 7
    assert "check ci:test depends on it" in planned.ok("next").out
    planned.ok("restore", "ci:test")
    planned.ok("verify")


def test_tdd_run_does_not_count_while_its_script_is_altered(here: Here) -> None:
    write(here.root / "tests.sh", "exit $(cat outcome)\n")
    start_tdd(here, "sh tests.sh")
    write(here.root / "outcome", "1\n")
    here.ok("tdd", "T01")
    here.ok("tdd", "T01", "--run")
    assert task_state(here, "T01")["phase"] == "green"
    weaken(here, "tests.sh")
    told = here.run("tdd", "T01", "--run")
    assert told.code == 7
    assert "protected file tests.sh was changed, and check tdd depends on it" in told.out
    assert "Run: gsd-fsm restore tdd" in without_loop(told.out)
    assert task_state(here, "T01")["phase"] == "green"
    here.ok("restore", "tdd")
    write(here.root / "outcome", "0\n")
    here.ok("tdd", "T01", "--run")
    assert task_state(here, "T01")["phase"] == "refactor"


def test_tdd_command_changed_in_the_settings_runs_as_frozen_until_accepted(here: Here) -> None:
    start_tdd(here, "exit 1")
    here.ok("tdd", "T01")
    here.configure(ci_test="true")
    assert here.ok("tdd", "T01", "--run", "--json").json["exit_code"] == 1
    assert "the settings have changed: tdd is now true" in here.run("tdd", "T01", "--run").err
    here.ok("accept", "tdd")
    assert here.ok("tdd", "T01", "--run", "--json").json["exit_code"] == 0

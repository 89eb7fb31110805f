"""tdd: red must fail, green must pass within its attempts, and locked files must not change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import AGENT, Answer, Here
from tests.support.plan_loops import (
    TDD_PLAN,
    YOLO,
    report_complete,
    start_plan,
    start_tdd,
    task_state,
    write_plan,
)
from tests.support.plan_loops import TDD_TASK as TASK
from tests.support.repositories import git

# The exit code of the tests is in the file `outcome`.
COMMAND = "cat outcome; exit $(cat outcome)"
FILES, TESTS = ["a.py", "b.py", "sub/c.py"], ["test_a.py"]


@pytest.fixture
def cycle(here: Here) -> Here:
    return start_tdd(here, COMMAND)


def start_red(here: Here, command: str | None) -> Here:
    """Start the loop and the cycle of its first task."""
    start_tdd(here, command).ok("tdd", "T01")
    return here


def run(here: Here, code: int, name: str = "T01") -> Answer:
    """Run the tests, which exit with this code."""
    (here.root / "outcome").write_text(str(code))
    return here.run("tdd", name, "--run", "--json")


def passes(here: Here, code: int, name: str = "T01") -> Any:
    answer = run(here, code, name)
    assert answer.code == 0, answer
    return answer.json


def fails(here: Here, code: int, name: str = "T01") -> Any:
    answer = run(here, code, name)
    assert answer.code == 7, answer
    return answer.json


def exhaust_green(here: Here) -> None:
    """Pass red, then use up every attempt of green."""
    passes(here, 1)
    for _ in range(5):
        fails(here, 1)


def reach_refactor(here: Here) -> None:
    here.ok("tdd", "T01")
    (here.root / "test_a.py").write_text("test\n")
    passes(here, 1)
    (here.root / "a.py").write_bytes(b"a\r\n\x00\xff")
    (here.root / "a.py").chmod(0o755)
    (here.root / "b.py").write_text("b\n")
    passes(here, 0)


def copies() -> Path:
    """Return the directory with the copies that undo a refactoring."""
    return Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm" / "tdd"


def test_tdd_leads_from_red_to_green_to_refactor_and_prints_contract_members(cycle: Here) -> None:
    here = cycle
    told = here.ok("tdd", "T01", "--json", env=AGENT).json
    assert {name: told[name] for name in ("task", "phase", "exit_code", "attempt")} == {
        "task": "T01", "phase": "red", "exit_code": None, "attempt": 0,
    }  # fmt: skip
    assert (told["allowed"], told["locked"]) == (TESTS, FILES)
    assert told["max_attempts"] == 5
    assert told["test_command"] == "cat outcome; exit $(cat outcome)"
    begun = here.last()
    assert begun["by"] == "agent"
    assert begun["data"] == {
        "task": "T01", "status": "running", "phase": "red", "locked": dict.fromkeys(FILES),
    }  # fmt: skip
    (here.root / "test_a.py").write_text("test\n")
    told = passes(here, 3)
    assert (told["phase"], told["exit_code"], told["attempt"]) == ("green", 3, 1)
    assert (told["allowed"], told["locked"]) == (FILES, TESTS)
    assert here.last()["data"]["exit_code"] == 3
    assert list(here.last()["data"]["locked"]) == TESTS
    told = passes(here, 0)
    assert (told["phase"], told["exit_code"], told["passed"]) == ("refactor", 0, True)
    told = passes(here, 0)
    assert (told["phase"], task_state(here)["status"]) == ("refactor", "running")
    report_complete(here, "T01")
    assert task_state(here)["status"] == "complete"


def test_tdd_prints_phase_goal_and_files(cycle: Here) -> None:
    told = cycle.ok("tdd", "01").out
    assert "RED: Write a failing test for: It adds." in told
    assert "May change: test_a.py." in told
    assert "Locked: a.py, b.py, sub/c.py." in told
    assert "tdd T01 --run" in told
    (cycle.root / "outcome").write_text("1")
    told = cycle.ok("tdd", "T01", "--run").out
    assert "GREEN (attempt 1 of 5): Write minimal code" in told
    assert "May change: a.py, b.py, sub/c.py." in told


def test_tdd_shown_again_appends_nothing(cycle: Here) -> None:
    cycle.ok("tdd", "T01")
    before = cycle.journal.read_bytes()
    cycle.ok("tdd", "T01")
    assert cycle.journal.read_bytes() == before


def test_tdd_with_passing_tests_stays_red(cycle: Here) -> None:
    for _ in range(7):
        told = fails(cycle, 0)
        assert (told["phase"], told["exit_code"], told["passed"]) == ("red", 0, False)
    assert task_state(cycle)["retries"] == 0
    assert passes(cycle, 1)["phase"] == "green"


def test_tdd_without_test_file_stays_red(cycle: Here) -> None:
    (cycle.root / "test_a.py").unlink()
    told = fails(cycle, 5)
    assert (told["phase"], told["exit_code"], told["passed"]) == ("red", 5, False)
    assert "test_a.py does not exist" in cycle.run("tdd", "T01", "--run").out


def test_tdd_fails_the_task_after_the_last_attempt_of_green(cycle: Here) -> None:
    here = cycle
    passes(here, 1)
    for attempt in (2, 3, 4, 5):
        told = fails(here, 9)
        assert (told["phase"], told["exit_code"], told["attempt"]) == ("green", 9, attempt)
    told = fails(here, 9)
    assert here.last()["type"] == "failure"
    assert here.last()["data"]["error"].startswith("the tests still fail after 5 attempts\n\n9")
    assert (task_state(here)["status"], task_state(here)["retries"]) == ("failed", 1)
    prompt = here.ok("next", "T01").out
    assert "<tdd_attempts>5</tdd_attempts>" in prompt


def test_tdd_of_failed_task_begins_at_green_with_the_same_tests(cycle: Here) -> None:
    exhaust_green(cycle)
    told = cycle.ok("tdd", "T01", "--json").json
    assert (told["phase"], told["attempt"]) == ("green", 1)
    passes(cycle, 0)


def test_tdd_of_failed_task_begins_at_red_with_other_tests(cycle: Here) -> None:
    exhaust_green(cycle)
    (cycle.root / "test_a.py").write_text("another test\n")
    told = cycle.ok("tdd", "T01", "--json").json
    assert (told["phase"], told["attempt"]) == ("red", 0)
    assert passes(cycle, 1)["attempt"] == 1
    (cycle.root / "a.py").write_text("another way\n")
    passes(cycle, 0)


def test_tdd_counts_attempts_and_retries_apart_and_pauses_after_both(here: Here) -> None:
    (here.root / "test_a.py").write_text("a test\n")
    settings = f"ci_test = '{COMMAND}'\ntdd_max_attempts = 2\n"
    start_plan(here, *YOLO, "--max-retries", "1", plan=TDD_PLAN, settings=settings)
    passes(here, 1)
    counts = []
    for code in (3, 4, 5):
        fails(here, code)
        counts.append((task_state(here)["attempts"], task_state(here)["retries"]))
    assert counts == [(2, 0), (2, 1), (2, 1)]
    (here.root / "outcome").write_text("6")
    shown = here.run("tdd", "T01", "--run").out
    status = here.status()
    assert (status["pause_code"], status["status"]) == ("retries", "paused")
    assert "## Task T01 Failed" in shown
    assert "### Error 1 of 2 (" in shown
    assert "the tests still fail after 2 attempts\n\n4" in shown
    assert "the tests still fail after 2 attempts\n\n6" in shown
    assert "is paused" in here.refused(4, "tdd", "T01").err


@pytest.mark.parametrize(
    ("phase", "locked"), [("RED", "b.py"), ("GREEN", "test_a.py"), ("REFACTOR", "test_a.py")]
)
@pytest.mark.parametrize("how", ["changed", "deleted"])
def test_tdd_with_changed_or_deleted_locked_file_fails_the_task(
    cycle: Here, phase: str, locked: str, how: str
) -> None:
    here = cycle
    (here.root / "b.py").write_text("before\n")
    (here.root / "test_a.py").write_text("before\n")
    here.ok("tdd", "T01")
    for code in {"RED": (), "GREEN": (1,), "REFACTOR": (1, 0)}[phase]:
        passes(here, code)
    if how == "changed":
        (here.root / locked).write_text("after\n")
    else:
        (here.root / locked).unlink()
    answer = run(here, 0)
    assert answer.code == 7
    what = f"locked files were changed in {phase}: {locked}"
    assert what in answer.err
    assert answer.json["error"] == f"task T01 failed: {what}"
    assert here.last()["data"]["error"].startswith(what)
    assert here.last()["data"]["class"] == "logic"
    assert task_state(here)["retries"] == 1


def test_tdd_with_created_locked_file_fails_the_task(cycle: Here) -> None:
    cycle.ok("tdd", "T01")
    (cycle.root / "sub").mkdir()
    (cycle.root / "sub" / "c.py").write_text("too early\n")
    assert "RED: sub/c.py" in run(cycle, 1).err


def test_tdd_with_existing_tests_begins_at_green(cycle: Here) -> None:
    told = cycle.ok("tdd", "T02", "--json").json
    assert (told["phase"], told["attempt"], told["locked"]) == ("green", 1, TESTS)
    for attempt in (2, 3, 4, 5):
        assert fails(cycle, 1, "T02")["attempt"] == attempt
    fails(cycle, 1, "T02")
    assert task_state(cycle, "T02")["status"] == "failed"
    told = cycle.ok("tdd", "T02", "--json").json
    assert (told["phase"], told["attempt"]) == ("green", 1)


def test_tdd_of_task_without_cycle_is_refused(cycle: Here) -> None:
    assert "task T03 needs no tests" in cycle.refused(4, "tdd", "T03").err
    assert "the plan has no task T9" in cycle.refused(2, "tdd", "T9").err
    report_complete(cycle, "T01")
    assert "task T01 is complete" in cycle.refused(4, "tdd", "T01", "--run").err
    cycle.ok("cancel")
    cycle.ok("start", "execute", "--task", "T1", "--mode", "yolo")
    assert "does not execute a plan" in cycle.refused(2, "tdd", "T1").err


def test_tdd_of_a_later_wave_is_refused(here: Here) -> None:
    later = TASK.format(id="04", tests="true").replace('wave="1"', 'wave="2"')
    start_plan(here, plan=TDD_PLAN + later)
    here.refused(4, "tdd", "T04")


def test_tdd_runs_the_configured_command_or_the_usual_one(here: Here) -> None:
    start_red(here, None)
    assert here.ok("tdd", "T01", "--json").json["test_command"] == "pytest"
    (here.root / "package.json").write_text("{}")
    assert here.ok("tdd", "T01", "--json").json["test_command"] == "npm test"
    (here.gsd / "config.toml").write_text('ci_test = "make test"\n')
    assert here.ok("tdd", "T01", "--json").json["test_command"] == "make test"


def test_tdd_run_with_json_prints_test_output_on_stderr(here: Here) -> None:
    start_red(here, "echo 2 failed; exit 1")
    answer = here.ok("tdd", "T01", "--run", "--json")
    assert answer.json["exit_code"] == 1
    assert "2 failed" in answer.err
    assert "2 failed" in here.run("tdd", "T01", "--run").out


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "./plan.txt"])
def test_tdd_run_with_missing_command_records_nothing(here: Here, command: str) -> None:
    (here.root / "plan.txt").write_text("not a program")
    start_red(here, command)
    answer = here.refused(7, "tdd", "T01", "--run")
    assert f"the test command could not be run: {command}" in answer.err
    assert "ci_test" in answer.err


def test_tdd_run_that_times_out_does_not_pass_red(here: Here) -> None:
    start_red(here, "sleep 30")
    answer = here.run("tdd", "T01", "--run", "--timeout", "1", "--json")
    assert answer.code == 7
    assert (answer.json["phase"], answer.json["exit_code"]) == ("red", 124)


def test_tdd_run_that_times_out_is_an_attempt_of_green(here: Here) -> None:
    start_red(here, "false")
    here.ok("tdd", "T01", "--run")
    (here.gsd / "config.toml").write_text('ci_test = "sleep 30"\ncheck_timeout_seconds = 1\n')
    answer = here.run("tdd", "T01", "--run", "--json")
    assert answer.code == 7
    assert (answer.json["phase"], answer.json["exit_code"]) == ("green", 124)
    assert answer.json["attempt"] == 2


def test_tdd_run_of_changed_plan_or_paused_loop_runs_nothing(here: Here) -> None:
    start_red(here, "touch was-run")
    write_plan(here, TDD_PLAN + "\nmore\n")
    assert "was changed after loop" in here.refused(4, "tdd", "T01", "--run").err
    write_plan(here, TDD_PLAN)
    here.ok("pause")
    here.refused(4, "tdd", "T01", "--run")
    assert not (here.root / "was-run").exists()


def test_tdd_commits_and_tags_what_passed_before_an_undone_refactoring(
    repository: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")
    start_red(repository, "exit $(cat outcome)")
    with (repository.gsd / "config.toml").open("a") as file:
        file.write("commit = true\n")
    for code, name, text in (
        (1, "test_a.py", "another test"),
        (0, "a.py", "good"),
        (1, "a.py", "bad"),
    ):
        (repository.root / "outcome").write_text(str(code))
        (repository.root / name).write_text(text)
        repository.ok("tdd", "T01", "--run")
    task = task_state(repository)
    assert (task["status"], task["commit"]) == (
        "complete",
        git(repository.root, "rev-parse", "HEAD"),
    )
    tags = git(repository.root, "tag").split()
    assert tags == ["gsd/checkpoint/phase-1/T01", "gsd/checkpoint/phase-1/pre"]
    assert git(repository.root, "show", "HEAD:a.py") == "good"
    changed = git(repository.root, "show", "--format=", "--name-only", "HEAD").split()
    assert changed == ["a.py", "test_a.py"]
    assert git(repository.root, "log", "-1", "--format=%s") == "feat(1-01): Write it."


def test_tdd_undoes_failed_refactoring_and_completes_the_task(cycle: Here) -> None:
    here = cycle
    reach_refactor(here)
    (here.root / "a.py").unlink()
    (here.root / "b.py").write_text("worse\n")
    (here.root / "sub").mkdir()
    (here.root / "sub" / "c.py").write_text("new\n")
    passes(here, 4)
    assert (here.root / "a.py").read_bytes() == b"a\r\n\x00\xff"
    assert (here.root / "a.py").stat().st_mode & 0o777 == 0o755
    assert (here.root / "b.py").read_text() == "b\n"
    assert not (here.root / "sub" / "c.py").exists()
    refactor, complete = (event["data"] for event in here.lines()[-2:])
    assert (refactor["phase"], refactor["exit_code"], refactor["undone"]) == ("refactor", 4, True)
    assert complete["status"] == "complete"
    assert "was undone (a.py, b.py, sub/c.py)" in complete["summary"]
    assert task_state(here)["status"] == "complete"


def test_tdd_undoes_refactoring_to_the_last_passing_run(cycle: Here) -> None:
    here = cycle
    reach_refactor(here)
    (here.root / "b.py").write_text("better\n")
    passes(here, 0)
    (here.root / "b.py").write_text("worse\n")
    passes(here, 1)
    assert (here.root / "b.py").read_text() == "better\n"


def test_tdd_removes_its_private_copies_with_the_end_of_the_task(cycle: Here) -> None:
    reach_refactor(cycle)
    assert [path.stat().st_mode & 0o777 for path in copies().iterdir()] == [0o600]
    passes(cycle, 0)
    report_complete(cycle, "T01")
    assert not copies().exists()


@pytest.mark.parametrize("damage", [b"", b"{", None])
def test_tdd_without_copies_leaves_a_failed_refactoring_running(
    cycle: Here, damage: bytes | None
) -> None:
    reach_refactor(cycle)
    (copy,) = copies().iterdir()
    copy.unlink() if damage is None else copy.write_bytes(damage)
    told = fails(cycle, 1)
    assert (told["phase"], told["exit_code"]) == ("refactor", 1)
    assert task_state(cycle)["status"] == "running"
    assert (cycle.root / "b.py").read_text() == "b\n"

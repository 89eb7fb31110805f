"""tdd: red must fail, green must pass within its attempts, and locked files must not change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import AGENT, Here, without_loop
from tests.support.plan_loops import (
    TDD_PLAN,
    TDD_TASK,
    start_plan,
    start_tdd,
    task_state,
    write_plan,
)
from tests.support.repositories import git

# The exit code of the tests is in the file `outcome`.
COMMAND = "cat outcome; exit $(cat outcome)"
FILES, TESTS = ["a.py", "b.py", "sub/c.py"], ["test_a.py"]


@pytest.fixture
def cycle(here: Here) -> Here:
    return start_tdd(here, COMMAND)


def run(here: Here, outcome: int, exit_code: int = 0, name: str = "T01") -> Any:
    """Run the tests with this outcome; return the JSON answer of the command."""
    (here.root / "outcome").write_text(str(outcome))
    answer = here.run("tdd", name, "--run", "--json")
    assert answer.code == exit_code, answer
    return answer.json


def reach_refactor(here: Here) -> None:
    here.ok("tdd", "T01")
    (here.root / "test_a.py").write_text("test\n")
    run(here, 1)
    (here.root / "a.py").write_bytes(b"a\r\n\x00\xff")
    (here.root / "a.py").chmod(0o755)
    (here.root / "b.py").write_text("b\n")
    run(here, 0)


def copies() -> Path:
    """Return the directory with the copies that undo a refactoring."""
    return Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm" / "tdd"


def test_tdd_leads_from_red_to_green_to_refactor_and_prints_contract_members(cycle: Here) -> None:
    answer = cycle.ok("tdd", "T01", "--json", env=AGENT).json
    assert list(answer.items())[4:] == [
        *(("task", "T01"), ("phase", "red"), ("exit_code", None), ("attempt", 0)),
        *(("max_attempts", 5), ("allowed", TESTS), ("locked", FILES)),
        *(("test_command", COMMAND), ("passed", True)),
    ]
    assert (cycle.last()["by"], cycle.last()["data"]["locked"]) == ("agent", dict.fromkeys(FILES))
    (cycle.root / "test_a.py").write_text("test\n")
    answer = run(cycle, 3)
    assert (answer["phase"], answer["exit_code"], answer["attempt"]) == ("green", 3, 1)
    assert (answer["allowed"], answer["locked"]) == (FILES, TESTS)
    answer = run(cycle, 0)
    assert (answer["phase"], answer["exit_code"], answer["passed"]) == ("refactor", 0, True)
    assert (run(cycle, 0)["phase"], task_state(cycle)["status"]) == ("refactor", "running")


def test_tdd_prints_phase_goal_and_files_and_appends_only_the_first_time(cycle: Here) -> None:
    shown = cycle.ok("tdd", "01").out
    assert "RED: Write a failing test for: It adds." in shown
    assert "May change: test_a.py." in shown
    assert "Locked: a.py, b.py, sub/c.py." in shown
    assert "tdd T01 --run" in without_loop(shown)
    before = cycle.journal.read_bytes()
    assert cycle.ok("tdd", "T01").out == shown
    assert cycle.journal.read_bytes() == before
    (cycle.root / "outcome").write_text("1")
    shown = cycle.ok("tdd", "T01", "--run").out
    assert "GREEN (attempt 1 of 5): Write minimal code" in shown
    assert "May change: a.py, b.py, sub/c.py." in shown


def test_next_step_of_tdd_task_is_report_only_after_green(here: Here) -> None:
    start_plan(
        here, plan=TDD_TASK.format(id="01", tests="true"), settings=f"ci_test = '{COMMAND}'\n"
    )
    (here.root / "test_a.py").write_text("a test\n")
    here.ok("tdd", "T01")
    for outcome, phase in ((1, "RED"), (0, "GREEN")):
        step = without_loop(here.status()["next"])
        assert f"it is in {phase}, and its tests decide. Run: " in step
        assert step.endswith(" tdd T01 --run")
        run(here, outcome)
    assert without_loop(here.status()["next"]).endswith(" report T01")


def test_tdd_with_passing_or_missing_tests_stays_red(cycle: Here) -> None:
    for _ in range(7):
        answer = run(cycle, 0, 7)
        assert (answer["phase"], answer["exit_code"], answer["passed"]) == ("red", 0, False)
    (cycle.root / "test_a.py").rename(cycle.root / "test_b.py")
    assert run(cycle, 5, 7)["phase"] == "red"
    assert "test_a.py does not exist" in cycle.run("tdd", "T01", "--run").out
    (cycle.root / "test_b.py").rename(cycle.root / "test_a.py")
    assert run(cycle, 1)["phase"] == "green"
    assert task_state(cycle)["retries"] == 0


def test_tdd_fails_the_task_after_the_last_attempt_of_green(cycle: Here) -> None:
    run(cycle, 1)
    for attempt in (2, 3, 4, 5):
        answer = run(cycle, 9, 7)
        assert (answer["phase"], answer["exit_code"], answer["attempt"]) == ("green", 9, attempt)
    run(cycle, 9, 7)
    assert cycle.last()["type"] == "failure"
    assert cycle.last()["data"]["error"].startswith("the tests still fail after 5 attempts\n\n9")
    assert (task_state(cycle)["status"], task_state(cycle)["retries"]) == ("failed", 1)
    assert "<tdd_attempts>5</tdd_attempts>" in cycle.ok("next", "T01").out


@pytest.mark.parametrize(
    ("tests", "first"), [("a test\n", ("green", 1)), ("another test\n", ("red", 0))]
)
def test_tdd_of_failed_task_begins_at_green_with_the_same_tests(
    cycle: Here, tests: str, first: tuple[str, int]
) -> None:
    run(cycle, 1)
    for _ in range(5):
        run(cycle, 1, 7)
    (cycle.root / "test_a.py").write_text(tests)
    answer = cycle.ok("tdd", "T01", "--json").json
    assert (answer["phase"], answer["attempt"]) == first
    if first[0] == "red":
        assert run(cycle, 1)["attempt"] == 1
    (cycle.root / "a.py").write_text("another way\n")
    assert run(cycle, 0)["phase"] == "refactor"


def test_tdd_counts_attempts_and_retries_apart_and_pauses_after_both(here: Here) -> None:
    start_tdd(here, COMMAND, "tdd_max_attempts = 2\nexecute_max_retries = 1\n")
    run(here, 1)
    counts = []
    for outcome in (3, 4, 5):
        run(here, outcome, 7)
        counts.append((task_state(here)["attempts"], task_state(here)["retries"]))
    assert counts == [(2, 0), (2, 1), (2, 1)]
    (here.root / "outcome").write_text("6")
    shown = here.run("tdd", "T01", "--run").out
    assert here.status()["pause_code"] == "retries"
    assert "## Task T01 Failed" in shown
    for error in ("4", "6"):
        assert f"the tests still fail after 2 attempts\n\n{error}" in shown
    assert "is paused" in here.refused(4, "tdd", "T01").err


@pytest.mark.parametrize(
    ("phase", "locked", "change"),
    [
        ("RED", "b.py", Path.unlink),
        ("RED", "sub/c.py", lambda path: path.write_text("too early\n")),
        ("GREEN", "test_a.py", lambda path: path.write_text("after\n")),
        ("REFACTOR", "test_a.py", lambda path: path.write_text("after\n")),
    ],
)
def test_tdd_with_changed_created_or_deleted_locked_file_fails_the_task(
    cycle: Here, phase: str, locked: str, change: Callable[[Path], object]
) -> None:
    (cycle.root / "b.py").write_text("before\n")
    (cycle.root / "sub").mkdir()
    cycle.ok("tdd", "T01")
    for outcome in {"RED": (), "GREEN": (1,), "REFACTOR": (1, 0)}[phase]:
        run(cycle, outcome)
    change(cycle.root / locked)
    answer = cycle.run("tdd", "T01", "--run", "--json")
    assert answer.code == 7
    problem = f"locked files were changed in {phase}: {locked}"
    assert answer.json["error"] == f"task T01 failed: {problem}"
    assert cycle.last()["data"]["error"].startswith(problem)
    assert cycle.last()["data"]["class"] == "logic"
    assert task_state(cycle)["retries"] == 1


def test_tdd_with_changed_locked_file_and_no_retries_left_names_the_remedy(here: Here) -> None:
    (here.root / "b.py").write_text("before\n")
    settings = f"ci_test = '{COMMAND}'\nexecute_max_retries = 0\n"
    start_plan(here, plan=TDD_PLAN, settings=settings)
    loop = here.ok("tdd", "T01", "--json").json["loop"]
    (here.root / "b.py").write_text("after\n")
    answer = here.run("tdd", "T01", "--run")
    assert answer.code == 7
    assert "locked files were changed in RED: b.py" in answer.err
    assert f"; loop {loop} is now paused (retries): " in answer.err
    assert f"Undo the changes, then run: gsd-fsm resume --loop {loop} --add-retries 1" in answer.err


def test_tdd_with_existing_tests_begins_at_green(cycle: Here) -> None:
    for attempt in (1, 2, 3, 4, 5, 1):
        answer = cycle.ok("tdd", "T02", "--json").json
        assert (answer["phase"], answer["attempt"], answer["locked"]) == ("green", attempt, TESTS)
        run(cycle, 1, 7, "T02")


def test_tdd_of_task_without_cycle_is_refused(here: Here) -> None:
    later = TDD_TASK.format(id="04", tests="true").replace('wave="1"', 'wave="2"')
    start_plan(here, plan=TDD_PLAN + later)
    assert here.ok("tdd", "T02", "--json").json["test_command"] == "pytest"
    assert "task T03 is not a TDD task" in here.refused(4, "tdd", "T03").err
    assert "the plan has no task T9" in here.refused(2, "tdd", "T9").err
    assert "wave" in here.refused(4, "tdd", "T04").err
    here.ok("task", "T01", "skipped")
    assert "task T01 is skipped" in here.refused(4, "tdd", "T01", "--run").err
    here.ok("cancel")
    here.ok("start", "execute", "--task", "T1", "--mode", "yolo")
    assert "does not execute a plan" in here.refused(2, "tdd", "T1").err


def test_tdd_run_with_json_prints_test_output_on_stderr(here: Here) -> None:
    start_tdd(here, "echo 2 failed; exit 1")
    answer = here.ok("tdd", "T01", "--run", "--json")
    assert answer.json["exit_code"] == 1
    assert "2 failed" in answer.err
    assert "2 failed" in here.run("tdd", "T01", "--run").out


def test_tdd_run_with_missing_command_records_nothing(here: Here) -> None:
    (here.root / "plan.txt").write_text("not a program")
    start_tdd(here, "./plan.txt").ok("tdd", "T01")
    for command in ("no-such-command-anywhere", "./plan.txt"):
        here.configure(ci_test=command)
        here.ok("accept", "tdd")
        answer = here.refused(7, "tdd", "T01", "--run")
        assert f"the test command could not be run: {command}" in answer.err
    assert "ci_test" in answer.err


def test_tdd_run_that_times_out_does_not_pass_red_and_is_an_attempt_of_green(here: Here) -> None:
    start_tdd(here, "sleep 30")
    answer = here.run("tdd", "T01", "--run", "--timeout", "1", "--json")
    assert answer.code == 7
    assert (answer.json["phase"], answer.json["exit_code"]) == ("red", 124)
    here.configure(ci_test="false")
    here.ok("accept", "tdd")
    here.ok("tdd", "T01", "--run")
    here.configure(ci_test="sleep 30", check_timeout_seconds=1)
    here.ok("accept", "tdd")
    answer = here.run("tdd", "T01", "--run", "--json")
    assert answer.code == 7
    assert (answer.json["phase"], answer.json["exit_code"]) == ("green", 124)
    assert answer.json["attempt"] == 2


def test_tdd_run_of_changed_plan_or_paused_loop_runs_nothing(here: Here) -> None:
    start_tdd(here, "touch was-run").ok("tdd", "T01")
    write_plan(here, TDD_PLAN + "\nmore\n")
    assert "was changed after loop" in here.refused(4, "tdd", "T01", "--run").err
    write_plan(here, TDD_PLAN)
    here.ok("pause")
    here.refused(4, "tdd", "T01", "--run")
    assert not (here.root / "was-run").exists()


def test_tdd_commits_and_tags_what_passed_before_an_undone_refactoring(repository: Here) -> None:
    root = start_tdd(repository, COMMAND).root
    git(root, "config", "user.name", "T")
    git(root, "config", "user.email", "t@example.org")
    repository.configure(ci_test=COMMAND, commit=True)
    for outcome, name, text in ((1, "test_a.py", "new"), (0, "a.py", "good"), (1, "a.py", "bad")):
        (root / name).write_text(text)
        run(repository, outcome)
    task = task_state(repository)
    assert (task["status"], task["commit"]) == ("complete", git(root, "rev-parse", "HEAD"))
    tags = ["gsd/checkpoint/phase-1/T01", "gsd/checkpoint/phase-1/pre"]
    assert git(root, "tag").split() == tags
    assert git(root, "show", "HEAD:a.py") == "good"
    shown = git(root, "show", "--format=%s", "--name-only", "HEAD")
    assert shown == "feat(1-01): Write it.\n\na.py\ntest_a.py"


def test_tdd_undoes_failed_refactoring_and_completes_the_task(cycle: Here) -> None:
    reach_refactor(cycle)
    (cycle.root / "a.py").unlink()
    (cycle.root / "b.py").write_text("worse\n")
    (cycle.root / "sub").mkdir()
    (cycle.root / "sub" / "c.py").write_text("new\n")
    run(cycle, 4)
    assert (cycle.root / "a.py").read_bytes() == b"a\r\n\x00\xff"
    assert (cycle.root / "a.py").stat().st_mode & 0o777 == 0o755
    assert (cycle.root / "b.py").read_text() == "b\n"
    assert not (cycle.root / "sub" / "c.py").exists()
    refactor, said, complete = (event["data"] for event in cycle.lines()[-3:])
    assert (refactor["phase"], refactor["exit_code"], refactor["undone"]) == ("refactor", 0, True)
    assert "was undone (a.py, b.py, sub/c.py)" in said["summary"]
    assert complete["status"] == task_state(cycle)["status"] == "complete"
    assert complete["proven"] is True


def test_tdd_keeps_private_copies_of_the_last_passing_run_until_the_task_ends(cycle: Here) -> None:
    reach_refactor(cycle)
    assert [path.stat().st_mode & 0o777 for path in copies().iterdir()] == [0o600]
    (cycle.root / "b.py").write_text("better\n")
    run(cycle, 0)
    (cycle.root / "b.py").write_text("worse\n")
    run(cycle, 1)
    assert (cycle.root / "b.py").read_text() == "better\n"
    assert not copies().exists()


@pytest.mark.parametrize("damage", [b"{", None])
def test_tdd_without_copies_leaves_refactoring_running(cycle: Here, damage: bytes | None) -> None:
    reach_refactor(cycle)
    (copy,) = copies().iterdir()
    copy.unlink() if damage is None else copy.write_bytes(damage)
    answer = run(cycle, 1, 7)
    assert (answer["phase"], answer["exit_code"]) == ("refactor", 1)
    assert task_state(cycle)["status"] == "running"
    assert (cycle.root / "b.py").read_text() == "b\n"

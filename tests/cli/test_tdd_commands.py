"""The test command of `tdd`: which one is run, and what becomes of one that does not end as it should."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.cli.test_planned import YOLO, write_plan
from tests.cli.test_tdd import PLAN, state
from tests.support.command_line import Here
from tests.support.repositories import git


def begun(here: Here, command: str | None) -> Here:
    write_plan(here, PLAN)
    (here.root / "test_a.py").write_text("a test\n")
    if command is not None:
        (here.gsd / "config.toml").write_text(f"ci_test = '{command}'\n")
    here.ok(*YOLO)
    here.ok("tdd", "T01")
    return here


def test_the_command_is_the_setting_else_what_is_usual(here: Here) -> None:
    begun(here, None)
    assert here.ok("tdd", "T01", "--json").json["test_command"] == "pytest"
    (here.root / "package.json").write_text("{}")
    assert here.ok("tdd", "T01", "--json").json["test_command"] == "npm test"
    (here.gsd / "config.toml").write_text('ci_test = "make test"\n')
    assert here.ok("tdd", "T01", "--json").json["test_command"] == "make test"


def test_the_output_can_be_watched_and_the_object_stays_alone(here: Here) -> None:
    begun(here, "echo 2 failed; exit 1")
    answer = here.ok("tdd", "T01", "--run", "--json")
    assert answer.json["exit_code"] == 1
    assert "2 failed" in answer.err
    assert "2 failed" in here.run("tdd", "T01", "--run").out


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "./plan.txt"])
def test_a_command_that_cannot_be_run_records_nothing(here: Here, command: str) -> None:
    (here.root / "plan.txt").write_text("not a program")
    begun(here, command)
    answer = here.refused(7, "tdd", "T01", "--run")
    assert f"the test command could not be run: {command}" in answer.err
    assert "ci_test" in answer.err


def test_a_run_that_does_not_end_is_no_failing_test(here: Here) -> None:
    begun(here, "sleep 30")
    answer = here.run("tdd", "T01", "--run", "--timeout", "1", "--json")
    assert answer.code == 7
    assert (answer.json["phase"], answer.json["exit_code"]) == ("red", 124)


def test_in_green_a_run_that_does_not_end_is_an_attempt(here: Here) -> None:
    begun(here, "false")
    here.ok("tdd", "T01", "--run")
    (here.gsd / "config.toml").write_text('ci_test = "sleep 30"\ncheck_timeout_seconds = 1\n')
    answer = here.run("tdd", "T01", "--run", "--json")
    assert answer.code == 7
    assert (answer.json["phase"], answer.json["exit_code"]) == ("green", 124)
    assert answer.json["attempt"] == 2


def test_a_test_that_is_killed_tells_the_signal(here: Here) -> None:
    begun(here, "kill -9 $$")
    assert here.ok("tdd", "T01", "--run", "--json").json["exit_code"] == 137


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_records_nothing(here: Here, number: int, code: int) -> None:
    begun(here, "echo begun; exec sleep 60")
    before = here.journal.read_bytes()
    command = [sys.executable, "-m", "gsd_fsm", "tdd", "T01", "--run"]
    with subprocess.Popen(command, cwd=here.root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while process.stdout.readline() != b"begun\n":
            pass
        process.send_signal(number)
        assert process.wait(30) == code
    assert here.journal.read_bytes() == before
    assert state(here)["phase"] == "red"


def test_a_paused_loop_runs_no_tests(here: Here) -> None:
    begun(here, "touch was-run")
    here.ok("pause")
    here.refused(4, "tdd", "T01", "--run")
    assert not (here.root / "was-run").exists()


def test_a_changed_plan_runs_no_tests(here: Here) -> None:
    begun(here, "touch was-run")
    write_plan(here, PLAN + "\nmore\n")
    assert "was changed after loop" in here.refused(4, "tdd", "T01", "--run").err
    assert not (here.root / "was-run").exists()


def test_an_undone_refactoring_sets_the_checkpoint_of_its_task(repository: Here) -> None:
    begun(repository, "exit $(cat outcome)")
    for code in (1, 0, 1):
        (repository.root / "outcome").write_text(str(code))
        repository.ok("tdd", "T01", "--run")
    assert state(repository)["status"] == "complete"
    tags = git(repository.root, "tag").split()
    assert tags == ["gsd/checkpoint/phase-1/T01", "gsd/checkpoint/phase-1/pre"]


def test_an_undone_refactoring_commits_what_had_passed(
    repository: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")
    begun(repository, "exit $(cat outcome)")
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
    assert state(repository)["commit"] == git(repository.root, "rev-parse", "HEAD")
    assert git(repository.root, "show", "HEAD:a.py") == "good"
    changed = git(repository.root, "show", "--format=", "--name-only", "HEAD").split()
    assert changed == ["a.py", "test_a.py"]
    assert git(repository.root, "log", "-1", "--format=%s") == "feat(1-01): Write it."

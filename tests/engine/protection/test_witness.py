"""What evidence tells of the run: tests, variables, programs; and what the loop makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import Here, without_loop
from tests.support.events import write

ALL, FEWER = "echo '12 passed in 1.00s'\n", "echo '3 passed in 1.00s'\n"
SKIPPED, NONE = "echo '12 skipped in 1.00s'\n", "echo 'no tests ran in 0.01s'\n"


@pytest.fixture
def counted(repository: Here) -> Here:
    """Return a repository in which `pytest` prints a number of tests."""
    repository.patch.setenv("PATH", f"{repository.root.parent / 'bin'}:{os.environ['PATH']}")
    print_tests(repository, ALL)
    return repository


def print_tests(here: Here, text: str) -> None:
    write(here.root.parent / "bin" / "pytest", f"#!/bin/sh\n{text}").chmod(0o755)


def start(here: Here, *more: str) -> None:
    here.start("goal", "g", "--check", "t=pytest -q", *more)
    here.ok("check")


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        (FEWER, "fewer tests ran than before: 3, not 12"),
        (SKIPPED, "all 12 tests were skipped"),
        (NONE, "no tests ran"),
    ],
)
def test_doubtful_tests_are_a_warning_in_answer_end_line_and_proof(
    counted: Here, text: str, doubt: str
) -> None:
    start(counted)
    print_tests(counted, text)
    told = counted.ok("check").out
    assert f"Doubtful: t: {doubt}" in told
    assert f"Doubtful: t: {doubt}" in counted.ok("complete").out
    assert f"doubtful: {doubt}" in counted.ok("proof").out


def test_doubts_end_with_the_next_result_without_any(counted: Here) -> None:
    start(counted)
    print_tests(counted, NONE)
    counted.ok("check")
    print_tests(counted, ALL)
    assert "Doubtful" not in counted.ok("check").out
    assert "Doubtful" not in counted.ok("complete").out


@pytest.mark.parametrize("text", [FEWER, SKIPPED, NONE])
def test_strict_tests_make_doubtful_tests_a_failed_check(counted: Here, text: str) -> None:
    start(counted, "--strict-tests")
    print_tests(counted, text)
    failed = counted.run("check")
    assert (failed.code, "check failed: t" in failed.err) == (7, True)
    assert counted.status()["criteria"][0]["met"] is False
    assert counted.run("complete").code == 4
    print_tests(counted, ALL)
    counted.ok("check")
    counted.ok("complete")


def test_evidence_names_program_and_variables_that_differ(counted: Here) -> None:
    start(counted)
    print_tests(counted, ALL + "# another one\n")
    counted.ok("check", env={"PYTEST_ADDOPTS": "-k a", "MAKEFLAGS": "-n", "COLUMNS": "80"})
    before, after = (it["data"]["evidence"] for it in counted.lines() if "evidence" in it["data"])
    assert "variables" not in before
    assert after["variables"] == ["MAKEFLAGS", "PYTEST_ADDOPTS"]
    assert before["programs"][0]["path"] == after["programs"][0]["path"]
    assert before["programs"][0]["digest"] != after["programs"][0]["digest"]
    shown = counted.ok("proof").out
    assert "variables that differ from the start: MAKEFLAGS, PYTEST_ADDOPTS" in shown


def test_strict_env_runs_checks_with_the_variables_of_the_start(counted: Here) -> None:
    counted.configure(strict_env=True)
    check = 't=test -z "$PYTEST_ADDOPTS" && test "$LANG" = C && env | grep -q ITOR=vi'
    counted.start("goal", "g", "--check", check, env={"LANG": "C"})
    env = {"PYTEST_ADDOPTS": "-k a", "LANG": "de", "EDITOR": "vi"}
    counted.ok("check", env=env)
    assert "variables" not in counted.last()["data"]["evidence"]


def test_strict_env_without_its_values_is_refused(counted: Here) -> None:
    counted.configure(strict_env=True)
    counted.start("goal", "g", "--check", "t=true")
    for path in Path(os.environ["XDG_STATE_HOME"]).rglob("originals/*/lp-*/*"):
        path.unlink()
    told = counted.refused(7, "check").err
    assert "strict_env" in told
    assert "gsd-fsm start --fresh" in without_loop(told)

"""`tdd`: red must fail, green must pass, within their attempts, and locked files stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.test_planned import YOLO, done, write_plan
from tests.conftest import Answer
from tests.support.command_line import AGENT, Here

TASK = """<task id="{id}" wave="1">
  <files><file>a.py</file><file>b.py</file><file>sub/c.py</file></files>
  <test_files><file>test_a.py</file></test_files>
  <test_required>{tests}</test_required>
  <action>Write it.</action>
  <verify><check type="file">a.py exists</check></verify>
  <done>It adds.</done>
</task>
"""
PLAN = (
    "---\nphase: 1\ntitle: Tests first\n---\n"
    + TASK.format(id="01", tests="true")
    + TASK.format(id="02", tests="existing")
    + TASK.format(id="03", tests="false")
)
# The tests say what the file next to them says.
SETTINGS = 'ci_test = "cat outcome; exit $(cat outcome)"\n'
FILES, TESTS = ["a.py", "b.py", "sub/c.py"], ["test_a.py"]


@pytest.fixture
def tests_first(here: Here) -> Here:
    write_plan(here, PLAN)
    (here.gsd / "config.toml").write_text(SETTINGS)
    (here.root / "test_a.py").write_text("a test\n")
    here.ok(*YOLO)
    return here


def outcome(here: Here, code: int) -> None:
    (here.root / "outcome").write_text(str(code))


def run(here: Here, code: int, name: str = "T01") -> Answer:
    """Run the tests, which leave with this code."""
    outcome(here, code)
    return here.run("tdd", name, "--run", "--json")


def passes(here: Here, code: int, name: str = "T01") -> Any:
    answer = run(here, code, name)
    assert answer.code == 0, answer
    return answer.json


def fails(here: Here, code: int, name: str = "T01") -> Any:
    answer = run(here, code, name)
    assert answer.code == 7, answer
    return answer.json


def state(here: Here, name: str = "T01") -> dict[str, Any]:
    return next(task for task in here.status()["tasks"] if task["id"] == name)


def test_the_whole_cycle_and_what_it_tells(tests_first: Here) -> None:
    here = tests_first
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
    assert (told["phase"], state(here)["status"]) == ("refactor", "running")
    done(here, "T01")
    assert state(here)["status"] == "complete"


def test_the_words_name_the_phase_its_goal_and_its_files(tests_first: Here) -> None:
    told = tests_first.ok("tdd", "01").out
    assert "RED: Write a failing test for: It adds." in told
    assert "May change: test_a.py." in told
    assert "Locked: a.py, b.py, sub/c.py." in told
    assert "tdd T01 --run" in told
    outcome(tests_first, 1)
    told = tests_first.ok("tdd", "T01", "--run").out
    assert "GREEN (attempt 1 of 5): Write minimal code" in told
    assert "May change: a.py, b.py, sub/c.py." in told


def test_asking_again_appends_nothing(tests_first: Here) -> None:
    tests_first.ok("tdd", "T01")
    before = tests_first.journal.read_bytes()
    tests_first.ok("tdd", "T01")
    assert tests_first.journal.read_bytes() == before


def test_red_that_passes_stays_red(tests_first: Here) -> None:
    for _ in range(7):
        told = fails(tests_first, 0)
        assert (told["phase"], told["exit_code"], told["passed"]) == ("red", 0, False)
    assert state(tests_first)["retries"] == 0
    assert passes(tests_first, 1)["phase"] == "green"


def test_red_without_a_test_stays_red(tests_first: Here) -> None:
    (tests_first.root / "test_a.py").unlink()
    told = fails(tests_first, 5)
    assert (told["phase"], told["exit_code"], told["passed"]) == ("red", 5, False)
    assert "test_a.py does not exist" in tests_first.run("tdd", "T01", "--run").out


def test_green_has_its_attempts_and_then_the_task_has_failed(tests_first: Here) -> None:
    here = tests_first
    passes(here, 1)
    for attempt in (2, 3, 4, 5):
        told = fails(here, 9)
        assert (told["phase"], told["exit_code"], told["attempt"]) == ("green", 9, attempt)
    told = fails(here, 9)
    assert here.last()["type"] == "failure"
    assert here.last()["data"]["error"].startswith("the tests still fail after 5 attempts\n\n9")
    assert (state(here)["status"], state(here)["retries"]) == ("failed", 1)
    prompt = here.ok("next", "T01").out
    assert "<tdd_attempts>5</tdd_attempts>" in prompt


def test_a_new_attempt_goes_on_with_tests_that_were_seen_to_fail(tests_first: Here) -> None:
    here = tests_first
    passes(here, 1)
    for _ in range(5):
        fails(here, 1)
    told = here.ok("tdd", "T01", "--json").json
    assert (told["phase"], told["attempt"]) == ("green", 1)
    passes(here, 0)


def test_a_new_attempt_with_other_tests_begins_anew(tests_first: Here) -> None:
    here = tests_first
    passes(here, 1)
    for _ in range(5):
        fails(here, 1)
    (here.root / "test_a.py").write_text("another test\n")
    told = here.ok("tdd", "T01", "--json").json
    assert (told["phase"], told["attempt"]) == ("red", 0)
    assert passes(here, 1)["attempt"] == 1
    (here.root / "a.py").write_text("another way\n")
    passes(here, 0)


def test_tdd_attempts_and_retries_are_counted_apart_until_both_are_used_up(here: Here) -> None:
    write_plan(here, PLAN)
    (here.root / "test_a.py").write_text("a test\n")
    (here.gsd / "config.toml").write_text(SETTINGS + "tdd_max_attempts = 2\n")
    here.ok(*YOLO, "--max-retries", "1")
    passes(here, 1)
    counts = []
    for code in (3, 4, 5):
        fails(here, code)
        counts.append((state(here)["attempts"], state(here)["retries"]))
    assert counts == [(2, 0), (2, 1), (2, 1)]
    outcome(here, 6)
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
def test_a_locked_file_that_was_touched_fails_the_task(
    tests_first: Here, phase: str, locked: str, how: str
) -> None:
    here = tests_first
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
    assert state(here)["retries"] == 1


def test_a_locked_file_that_was_created_fails_the_task(tests_first: Here) -> None:
    tests_first.ok("tdd", "T01")
    (tests_first.root / "sub").mkdir()
    (tests_first.root / "sub" / "c.py").write_text("too early\n")
    assert "RED: sub/c.py" in run(tests_first, 1).err


def test_tests_that_exist_begin_at_green(tests_first: Here) -> None:
    told = tests_first.ok("tdd", "T02", "--json").json
    assert (told["phase"], told["attempt"], told["locked"]) == ("green", 1, TESTS)
    for attempt in (2, 3, 4, 5):
        assert fails(tests_first, 1, "T02")["attempt"] == attempt
    fails(tests_first, 1, "T02")
    assert state(tests_first, "T02")["status"] == "failed"
    told = tests_first.ok("tdd", "T02", "--json").json
    assert (told["phase"], told["attempt"]) == ("green", 1)


def test_what_has_no_cycle_is_refused(tests_first: Here) -> None:
    assert "task T03 needs no tests" in tests_first.refused(4, "tdd", "T03").err
    assert "the plan has no task T9" in tests_first.refused(2, "tdd", "T9").err
    done(tests_first, "T01")
    assert "task T01 is complete" in tests_first.refused(4, "tdd", "T01", "--run").err
    tests_first.ok("cancel")
    tests_first.ok("start", "execute", "--task", "T1", "--mode", "yolo")
    assert "does not execute a plan" in tests_first.refused(2, "tdd", "T1").err


def test_the_cycle_of_a_later_wave_does_not_begin_before_its_time(here: Here) -> None:
    write_plan(here, PLAN + TASK.format(id="04", tests="true").replace('wave="1"', 'wave="2"'))
    here.ok(*YOLO)
    here.refused(4, "tdd", "T04")

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.views.loop_json import state
from tests.support.foreign_files import STATE, loop_of, read, refused


def test_state_is_imported_with_all_members_or_their_defaults() -> None:
    old = read(STATE)
    loop = loop_of(old)
    assert (old.format, loop.kind, loop.status, old.notes) == ("state", "goal", "running", [])
    assert (state(loop), list(loop.tasks)) == (STATE, ["S1", "S2", "S3"])
    assert all(task.step for task in loop.tasks.values())
    met = {**STATE, "criteriaStatus": dict.fromkeys(STATE["criteria"], True), "exit_signal": True}
    assert state(loop_of(read(met)))["exit_signal"] is True
    loop = loop_of(read({"spec": "do it", "criteria": [], "status": "in_progress"}))
    assert (loop.goal, loop.iteration, loop.stuck, loop.tasks) == ("do it", 0, 0, {})


def test_state_steps_may_be_equal_or_remain_in_another_order() -> None:
    same = {"steps": ["a", "b", "a"], "completedSteps": ["a"], "remainingSteps": ["b", "a"]}
    loop = loop_of(read({**STATE, **same}))
    assert [task.status for task in loop.tasks.values()] == ["complete", "pending", "pending"]
    old = read({**STATE, "remainingSteps": ["step3", "step2"]})
    assert old.notes == ["remainingSteps: imported in the order of steps."]


def test_state_of_an_ended_loop_is_rejected_before_other_problems() -> None:
    for status in ("completed", "cancelled"):
        ended = f"FILE: nothing to import: the loop is {status}"
        assert refused({**STATE, "status": status}) == ended
        found = refused({**STATE, "status": status, "iteration": -1})
        assert found.startswith(f"{ended}\nFILE: iter")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({name: None}, f"{name} is missing")
          for name in ("status", "spec", "criteria", "criteriaStatus")),
        ({"status": "running"}, "status must be one of in_progress, completed, cancelled"),
        ({"spec": " \n"}, "spec is empty"),
        ({"spec": ["do"]}, "spec must be a text, not a list"),
        ({"spec": "x" * 30_000}, "spec is longer than 24000 bytes"),
        ({"criteria": "tests pass"}, "criteria must be a list of strings, not 'tests pass'"),
        ({"criteria": ["tests pass", 3]}, "a list of strings, not a list with 3"),
        ({"criteria": [*STATE["criteria"], "new"]}, "criteriaStatus has no 'new'"),
        ({"criteria": STATE["criteria"][:2]},
         "criteriaStatus has 'no type errors', which is not in criteria"),
        ({"criteria": [*STATE["criteria"], "lint clean"]}, "duplicate criterion: 'lint clean'"),
        ({"criteria": ["a", "a "], "criteriaStatus": {"a": True, "a ": True}},
         "duplicate criterion: 'a'"),
        ({"criteriaStatus": []}, "criteriaStatus must be an object, not a list"),
        ({"criteriaStatus": {**STATE["criteriaStatus"], "lint clean": 1}},
         "criteriaStatus.lint clean must be true or false, not 1"),
        ({"exit_signal": True}, "exit_signal is true, but a criterion is not met"),
        ({"exit_signal": "false"}, "exit_signal must be true or false, not 'false'"),
        ({"completedSteps": ["step9"]}, "completedSteps has 'step9', which is not in steps"),
        ({"completedSteps": ["step1"] * 2}, "completedSteps has 'step1', which is not in steps"),
        ({"remainingSteps": ["step2"]}, "'step3' is not in remainingSteps nor in completedSteps"),
        ({"remainingSteps": STATE["steps"]},
         "remainingSteps has 'step1', which is not a pending step"),
        ({"steps": {"a": 1}}, "steps must be a list of strings, not an object"),
        *(({"iteration": value}, f"iteration must be a whole number from 0 to 1000000000, not {shown}")
          for value, shown in ((-1, "-1"), (2.5, "2.5"), (True, "true"), (10**30, "1e+30"))),
        ({"circuitBreaker": 5}, "circuitBreaker must be an object, not 5"),
        ({"circuitBreaker": {"stuckCount": "2"}}, "circuitBreaker.stuckCount must be a whole"),
        ({"circuitBreaker": {"lastUnmet": 7}}, "circuitBreaker.lastUnmet must be a text"),
    ],
)  # fmt: skip
def test_state_problem_is_reported_with_its_member(change: dict[str, Any], message: str) -> None:
    found = refused({**STATE, **change})
    assert found.startswith("FILE: ")
    assert message in found


def test_state_problems_are_reported_together_up_to_a_limit() -> None:
    found = refused({**STATE, "iteration": -1, "exit_signal": 0, "completedSteps": ["x"]})
    places = [line.split()[1] for line in found.splitlines()]
    assert places == ["completedSteps", "'step1'", "exit_signal", "iteration"]
    many = [f"c{number}" for number in range(100)]
    lines = refused({**STATE, "criteria": many, "criteriaStatus": {}}).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 80 more")


def test_state_notes_name_unknown_members_that_are_not_null() -> None:
    breaker = {**STATE["circuitBreaker"], "opened": "yesterday"}
    old = read({**STATE, "mood": "good", "note": None, "circuitBreaker": breaker})
    assert old.notes == ["Not imported: circuitBreaker.opened, mood."]
    many = {f"m{number}": number for number in range(30)}
    assert read({**STATE, **many}).notes[0].endswith("m19 and 10 more.")


def test_state_with_a_secret_is_imported_without_it() -> None:
    token = "ghp_" + "A1b2C3d4E5" * 4
    old = read({**STATE, "spec": f"use {token} to push"})
    assert token not in old.start["goal"]
    assert old.notes == ["spec: a possible secret was removed."]

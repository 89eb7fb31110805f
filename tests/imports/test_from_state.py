from __future__ import annotations

from typing import Any

import pytest

from tests.support.foreign_files import STATE, loop_of, read, refused


def test_everything_that_the_file_counts_is_carried() -> None:
    old = read(STATE)
    loop = loop_of(old)
    assert (old.format, loop.kind, loop.status, loop.goal) == (
        "state",
        "goal",
        "running",
        "original user request verbatim",
    )
    assert {name: item.met for name, item in loop.criteria.items()} == STATE["criteriaStatus"]
    steps = [(task.id, task.title, task.status) for task in loop.tasks.values()]
    assert steps == [
        ("S1", "step1", "complete"),
        ("S2", "step2", "pending"),
        ("S3", "step3", "pending"),
    ]
    assert all(task.step for task in loop.tasks.values())
    assert (loop.iteration, loop.stuck, loop.last_unmet) == (2, 1, "tests pass")
    assert not loop.exit_signal
    assert old.notes == []


def test_an_exit_signal_is_carried_where_every_criterion_is_met() -> None:
    met = dict.fromkeys(STATE["criteria"], True)
    assert loop_of(read({**STATE, "criteriaStatus": met, "exit_signal": True})).exit_signal


def test_what_need_not_be_said_has_its_first_value() -> None:
    short = {"spec": "do it", "criteria": [], "status": "in_progress"}
    loop = loop_of(read(short))
    assert (loop.goal, loop.iteration, loop.stuck, loop.tasks) == ("do it", 0, 0, {})


def test_of_equal_steps_as_many_are_complete_as_the_file_says() -> None:
    same = {"steps": ["a", "b", "a"], "completedSteps": ["a"], "remainingSteps": ["b", "a"]}
    loop = loop_of(read({**STATE, **same}))
    assert [task.status for task in loop.tasks.values()] == ["complete", "pending", "pending"]


def test_an_order_of_what_is_left_that_cannot_be_kept_is_told() -> None:
    old = read({**STATE, "remainingSteps": ["step3", "step2"]})
    assert [note for note in old.notes if note.startswith("remainingSteps:")]


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_an_ended_loop_has_nothing_to_import_whatever_else_is_wrong(status: str) -> None:
    ended = f"FILE: its loop is {status}: there is nothing to import"
    assert refused({**STATE, "status": status}) == ended
    assert refused({**STATE, "status": status, "iteration": -1}).startswith(f"{ended}\nFILE: iter")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"status": "running"}, "status: it must be one of in_progress, completed, cancelled"),
        ({"status": None}, "status: it is missing"),
        ({"spec": None}, "spec: it is missing"),
        ({"spec": " \n"}, "spec: it is empty"),
        ({"spec": ["do"]}, "spec: it must be a text, not a list"),
        ({"spec": "x" * 30_000}, "spec: it is longer than 24000 bytes"),
        ({"criteria": None}, "criteria: it is missing"),
        ({"criteria": "tests pass"}, "criteria: it must be a list of texts, not 'tests pass'"),
        ({"criteria": 3}, "criteria: it must be a list of texts, not 3"),
        ({"criteria": ["tests pass", 3]}, "a list of texts, not a list with 3"),
        ({"criteria": [*STATE["criteria"], "new"]}, "criteriaStatus: 'new' has no status"),
        ({"criteria": STATE["criteria"][:2]}, "'no type errors' is not among the criteria"),
        ({"criteria": [*STATE["criteria"], "lint clean"]}, "criteria: 'lint clean' is named twice"),
        ({"criteria": ["a", "a "], "criteriaStatus": {"a": True, "a ": True}}, "'a' is named twice"),
        ({"criteriaStatus": None}, "criteriaStatus: it is missing"),
        ({"criteriaStatus": []}, "criteriaStatus: it must be an object, not a list"),
        (
            {"criteriaStatus": {**STATE["criteriaStatus"], "lint clean": 1}},
            "criteriaStatus.lint clean: it must be true or false, not 1",
        ),
        ({"exit_signal": True}, "exit_signal: it is true although a criterion is not met"),
        ({"exit_signal": "false"}, "exit_signal: it must be true or false, not 'false'"),
        ({"completedSteps": ["step9"]}, "completedSteps: 'step9' is not among the steps"),
        ({"completedSteps": ["step1", "step1"]}, "completedSteps: 'step1' is not among the steps"),
        ({"remainingSteps": ["step2"]}, "remainingSteps: 'step3' is neither there nor completed"),
        ({"remainingSteps": STATE["steps"]}, "remainingSteps: 'step1' is completed, or no step"),
        ({"steps": {"a": 1}}, "steps: it must be a list of texts, not an object"),
        ({"iteration": -1}, "iteration: it must be a whole number from 0 to 1000000000, not -1"),
        ({"iteration": 2.5}, "iteration: it must be a whole number"),
        ({"iteration": True}, "iteration: it must be a whole number"),
        ({"iteration": 10**30}, "iteration: it must be a whole number"),
        ({"circuitBreaker": 5}, "circuitBreaker: it must be an object, not 5"),
        ({"circuitBreaker": {"stuckCount": "2"}}, "circuitBreaker.stuckCount: it must be a whole"),
        ({"circuitBreaker": {"lastUnmet": 7}}, "circuitBreaker.lastUnmet: it must be a text"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_member(change: dict[str, Any], told: str) -> None:
    message = refused({**STATE, **change})
    assert message.startswith("FILE: ")
    assert told in message


def test_several_problems_are_told_at_once_but_not_without_end() -> None:
    told = refused({**STATE, "iteration": -1, "exit_signal": 0, "completedSteps": ["x"]})
    assert [line.split(": ")[1] for line in told.splitlines()] == [
        "completedSteps",
        "remainingSteps",
        "iteration",
        "exit_signal",
    ]
    many = [f"c{number}" for number in range(100)]
    lines = refused({**STATE, "criteria": many, "criteriaStatus": {}}).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 80 more")


def test_members_that_are_not_known_are_named_and_null_ones_are_not_missed() -> None:
    breaker = {**STATE["circuitBreaker"], "opened": "yesterday"}
    old = read({**STATE, "mood": "good", "note": None, "circuitBreaker": breaker})
    assert old.notes == ["Not carried: circuitBreaker.opened, mood."]
    many = {f"m{number}": number for number in range(30)}
    assert read({**STATE, **many}).notes[0].endswith("m19 and 10 more.")


def test_a_secret_is_not_carried_and_that_is_told() -> None:
    token = "ghp_" + "A1b2C3d4E5" * 4
    old = read({**STATE, "spec": f"use {token} to push"})
    assert token not in old.start["goal"]
    assert old.notes == ["spec: what looked like a secret is not carried."]

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.foreign_files import PHASE_STATE, read, refused

LOOP: dict[str, Any] = json.loads(PHASE_STATE)["loop"]


def state(loop: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    return {"phase": 1, "task": 2, **members, "loop": {**LOOP, **(loop or {})}}


def test_phase_state_is_read_with_its_position() -> None:
    old = read(PHASE_STATE)
    assert old.position is not None
    assert old.start == {
        "kind": "execute", "phase": 1,
        "carried": {"iteration": 0, "started": "2026-01-19T10:30:00.000Z",
                    "last_error": "Type error in auth.ts"},
    }  # fmt: skip
    background = [(it.number, it.reference, it.status) for it in old.position.background]
    assert background == [(1, "abc123", "running"), (2, "def456", "running")]
    assert old.position.retries == {"T01": 0, "T02": 1}
    assert (old.position.counter, old.position.wave, old.notes) == (0, 2, [])


@pytest.mark.parametrize("counter", [3, "3", "T03"])
def test_counter_alone_is_a_phase_in_progress(counter: Any) -> None:
    old = read({"current_phase": "01", "task": counter, "phases_complete": [2]})
    assert (old.start["kind"], old.start["phase"]) == ("execute", "01")
    assert old.position is not None
    assert old.position.counter == 3


def test_verify_loop_and_pause_are_read_as_in_state_md() -> None:
    more = {"type": "verify", "iteration": 2, "gaps_remaining": 1, "max_iterations": 9,
            "active": False, "paused": True, "pause_reason": "Task 2 failed"}  # fmt: skip
    old = read(state(more))
    assert (old.start["kind"], old.start["carried"]["round"]) == ("verify", 2)
    assert old.limits == {"max_rounds": 9}
    assert [kind for kind, _ in old.later] == ["gap", "pause"]
    assert old.later[-1][1] == {"code": "manual", "reason": "Task 2 failed"}


def test_secrets_in_a_phase_state_are_removed() -> None:
    secret = "ghp_" + "a1B2" * 9
    running = [{"task_id": secret, "task_num": 1, "status": "running"}]
    old = read(state({"last_error": secret, "background_tasks": running}))
    assert secret not in repr((old.start, old.position))


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"phase": 1, "task": 0}, "nothing to import: the loop is neither active nor paused"),
        (state(phases_complete=["01"]), "nothing to import: phase 1 is complete"),
        (state(phases={"complete": [1]}), "nothing to import: phase 1 is complete"),
        (state(phase=2), "loop.phase is 1, but phase is 2"),
        (state(phase=[1]), "phase must be a number or a name, not a list"),
        (state(task=-1), "task must be a whole number from 0 to"),
        (state(task="second"), "task must be a whole number from 0 to 25000, not 'second'"),
        (state({"type": None}), "loop.type is missing"),
        (state({"active": "yes"}), "loop.active must be true or false, not 'yes'"),
        (state({"wave": "2"}), "loop.wave must be a whole number"),
        (state({"task_retries": {"T01": "x"}}), "loop.task_retries.T01 must be a whole number"),
        (state({"background_tasks": {}}), "loop.background_tasks must be a list of objects"),
        (state({"background_tasks": [1]}), "must be a list of objects, not a list with 1"),
        (state({"background_tasks": [{"task_num": 0}]}),
         "task_num must be the number of a task, not 0\nFILE: loop.background_tasks[0].task_id is"),
        (state({"background_tasks": [{"task_id": "a", "task_num": 1, "status": "lost"}]}),
         "loop.background_tasks[0].status must be one of pending, running, "),
    ],
)  # fmt: skip
def test_phase_state_problem_is_reported_with_its_member(document: Any, problem: str) -> None:
    assert problem in refused(document)

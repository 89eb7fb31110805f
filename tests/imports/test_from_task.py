from __future__ import annotations

import json
from typing import Any

import pytest

from gsd_fsm.core.views.loop_json import state
from tests.support.foreign_files import TASK, loop_of, read, refused

WHOLE: dict[str, Any] = json.loads(TASK)


def task(**metadata: Any) -> dict[str, Any]:
    return {**WHOLE, "metadata": {**WHOLE["metadata"], **metadata}}


def test_task_is_imported_with_its_metadata() -> None:
    old = read(TASK)
    loop = loop_of(old)
    assert (old.format, loop.kind, loop.status, loop.shape) == ("task", "goal", "running", "tool")
    assert (loop.goal, loop.iteration, loop.criteria) == ("Full spec with success criteria", 3, {})
    assert (loop.spent_usd, loop.limits.budget_usd, loop.limits.max_iterations) == (4.5, 25, 10)
    assert (loop.last_error, loop.imported.get("last_iteration")) == (None, None)
    shown = state(loop)
    for member in ("completedSteps", "remainingSteps", "iteration"):
        assert shown[member] == WHOLE["metadata"][member]
    times = [f"metadata.{name}: not imported, 'ISO-timestamp' is not a time."
             for name in ("startedAt", "lastCheckpoint")]  # fmt: skip
    *noted, prose, rest = old.notes
    assert noted == times
    assert prose.endswith("To add a check, run: gsd-fsm import FILE --check NAME=CMD")
    assert rest == "Not imported: id, subject."


def test_task_of_the_client_without_description_or_steps_is_imported() -> None:
    times = {"startedAt": "2026-01-19T10:30:00Z", "lastCheckpoint": "2026-01-19T11:00:00+01:00"}
    errors = ["E1: no", {"step": "step3", "message": "E2"}]
    data = {"iteration": 1, "errors": errors, **times}
    client = {"activeForm": "Working", "blocks": [], "blockedBy": [], "status": "pending"}
    old = read({"id": "1", "subject": "Complete: it", **client, "metadata": data})
    loop = loop_of(old)
    assert (loop.goal, loop.tasks, loop.shape) == ("Complete: it", {}, None)
    assert loop.last_error == '{"step":"step3","message":"E2"}'
    assert loop.started == "2026-01-19T10:30:00.000Z"
    assert loop.last_iteration == "2026-01-19T10:00:00.000Z"
    assert "metadata.errors: only the last of 2 is imported." in old.notes


def test_secrets_in_a_task_are_removed() -> None:
    secret = "ghp_" + "a1B2" * 9
    old = read({**task(errors=[secret], remainingSteps=[f"use {secret}"]), "description": secret})
    assert secret not in repr((old.start, old.later))
    assert len([note for note in old.notes if "secret was removed" in note]) == 3


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({**WHOLE, "status": "completed"}, "nothing to import: the task is completed"),
        ({**WHOLE, "status": "done"}, "status must be one of in_progress, pending, "),
        ({**WHOLE, "metadata": None}, "metadata is missing"),
        ({**WHOLE, "metadata": []}, "metadata must be an object, not a list"),
        ({**WHOLE, "description": "", "subject": ""}, "subject is empty"),
        (task(shape="round"), "metadata.shape must be one of tool, "),
        (task(cost=-1), "metadata.cost must be a number"),
        (task(budget="25"), "metadata.budget must be a number"),
        (task(iteration=1.5), "metadata.iteration must be a whole number"),
        (task(maxIterations=-1), "metadata.maxIterations must be a whole number"),
        (task(completedSteps=[1]), "metadata.completedSteps must be a list of strings"),
        (task(remainingSteps=[""]), "metadata.remainingSteps is empty"),
        (task(errors="none"), "metadata.errors must be a list, not 'none'"),
    ],
)  # fmt: skip
def test_task_problem_is_reported_with_its_member(document: dict[str, Any], problem: str) -> None:
    assert problem in refused(document)

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.engine.tasks import iterate, record_failure, record_task
from tests.support.events import EngineProject


@pytest.fixture
def project(tmp_path: Path) -> EngineProject:
    return EngineProject(tmp_path)


def test_iterate_begins_an_iteration_and_at_a_limit_pauses_and_is_refused(tmp_path: Path) -> None:
    project = EngineProject(tmp_path, limits={"max_iterations": 1})
    assert iterate(project.context).loop.iteration == 1
    with pytest.raises(Refused, match=r"is now paused \(iterations\)"):
        iterate(project.context)
    assert project.events()[-1]["type"] == "pause"


def test_record_task_returns_the_new_state(project: EngineProject) -> None:
    record_task(project.context, "T1", "running", ref="bg-1")
    change = record_task(project.context, "T1", "complete")
    assert (change.task, change.status) == ("T1", "complete")
    assert change.receipt.loop.tasks["T1"].status == "complete"


def test_invalid_task_title_and_error_are_usage_errors(project: EngineProject) -> None:
    with pytest.raises(UsageError, match="only a pending task"):
        record_task(project.context, "T1", "running", title="Something else")
    with pytest.raises(UsageError, match=r"not a task id: '\.\./T1'"):
        record_task(project.context, "../T1", "running")
    with pytest.raises(UsageError, match="needs an error message"):
        record_failure(project.context, None, " \n")


def test_record_failure_redacts_and_classifies_the_error(project: EngineProject) -> None:
    failure = record_failure(project.context, "T1", "AssertionError: password=hunter2hunter2")
    assert (failure.task, failure.error_class) == ("T1", "logic")
    assert failure.receipt.loop.status == "retrying"
    assert "hunter2" not in str(project.events()[-1])


def test_record_failure_of_the_loop_pauses_at_the_third_same_error(tmp_path: Path) -> None:
    project = EngineProject(tmp_path, "goal", criteria=[{"name": "c"}])
    for _ in range(3):
        failure = record_failure(project.context, None, "AssertionError: same")
    assert failure.receipt.loop.pause_code == "repeated"

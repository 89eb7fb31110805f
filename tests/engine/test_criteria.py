from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.engine.criteria import declare_criterion, give_exit_signal, run_checks
from gsd_fsm.evidence.interruption import Output
from tests.support.events import EngineProject

CRITERIA = [
    {"name": "passes", "check": "echo fine"},
    {"name": "fails", "check": "echo bad; exit 3"},
    {"name": "by hand"},
]


@pytest.fixture
def project(tmp_path: Path) -> EngineProject:
    return EngineProject(tmp_path, "goal", goal="Be done", criteria=CRITERIA)


def test_run_checks_records_evidence_and_returns_the_failed_ones(project: EngineProject) -> None:
    run = run_checks(project.context)
    assert {name: outcome.exit_code for name, outcome in run.outcomes.items()} == {
        "passes": 0, "fails": 3,
    }  # fmt: skip
    assert run.failed == ["fails"]
    assert [event["data"]["met"] for event in project.events()[-2:]] == [True, False]
    assert run.receipt.loop.criteria["passes"].met


def test_run_checks_shows_commands_and_their_output(project: EngineProject) -> None:
    output = RecordedOutput()
    run_checks(project.context, ["passes"], watch=lambda: nullcontext(output))
    assert output.lines[0] == "[1/1] passes: echo fine"
    assert output.lines[1].startswith("  passed in ")
    assert output.shown == b"fine\n"


def test_run_checks_that_the_output_ends_record_nothing(project: EngineProject) -> None:
    before = project.events()
    with pytest.raises(KeyboardInterrupt):
        run_checks(project.context, watch=lambda: nullcontext(Interrupting()))
    assert project.events() == before


def test_run_checks_of_a_criterion_without_a_check_is_a_usage_error(project: EngineProject) -> None:
    with pytest.raises(UsageError, match="no check for: by hand"):
        run_checks(project.context, ["3"])


def test_declare_criterion_accepts_its_number(project: EngineProject) -> None:
    assert declare_criterion(project.context, "3", met=True).loop.criteria["by hand"].met


def test_declare_criterion_with_a_check_is_refused(project: EngineProject) -> None:
    with pytest.raises(Refused):
        declare_criterion(project.context, "passes", met=True)


def test_give_exit_signal_with_an_unmet_criterion_is_refused(project: EngineProject) -> None:
    with pytest.raises(Refused):
        give_exit_signal(project.context, "done")


class RecordedOutput(Output):
    """Keeps what was said and shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown = b""

    def say(self, text: str) -> None:
        self.lines.append(text)

    def show(self, chunk: bytes) -> None:
        self.shown += chunk


class Interrupting(Output):
    """Ends the commands at the first poll."""

    def poll(self) -> None:
        raise KeyboardInterrupt

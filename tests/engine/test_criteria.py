from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.engine.criteria import declare_criterion, give_exit_signal, run_checks
from tests.support.check_commands import watching
from tests.support.events import EngineProject

CRITERIA = [{"name": "passes", "check": "echo fine"},
            {"name": "fails", "check": "echo bad; exit 3"}, {"name": "by hand"}]  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> EngineProject:
    return EngineProject(tmp_path, "goal", goal="Be done", criteria=CRITERIA)


def test_run_checks_shows_and_records_results_and_returns_failed(project: EngineProject) -> None:
    lines: list[str] = []
    shown: list[bytes] = []
    run = run_checks(project.context, watch=watching(say=lines.append, show=shown.append))
    codes = {name: outcome.exit_code for name, outcome in run.outcomes.items()}
    assert (codes, run.failed) == ({"passes": 0, "fails": 3}, ["fails"])
    assert [event["data"]["met"] for event in project.events()[-2:]] == [True, False]
    assert run.receipt.loop.criteria["passes"].met
    assert lines[0] == "[1/2] passes: echo fine"
    assert lines[1].startswith("  passed in ")
    assert b"".join(shown) == b"fine\nbad\n"


def test_run_checks_interrupted_by_the_output_record_nothing(project: EngineProject) -> None:
    before = project.events()
    with pytest.raises(KeyboardInterrupt):
        run_checks(project.context, watch=watching(poll=Mock(side_effect=KeyboardInterrupt)))
    assert project.events() == before


def test_run_checks_of_a_criterion_without_a_check_is_a_usage_error(project: EngineProject) -> None:
    with pytest.raises(UsageError, match="no check for: by hand"):
        run_checks(project.context, ["3"])


def test_declare_criterion_accepts_its_number_unless_it_has_a_check(project: EngineProject) -> None:
    assert declare_criterion(project.context, "3", met=True).loop.criteria["by hand"].met
    with pytest.raises(Refused):
        declare_criterion(project.context, "passes", met=True)
    with pytest.raises(Refused):
        give_exit_signal(project.context, "done")  # criteria are unmet

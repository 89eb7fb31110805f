from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.engine.verify import close_gap, record_verdict, reopen_gap, report_gap
from tests.support.engine_project import EngineProject


@pytest.fixture
def project(tmp_path: Path) -> EngineProject:
    return EngineProject(tmp_path, "verify")


def test_report_gap_gives_next_free_id(project: EngineProject) -> None:
    report_gap(project.context, "named by hand", gap_id="G2")

    assert report_gap(project.context, "named by us").gap == "G3"


def test_report_gap_again_keeps_id_and_reopens(project: EngineProject) -> None:
    first = report_gap(project.context, "empty body", kind="stub", file="a.py")
    close_gap(project.context, first.gap)

    again = report_gap(project.context, "empty body", kind="stub", file="a.py")

    assert (again.gap, again.action) == (first.gap, "reopened")


def test_reopen_gap_at_oscillation_limit_pauses_loop(project: EngineProject) -> None:
    report_gap(project.context, "empty body")
    for _ in range(2):
        close_gap(project.context, "G1")
        change = reopen_gap(project.context, "G1")

    assert (change.receipt.loop.status, project.loop.pause_code) == ("paused", "oscillation")
    assert project.events()[-1]["by"] == "cli"


def test_close_gap_that_is_unknown_is_refused(project: EngineProject) -> None:
    with pytest.raises(Refused, match="no gap G1"):
        close_gap(project.context, "G1")


def test_report_gap_of_unknown_kind_is_a_usage_error(project: EngineProject) -> None:
    with pytest.raises(UsageError, match="not a kind of gap"):
        report_gap(project.context, "empty body", kind="hole")


def test_record_verdict_at_the_round_limit_pauses_loop(tmp_path: Path) -> None:
    project = EngineProject(tmp_path, "verify", limits={"max_rounds": 1})
    report_gap(project.context, "empty body")

    receipt = record_verdict(project.context, passed=False, report="one gap")

    assert (receipt.loop.status, receipt.loop.pause_code) == ("paused", "rounds")
    assert (receipt.loop.pause_reason or "").endswith("; gaps left: G1")


def test_receipt_names_the_head_of_the_journal(project: EngineProject) -> None:
    receipt = report_gap(project.context, "empty body").receipt

    last = project.events()[-1]
    assert receipt.head == f"{last['seq']}:{last['sum']}"

"""Rounds of verification, single gaps and verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.engine.gaps import change_gap, report_gap
from gsd_fsm.engine.planned.verify import Round, append_round, record_round, verify
from gsd_fsm.verify.gaps import Result
from gsd_fsm.verify.reported_gaps import ReportedGap
from tests.support.check_commands import watching
from tests.support.events import EngineProject
from tests.support.verification import result

ORPHAN = ReportedGap(3, "", "orphan", "menu.ts", "never imported", "grep: nothing")


@pytest.fixture
def project(tmp_path: Path) -> EngineProject:
    return EngineProject(tmp_path, "verify")


def play(project: EngineProject, *results: Result, reported: tuple[ReportedGap, ...] = ()) -> Round:
    """Append one round."""
    with project.context.writing() as tx:
        return append_round(tx, list(results), list(reported))


def recorded(project: EngineProject, since: int = 2) -> list[str]:
    """Return the events since this one, abbreviated."""
    return [
        f"{event['by']} {event['data']['action']} {event['data']['gap']}"
        if event["type"] == "gap"
        else f"{event['by']} {event['type']}"
        for event in project.events()[since:]
    ]


def test_round_opens_a_gap_for_a_miss_and_completes_without_one(project: EngineProject) -> None:
    this = play(project, result(), result("ci:test"), result("T01#2", passed=None))
    assert (this.passed, this.opened, this.closed) == (False, ["G1", "G2"], [])
    assert recorded(project) == ["cli found G1", "cli found G2", "agent verified"]
    about = {"passed": False, "report": "2 missed, 1 manual; open gaps: G1, G2"}
    assert project.events()[-1]["data"] == about
    assert (project.loop.status, project.loop.round) == ("fixing", 1)
    gap = project.loop.gaps["G1"]
    assert (gap.kind, gap.check, gap.evidence) == ("stub", "T01#1", "missing file: a.py")
    this = play(project, result(passed=True), result("ci:test"))
    assert (this.closed, this.opened, this.reopened) == (["G1"], [], [])
    assert this.gap_of_check == {"ci:test": "G2"}
    this = play(project, result(passed=True), result("ci:test", passed=True))
    assert (this.passed, this.closed, project.loop.status) == (True, ["G2"], "completed")
    assert recorded(project, 5)[:3] == ["cli closed G1", "agent verified", "cli closed G2"]
    assert recorded(project, 8) == ["agent verified", "cli complete"]
    assert project.events()[8]["data"] == {"passed": True, "report": "2 passed"}


def test_open_gap_is_recorded_again_only_with_new_evidence(project: EngineProject) -> None:
    play(project, result())
    play(project, result())
    assert recorded(project, 4) == ["agent verified"]
    this = play(project, result(evidence="a.py: not a regular file"))
    assert recorded(project, 5) == ["cli found G1", "agent verified"]
    assert project.loop.gaps["G1"].evidence == "a.py: not a regular file"
    assert this.opened == this.reopened == []


def test_gap_that_comes_back_is_reopened_and_the_second_time_pauses(project: EngineProject) -> None:
    play(project, result())
    play(project, result(passed=True), result("ci:test"))
    this = play(project, result(), result("ci:test"))
    assert (this.reopened, project.loop.status) == (["G1"], "fixing")
    play(project, result(passed=True), result("ci:test"))
    this = play(project, result(), result("ci:test"))
    assert this.reopened == ["G1"]
    assert recorded(project)[-2:] == ["agent verified", "cli pause"]
    assert (project.loop.status, project.loop.pause_code) == ("paused", "oscillation")
    assert "G1" in project.loop.pause_reason
    assert this.remedy == "gsd-fsm resume --loop lp-1"
    project.append("resume")
    this = play(project, result(), result("ci:test"))
    assert (project.loop.status, this.remedy) == ("fixing", "")


def test_last_round_may_pass_and_its_pause_names_at_most_20_gaps(tmp_path: Path) -> None:
    limits = {"max_rounds": 1}
    project = EngineProject(tmp_path / "one", "verify", limits=limits)
    play(project, result(passed=True))
    assert project.loop.status == "completed"
    project = EngineProject(tmp_path / "two", "verify", limits=limits)
    this = play(project, *(result(f"T01#{n}", text=f"f{n}", file=None) for n in range(30)))
    assert (project.loop.status, project.loop.pause_code) == ("paused", "rounds")
    assert project.loop.pause_reason.endswith("G20 and 10 more")
    assert "--add-rounds" in this.remedy


def test_reported_gap_of_its_author_keeps_the_loop_open(project: EngineProject) -> None:
    this = play(project, result(passed=True), reported=(ORPHAN,))
    assert not this.passed
    assert recorded(project) == ["agent found G1", "agent verified"]
    gap = project.loop.gaps["G1"]
    assert (gap.kind, gap.file, gap.check) == ("orphan", "menu.ts", None)
    play(project, result(passed=True), reported=(ORPHAN,))
    assert recorded(project, 4) == ["agent verified"]
    project.append("gap", gap="G1", action="closed")
    assert play(project, result(passed=True), reported=(ORPHAN,)).reopened == ["G1"]
    project.append("gap", gap="G1", action="closed")
    assert play(project, result(passed=True)).passed
    assert project.loop.status == "completed"


def test_passed_round_with_unmet_criteria_does_not_complete(tmp_path: Path) -> None:
    project = EngineProject(tmp_path, "verify", criteria=[{"name": "c"}])
    assert play(project, result(passed=True)).passed
    assert (project.loop.status, recorded(project)) == ("running", ["agent verified"])
    project.append("criterion", criterion="c", met=True)
    play(project, result(passed=True))
    assert project.loop.status == "completed"


def test_passed_round_with_tree_evidence_leaves_completion_to_the_command(tmp_path: Path) -> None:
    limits = {"max_rounds": 1}
    criteria = [{"name": "c", "check": "true"}]
    project = EngineProject(tmp_path, "verify", limits=limits, criteria=criteria)
    proof = {"command": "true", "exit_code": 0, "tree": "abc"}
    project.append("criterion", criterion="c", met=True, evidence=proof)
    assert play(project, result(passed=True)).passed
    assert project.loop.status == "running"


def test_round_without_auto_loop_pauses_at_the_first_gap(tmp_path: Path) -> None:
    project = EngineProject(tmp_path, "verify", auto_loop=False)
    this = play(project, result(), result("ci:test"))
    assert recorded(project) == ["cli found G1", "agent verified"]
    assert (project.loop.status, project.loop.pause_code) == ("paused", "manual")
    assert (this.opened, this.gap_of_check) == (["G1"], {"T01#1": "G1"})
    project.append("resume")
    play(project, result(passed=True), result("ci:test"))
    assert recorded(project, 5) == ["cli closed G1", "cli found G2", "agent verified"]


def test_verify_of_a_loop_that_is_paused_meanwhile_is_refused(tmp_path: Path) -> None:
    project = EngineProject(tmp_path, "verify")
    (tmp_path / ".gsd" / "config.toml").write_text("ci_test = 'true'\n")
    watch = watching(say=lambda _text: project.append("pause", code="manual"))
    with pytest.raises(Refused, match="is paused and cannot be verified now"):
        verify(project.context, watch=watch)
    assert recorded(project) == ["human pause"]


def test_report_gap_gives_next_free_id(project: EngineProject) -> None:
    report_gap(project.context, "named by hand", gap_id="G2")
    reported = report_gap(project.context, "named by us")
    assert reported.gap == "G3"
    last = project.events()[-1]
    assert reported.receipt.head == f"{last['seq']}:{last['sum']}"


def test_report_gap_again_reopens_it_until_the_limit_pauses(project: EngineProject) -> None:
    gap = {"kind": "stub", "file": "a.py"}
    first = report_gap(project.context, "empty body", **gap)
    change_gap(project.context, first.gap, "closed")
    again = report_gap(project.context, "empty body", **gap)
    assert (again.gap, again.action) == (first.gap, "reopened")
    change_gap(project.context, first.gap, "closed")
    loop = change_gap(project.context, first.gap, "reopened").receipt.loop
    assert (loop.status, project.loop.pause_code) == ("paused", "oscillation")
    assert project.events()[-1]["by"] == "cli"


def test_record_round_at_the_round_limit_pauses_loop(tmp_path: Path) -> None:
    project = EngineProject(tmp_path, "verify", limits={"max_rounds": 1})
    report_gap(project.context, "empty body")
    loop = record_round(project.context, passed=False, report="one gap").loop
    assert (loop.status, loop.pause_code) == ("paused", "rounds")
    assert (loop.pause_reason or "").endswith("; gaps left: G1")

"""The evidence for a decision: that of its event, or of open items after it."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.history.evidence import evidence_against, evidence_of, failing
from tests.support.command_line import Here
from tests.support.events import draft


def loop_of(here: Here) -> Loop:
    (loop,) = Journal(str(here.gsd)).read().by_id.values()
    return loop


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"seq": 7, "ts": "2026-11-15T23:00:00.000Z", **draft(kind, "lp-1", "cli", data)}


def test_failing_has_the_last_output_of_each_open_item_latest_first(here: Here) -> None:
    checks = ("--check", "one=echo first; exit 3", "--check", "two=true")
    here.start("goal", "g", *checks, "--task", "T1", "--task", "T2", "--mode", "yolo")
    here.run("check")
    here.ok("fail", "T1", "--error", "boom")
    here.ok("gap", "found", "--description", "d", "--evidence", "line 4 is empty")
    found = failing(loop_of(here))
    assert [(it.about, it.output) for it in found] == [
        ("error of task T1", "boom"), ("check one", "first"), ("gap G1", "line 4 is empty"),
    ]  # fmt: skip
    assert (found[1].command, found[1].exit_code) == ("echo first; exit 3", 3)
    here.ok("task", "T1", "skipped")
    here.ok("gap", "close", "G1")
    assert [it.about for it in failing(loop_of(here))] == ["check one"]
    here.ok("cancel")
    assert failing(loop_of(here)) == []


def test_failing_has_an_error_of_the_loop_until_it_continues(here: Here) -> None:
    here.start("goal", "g", "--task", "T1", "--mode", "yolo")
    here.ok("fail", "--error", "no disk")
    assert [it.about for it in failing(loop_of(here))] == ["error of the loop"]
    here.ok("task", "T1", "running")
    assert failing(loop_of(here)) == []


def test_failing_check_of_baseline_is_marked(here: Here) -> None:
    here.start("goal", "g", "--check", "one=exit 1", "--baseline")
    assert [it.about for it in failing(loop_of(here))] == ["check one before any work"]


def test_evidence_of_an_event_takes_precedence(here: Here) -> None:
    here.start("goal", "g", "--task", "T1", "--mode", "yolo")
    here.ok("fail", "T1", "--error", "boom")
    loop = loop_of(here)
    proof = {"command": "make", "exit_code": 0, "tail": "fine"}
    rows = (
        (event("criterion", criterion="c", met=True, evidence=proof), "check c", "fine"),
        (event("failure", error="bang"), "error of the loop", "bang"),
        (event("gap", gap="G1", evidence="seen"), "gap G1", "seen"),
        (event("verified", passed=False, report="no"), "report of the round", "no"),
        (event("task", task="T1", proof={"check": "T1#1", "passed": False, "evidence": "red"}),
         "check T1#1 of task T1", "red"),
    )  # fmt: skip
    for it, about, output in rows:
        (found,) = evidence_of(it, loop)
        assert (found.about, found.output, found.seq) == (about, output, 7)
    (left,) = evidence_of(event("iteration"), loop)
    assert left.output == "boom"
    assert evidence_of(event("complete"), loop) == []


@pytest.mark.parametrize(
    ("kind", "data", "output"),
    [
        ("criterion", {"met": False, "evidence": {"exit_code": 1, "tail": "no"}}, "no"),
        ("criterion", {"met": True, "evidence": {"exit_code": 0, "tail": "yes"}}, None),
        ("criterion", {"met": False, "stale": True, "evidence": {"exit_code": 0}}, None),
        ("failure", {"error": "boom", "class": "logic"}, "boom"),
        ("gap", {"action": "found", "gap": "G1", "evidence": "empty"}, "empty"),
        ("gap", {"action": "closed", "gap": "G1", "evidence": "filled"}, None),
        ("verified", {"passed": False, "report": "two gaps"}, "two gaps"),
        ("verified", {"passed": True, "report": "all well"}, None),
        ("note", {"text": "n"}, None),
    ],
)
def test_evidence_against_is_empty_for_a_success(
    kind: str, data: dict[str, Any], output: str | None
) -> None:
    data = {"criterion": "c", **data}
    if "evidence" in data and isinstance(data["evidence"], dict):
        data["evidence"] = {"command": "make", **data["evidence"]}
    found = evidence_against(event(kind, **data))
    assert (found.output if found else None) == output

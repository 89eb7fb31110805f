"""next and task of planned loops: the tasks that can start, and their prompts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.command_line import Here
from tests.support.plan_loops import (
    YOLO,
    ready,
    report,
    report_complete,
    start_plan,
    task_text,
    write_plan,
)


@pytest.fixture
def planned(here: Here) -> Here:
    return start_plan(here)


@pytest.fixture
def verified(here: Here) -> Here:
    """Return a verify loop with two gaps."""
    command = ("start", "verify", "--phase", "1", "--mode", "yolo")
    start_plan(here, *command, plan=task_text("01") + task_text("02"))
    assert here.run("verify").code == 7
    return here


def next_gaps(here: Here) -> dict[str, Any]:
    return here.ok("next", "--json").json


def test_next_offers_a_whole_wave_and_a_sequential_wave_task_by_task(planned: Here) -> None:
    assert ready(planned) == ["T01", "T02"]
    report_complete(planned, "T01")
    assert ready(planned) == ["T02"]
    report_complete(planned, "02")
    assert ready(planned) == ["T03"]
    planned.ok("task", "T03", "running")
    assert ready(planned) == []
    report_complete(planned, "T03")
    assert ready(planned) == ["T04"]
    assert planned.status()["wave"] == 2


def test_task_of_a_later_wave_cannot_start(planned: Here) -> None:
    for args, how in (
        (("task", "T03", "running"), {}),
        (("report", "T03"), {"stdin": b"TASK COMPLETE"}),
    ):
        refused = planned.refused(4, *args, **how)
        assert "task T03 is in wave 2, and wave 1 is not done" in refused.err
        assert "Ready: T01, T02" in refused.err


def test_task_of_a_sequential_wave_starts_alone(planned: Here) -> None:
    report_complete(planned, "T01", "T02")
    assert "one at a time" in planned.refused(4, "task", "T04", "running").err
    planned.ok("task", "T03", "running")
    assert "run one at a time" in planned.refused(4, "task", "T04", "running").err
    report_complete(planned, "T03", "T04")
    planned.ok("complete")


def test_next_of_sequential_wave_offers_dependencies_first(
    here: Here,
) -> None:
    write_plan(here, "## Wave 1 (Sequential)\n" + task_text("02", 1, "01") + task_text("01"))
    here.ok(*YOLO)
    assert ready(here) == ["T01"]
    report_complete(here, "T01", "T02")
    here.ok("complete")


def test_next_with_json_names_prompt_and_commands_and_changes_nothing(planned: Here) -> None:
    before = planned.journal.read_bytes()
    one, two = planned.ok("next", "--json").out, planned.ok("next", "--json").out
    assert one == two
    assert planned.journal.read_bytes() == before
    item = json.loads(one)["tasks"][1]
    loop = json.loads(one)["loop"]
    assert item["description"] == "P1 T02: Write 02."
    assert (item["subagent_type"], item["background"]) == ("gsd-fsm:executor", True)
    assert item["prompt"].strip() == planned.ok("next", "T02").out.strip()
    assert '<task id="02">' in item["prompt"]
    assert item["report"] == f"gsd-fsm --loop {loop} report T02"
    assert "P1 T02: Write 02." in planned.ok("next").out


def test_next_of_failed_task_adds_its_errors_to_the_prompt(planned: Here) -> None:
    prompts = [planned.ok("next", "T01").out]
    for error in ("one", "two", "three"):
        report(planned, "T01", f"TASK FAILED: {error}\nRoot cause: because of {error}\n")
        prompts.append(planned.ok("next", "T01").out)
    assert len(set(prompts)) == 4
    assert "<previous_attempt>" not in prompts[0]
    for error in ("one", "two", "three"):
        assert error in prompts[3]
    assert "3 of 3" in prompts[3]
    other = planned.ok("next", "T02").out
    assert "<previous_attempt>" not in other
    assert "because of" not in other


def test_next_with_unknown_or_complete_task_is_refused(planned: Here) -> None:
    assert "Use one of: T01" in planned.refused(2, "next", "T99").err
    report_complete(planned, "T01")
    planned.refused(4, "next", "T01")
    planned.ok("cancel")
    planned.ok("start", "goal", "g")
    assert "does not follow a plan" in planned.refused(2, "next", "T01").err


def test_resume_and_next_list_running_tasks_with_their_references(planned: Here) -> None:
    planned.ok("task", "T01", "running", "--ref", "bg-1")
    planned.ok("task", "T02", "running", "--ref", "bg-2")
    assert planned.status()["background_tasks"][0]["task_id"] == "bg-1"
    assert re.search(r"T01 running.*\n.*T02 running", planned.ok("status").out)
    report_complete(planned, "T02")
    assert [task["task_num"] for task in planned.status()["background_tasks"]] == ["T01"]
    answer = planned.ok("resume", "--json").json
    assert answer["running"] == [{"task": "T01", "ref": "bg-1", "phase": None}]
    assert "Task T01 (bg-1) was running" in planned.ok("resume").out
    assert planned.ok("next", "--json").json["running"][0]["ref"] == "bg-1"


def test_next_does_not_offer_a_running_fix(verified: Here) -> None:
    assert ready(verified) == ["G1", "G2"]
    verified.ok("task", "G1", "running", "--ref", "bg-7")
    assert ready(verified) == ["G2"]
    assert next_gaps(verified)["running"][0]["ref"] == "bg-7"
    assert "Fix gap G2" in next_gaps(verified)["text"]


def test_next_of_failed_fix_adds_errors_and_decision_to_the_prompt(verified: Here) -> None:
    first = verified.ok("next", "G1").out
    report(verified, "G1", "TASK FAILED: zot\nRoot cause: the moon\n")
    second = verified.ok("next", "G1").out
    assert "<previous_attempt>" not in first
    for word in ("<previous_attempt>", "zot", "the moon", "1 of 3"):
        assert word in second
    report(verified, "G1", "CHECKPOINT: red or blue?\n")
    verified.ok("answer", "blue")
    assert "blue" in verified.ok("next", "G1").out


def test_fix_at_checkpoint_is_neither_offered_nor_reported(verified: Here) -> None:
    verified.ok("task", "G2", "running")
    report(verified, "G1", "CHECKPOINT: delete data?")
    verified.refused(4, "report", "G1", stdin=b"TASK COMPLETE")
    assert ready(verified) == []


def test_next_skips_failed_fix_once_its_gap_is_closed(verified: Here) -> None:
    report(verified, "G1", "TASK FAILED: not yet")
    assert "Fix gap G1" in verified.ok("next").out
    (verified.root / "01.py").touch()
    assert verified.run("verify").code == 7
    assert "Fix gap G2" in verified.ok("next").out
    (verified.root / "02.py").touch()
    verified.ok("verify")
    assert verified.status()["status"] == "completed"


def test_state_md_of_verify_loop_counts_rounds_and_gaps(verified: Here) -> None:
    text = (verified.gsd / "STATE.md").read_text()
    assert "  iteration: 1\n  max_iterations: 20\n" in text
    assert "  gaps_remaining: 2\n" in text

"""Whose turn it is: waves, sequences and the word of a human hold for whoever starts a task."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.test_planned import PLAN, YOLO, done, ready, say, write_plan
from tests.plans.test_load import task
from tests.support.command_line import AGENT, Here, git

VERIFY = task("01") + task("02")


@pytest.fixture
def planned(here: Here) -> Here:
    write_plan(here)
    here.ok(*YOLO)
    return here


def test_a_task_of_a_later_wave_cannot_start(planned: Here) -> None:
    for args, how in (
        (("task", "T03", "running"), {}),
        (("report", "T03"), {"stdin": b"TASK COMPLETE"}),
    ):
        refused = planned.refused(4, *args, **how)
        assert "task T03 is in wave 2, and wave 1 is not done" in refused.err
        assert "Ready: T01, T02" in refused.err


def test_a_sequential_wave_starts_one_task_at_a_time(planned: Here) -> None:
    done(planned, "T01", "T02")
    assert "one at a time" in planned.refused(4, "task", "T04", "running").err
    planned.ok("task", "T03", "running")
    assert "run one at a time" in planned.refused(4, "task", "T04", "running").err
    done(planned, "T03", "T04")
    planned.ok("complete")


def test_in_interactive_mode_a_failed_task_is_not_offered_before_the_human_has_spoken(
    here: Here,
) -> None:
    write_plan(here)
    here.ok("start", "execute", "--phase", "1")
    here.ok("answer", "y")
    here.ok("task", "T01", "running")
    here.ok("task", "T02", "running")
    assert say(here, "T01", "TASK FAILED: bad")["status"] == "retrying"
    assert ready(here) == []
    assert "Finish task T02" in here.ok("next").out
    assert "is waiting for your decision" in here.refused(4, "task", "T01", "running").err
    assert say(here, "T02", "TASK COMPLETE")["status"] == "waiting"
    here.ok("answer", "y")
    assert ready(here) == ["T01"]


def test_a_project_with_plans_is_asked_which_phase_is_meant(here: Here) -> None:
    write_plan(here, PLAN, ".opti-gsd/plans/phase-1/plan.md")
    state = here.root / ".opti-gsd" / "state.json"
    for text in ('{"milestone": "v1"}', '{"phase": null}', '{"phase": 1.5}'):
        state.write_text(text)
        assert "no phase is named" in here.refused(2, "start", "execute").err
    assert not here.gsd.exists()
    for text in ('{"phases_in_progress": [1]}', '{"phases": {"in_progress": [1]}}'):
        state.write_text(text)
        here.ok("start", "execute", "--fresh", "--mode", "yolo")
        assert here.status()["phase"] == 1


def test_a_plan_that_is_gone_is_told_with_the_way_back(planned: Here) -> None:
    path = planned.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    path.unlink()
    say(planned, "T01", "TASK COMPLETE")
    assert (
        planned.status()["pause_reason"]
        == ".gsd/plans/phase-1/plan.md is missing; restore it, then resume"
    )
    refused = planned.refused(4, "resume")
    assert "git checkout -- .gsd/plans/phase-1/plan.md" in refused.err
    assert "cancel" in refused.err
    write_plan(planned)
    planned.ok("resume")
    assert ready(planned) == ["T02"]


def test_only_a_commit_of_this_work_counts_as_the_tasks(repository: Here) -> None:
    write_plan(repository)
    repository.ok(*YOLO)
    git(repository.root, "commit", "-q", "--allow-empty", "-m", "unrelated")
    assert say(repository, "T01", "TASK COMPLETE")["commit"] is None
    refused = repository.refused(2, "report", "T02", "--commit", "nonsense", stdin=b"TASK COMPLETE")
    assert "not a commit: nonsense" in refused.err
    answer = repository.run("report", "T02", "--commit", "HEAD", "--json", stdin=b"TASK COMPLETE")
    assert len(json.loads(answer.out)["commit"]) == 40


def gaps(here: Here) -> dict[str, Any]:
    return here.ok("next", "--json").json


@pytest.fixture
def verified(here: Here) -> Here:
    """A verify loop with two gaps."""
    write_plan(here, VERIFY)
    here.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    assert here.run("verify").code == 7
    return here


def test_a_fix_that_runs_is_not_offered_again(verified: Here) -> None:
    assert [it["id"] for it in gaps(verified)["tasks"]] == ["G1", "G2"]
    verified.ok("task", "G1", "running", "--ref", "bg-7")
    assert [it["id"] for it in gaps(verified)["tasks"]] == ["G2"]
    assert gaps(verified)["running"][0]["ref"] == "bg-7"
    assert "Fix gap G2" in gaps(verified)["text"]


def test_the_prompt_of_a_fix_carries_its_errors_and_the_humans_decision(verified: Here) -> None:
    first = verified.ok("next", "G1").out
    say(verified, "G1", "TASK FAILED: zot\nRoot cause: the moon\n")
    second = verified.ok("next", "G1").out
    assert "<previous_attempt>" not in first
    for word in ("<previous_attempt>", "zot", "the moon", "1 of 3"):
        assert word in second
    say(verified, "G1", "CHECKPOINT: red or blue?\n")
    verified.ok("answer", "blue")
    assert "blue" in verified.ok("next", "G1").out


def test_the_view_of_a_verify_loop_counts_its_rounds(verified: Here) -> None:
    text = (verified.gsd / "STATE.md").read_text()
    assert "  iteration: 1\n  max_iterations: 20\n" in text
    assert "  gaps_remaining: 2\n" in text


def test_a_gap_that_comes_back_can_fail_again(verified: Here) -> None:
    say(verified, "G1", "TASK FAILED: not yet")
    say(verified, "G1", "TASK COMPLETE")
    assert verified.run("verify").code == 7
    assert say(verified, "G1", "TASK FAILED: still not")["status"] == "retrying"
    assert "still not" in verified.ok("next", "G1").out


def test_an_agent_neither_skips_a_task_nor_declares_a_plan_verified_by_itself(here: Here) -> None:
    write_plan(here, VERIFY)
    here.ok(*YOLO)
    here.ok("iterate", env=AGENT)
    refused = here.refused(4, "task", "T01", "skipped", env=AGENT)
    assert "until the user sends a message" in refused.err
    here.ok("task", "T01", "skipped")
    here.ok("cancel")
    here.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    here.ok("iterate", env=AGENT)
    assert "until the user sends a message" in here.refused(4, "verified", "pass", env=AGENT).err
    here.ok("verified", "fail", env=AGENT)
    here.ok("verified", "pass")

"""Every rule by which older stop hooks decided about a goal, and what the hook does in its place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.hook_agent import Agent, call, kinds, start

GOAL = ("goal", "Ship it", "--criterion", "tests pass", "--criterion", "lint clean")


def met(agent: Agent, *names: str) -> None:
    for name in names:
        agent.here.ok("criterion", name, "met", env=agent.shell)


def status(agent: Agent, *names: str) -> tuple[object, ...]:
    found = agent.here.status()
    return tuple(found[name] for name in names)


def put_task(status: str) -> None:
    place = Path(os.environ["HOME"]) / ".claude" / "tasks" / "my-loop"
    place.mkdir(parents=True, exist_ok=True)
    task = {"id": "1", "subject": "Add import", "status": status, "blocks": [], "blockedBy": []}
    (place / "1.json").write_text(json.dumps(task))


# a list of tasks on disk decides


def test_the_signal_is_read_from_stdin_and_from_nowhere_else(agent: Agent) -> None:
    start(agent, *GOAL)
    raw = json.dumps(agent.stop_signal()).encode()
    assert call(raw, agent.env, cwd=agent.here.root).answer is not None
    assert call(b"", agent.env, cwd=agent.here.root).answer is None
    assert status(agent, "iteration") == (1,)


def test_that_the_client_is_going_on_already_is_recorded_and_no_reason_to_stop(
    agent: Agent,
) -> None:
    start(agent, *GOAL)
    for active in (False, True, True):
        agent.blocked(stop_hook_active=active)
        assert agent.here.last()["data"]["active"] is active


def test_a_pending_task_of_the_list_blocks_and_is_named(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    agent.here.ok("exit-signal", env=agent.shell)
    put_task("in_progress")
    assert "task 1 is running" in agent.blocked()


def test_without_a_pending_task_the_loop_still_wants_both_of_its_conditions(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop", "--criterion", "c")
    put_task("completed")
    assert "criterion not met: c" in agent.blocked()
    met(agent, "c")
    agent.here.ok("exit-signal", env=agent.shell)
    assert "completed" in agent.allowed()


def test_without_a_loop_every_stop_is_allowed_in_silence(agent: Agent) -> None:
    assert agent.stop() is None
    put_task("pending")
    assert agent.stop() is None
    assert not agent.here.gsd.exists()


# a state with criteria and an exit signal decides


def test_no_journal_means_no_loop_and_the_stop_is_allowed(agent: Agent) -> None:
    agent.here.gsd.mkdir()
    assert agent.stop() is None
    assert list(agent.here.gsd.iterdir()) == []


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_a_loop_that_has_ended_holds_nobody(agent: Agent, end: str) -> None:
    start(agent, "goal", "g")
    if end == "completed":
        agent.here.ok("exit-signal", env=agent.shell)
        agent.here.ok("complete", env=agent.shell)
    else:
        agent.here.ok("cancel")
    before = agent.here.journal.read_bytes()
    assert agent.stop() is None
    assert agent.new(before) == []
    assert status(agent, "status") == (end,)


def test_the_breaker_pauses_with_its_reason_instead_of_letting_go_in_silence(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    for count in range(5):
        assert status(agent, "stuck") == (count,)
        agent.uses_a_tool()
        agent.blocked()
    agent.uses_a_tool()
    notice = agent.allowed()
    assert "5 iterations changed no criterion" in notice
    assert f"gsd-fsm --loop {loop} resume" in notice
    assert status(agent, "status", "pause_code") == ("paused", "stuck")
    assert status(agent, "last_unmet") == ("tests pass",)


def test_the_breaker_begins_anew_when_another_criterion_is_the_first_unmet_one(
    agent: Agent,
) -> None:
    start(agent, *GOAL)
    for _ in range(3):
        agent.uses_a_tool()
        agent.blocked()
    assert status(agent, "stuck", "last_unmet") == (3, "tests pass")
    met(agent, "tests pass")
    agent.blocked()
    assert status(agent, "stuck", "last_unmet") == (0, "lint clean")


def test_all_criteria_and_the_exit_signal_complete_the_loop(agent: Agent) -> None:
    start(agent, *GOAL)
    met(agent, "tests pass", "lint clean")
    agent.here.ok("exit-signal", env=agent.shell)
    assert "completed" in agent.allowed()
    assert kinds(agent.here)[-1] == "complete"


def test_all_criteria_without_the_exit_signal_are_not_enough(agent: Agent) -> None:
    start(agent, *GOAL)
    met(agent, "tests pass", "lint clean")
    text = agent.blocked()
    assert "no exit signal" in text
    assert "exit-signal" in text


def test_the_exit_signal_is_not_taken_while_a_criterion_is_unmet(agent: Agent) -> None:
    start(agent, *GOAL)
    met(agent, "tests pass")
    agent.here.refused(4, "exit-signal", env=agent.shell)
    assert "criterion not met: lint clean" in agent.blocked()


def test_the_exit_signal_is_withdrawn_with_the_criterion_it_rested_on(agent: Agent) -> None:
    start(agent, *GOAL)
    met(agent, "tests pass", "lint clean")
    agent.here.ok("exit-signal", env=agent.shell)
    agent.here.ok("criterion", "lint clean", "unmet", env=agent.shell)
    assert "criterion not met: lint clean; no exit signal" in agent.blocked()
    met(agent, "lint clean")
    assert "no exit signal" in agent.blocked()


def test_otherwise_the_stop_is_blocked_and_every_unmet_criterion_is_named(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    text = agent.blocked()
    assert "criterion not met: tests pass; criterion not met: lint clean" in text
    assert f"Run: gsd-fsm --loop {loop} criterion 1 met" in text


# a mark in the last message decides


def test_the_mark_completes_a_loop_whose_criteria_are_met(agent: Agent) -> None:
    start(agent, *GOAL)
    met(agent, "tests pass", "lint clean")
    report = "All success criteria satisfied:\n- tests pass: ✓\n- lint clean: ✓"
    assert "completed" in agent.allowed(f"<loop-complete>\n{report}\n</loop-complete>")


def test_the_mark_does_not_complete_a_loop_whose_criteria_are_not(agent: Agent) -> None:
    start(agent, *GOAL)
    text = agent.blocked("<loop-complete>\nAll done: ✓\n</loop-complete>")
    assert "You wrote <loop-complete>, but the loop is not done." in text


def test_without_the_mark_the_next_action_is_told(agent: Agent) -> None:
    loop = start(agent, *GOAL, "--step", "write the test")
    text = agent.blocked("Let me know if you need anything else.")
    assert "Next: Start task S1 (write the test)." in text
    assert f"Run: gsd-fsm --loop {loop} task S1 running" in text


def test_three_evaluations_without_activity_pause_the_loop(agent: Agent) -> None:
    start(agent, *GOAL)
    for _ in range(3):
        agent.blocked(stop_hook_active=True)
    assert "no activity in 3 consecutive blocks" in agent.allowed(stop_hook_active=True)
    assert status(agent, "pause_code") == ("idle",)


# classes of errors


def fail(agent: Agent, kind: str, error: str) -> None:
    agent.here.ok("fail", "S1", "--class", kind, "--error", error, env=agent.shell)


def test_a_transient_error_is_retried_once_and_then_pauses(agent: Agent) -> None:
    start(agent, "goal", "g", "--step", "fetch")
    fail(agent, "transient", "connection reset")
    assert "retry 1 of 1" in agent.blocked()
    fail(agent, "transient", "timed out")
    assert "paused" in agent.allowed()
    assert status(agent, "pause_code") == ("retries",)


def test_a_logic_error_is_to_be_fixed_and_counts_until_the_retries_are_used(agent: Agent) -> None:
    start(agent, "goal", "g", "--step", "build")
    for retry in range(1, 4):
        fail(agent, "logic", f"test {retry} fails")
        text = agent.blocked()
        assert f"retry {retry} of 3" in text
        assert "Do not repeat what failed" in text
        assert all(f"test {number} fails" in text for number in range(1, retry + 1))
    fail(agent, "logic", "test 4 fails")
    agent.allowed()
    assert status(agent, "status", "pause_code") == ("paused", "retries")


@pytest.mark.parametrize("kind", ["blocking", "unknown"])
def test_a_blocking_and_an_unknown_error_pause_at_once_and_keep_everything(
    agent: Agent, kind: str
) -> None:
    loop = start(agent, *GOAL, "--step", "install")
    met(agent, "tests pass")
    fail(agent, kind, "permission denied")
    assert f"gsd-fsm --loop {loop} resume" in agent.allowed()
    assert status(agent, "status", "pause_code") == ("paused", kind)
    assert [c["met"] for c in agent.here.status()["criteria"]] == [True, False]


# one unit of work, checkpointed


def test_each_block_asks_for_one_unit_of_work_and_keeps_where_it_was_asked(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.talks()
    assert "One iteration is one unit of work: one file, one test, one bug" in agent.blocked()
    found = agent.here.status()
    last = agent.here.last()
    assert (found["iteration"], found["last_iteration"]) == (1, last["ts"])
    assert last["data"]["transcript"] == agent.transcript.stat().st_size


def test_a_failed_verification_asks_for_another_approach_at_once(agent: Agent) -> None:
    start(agent, "goal", "g", "--check", "tests=false")
    assert "Verification has failed" not in agent.blocked()
    assert agent.here.run("check", env=agent.shell).code == 7
    text = agent.blocked()
    assert "Verification has failed once. Do not repeat the same approach" in text
    assert agent.here.run("check", env=agent.shell).code == 7
    assert "Verification has failed 2 times." in agent.blocked()


def test_counsel_is_asked_for_until_what_failed_has_succeeded(agent: Agent) -> None:
    start(agent, "goal", "g", "--step", "one", "--step", "two")
    fail(agent, "logic", "assert 1 == 2")
    agent.here.ok("task", "S1", "running", env=agent.shell)
    assert "Verification has failed once." in agent.blocked()
    agent.here.ok("task", "S2", "running", env=agent.shell)
    agent.here.ok("task", "S2", "complete", env=agent.shell)
    fail(agent, "logic", "assert 1 == 3")
    assert "Verification has failed 2 times." in agent.blocked()
    agent.here.ok("task", "S1", "running", env=agent.shell)
    agent.here.ok("task", "S1", "complete", env=agent.shell)
    assert "Verification has failed" not in agent.blocked()


def test_a_failed_review_asks_for_another_approach_until_one_has_passed(agent: Agent) -> None:
    start(agent, "goal", "g")
    agent.here.ok("review", "begun", env=agent.shell)
    agent.here.ok("review", "failed", "--finding", "BLOCKER: leaks", env=agent.shell)
    assert "Verification has failed once." in agent.blocked()
    agent.here.ok("task", "B1", "running", env=agent.shell)
    agent.here.ok("task", "B1", "complete", env=agent.shell)
    assert "All blockers of the review are resolved; review again." in agent.blocked()
    agent.here.ok("review", "begun", env=agent.shell)
    agent.here.ok("review", "passed", env=agent.shell)
    assert "Verification has failed" not in agent.blocked()


def test_the_counsel_is_that_of_the_settings(agent: Agent) -> None:
    agent.here.gsd.mkdir()
    agent.here.gsd.joinpath("config.toml").write_text('counsel = "Ask the panel of experts."\n')
    start(agent, "goal", "g", "--step", "one")
    fail(agent, "logic", "assert 1 == 2")
    assert "Verification has failed once. Ask the panel of experts." in agent.blocked()
    agent.here.ok("task", "S1", "running", env=agent.shell)
    agent.here.ok("task", "S1", "complete", env=agent.shell)
    assert "Verification has failed" not in agent.blocked()

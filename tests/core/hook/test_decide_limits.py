"""Limits and failures: each pauses the loop with its code, its reason and the command to continue."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.hook_agent import GOAL, Agent, kinds, start

TWO_CRITERIA = ("goal", "Ship it", "--criterion", "tests pass", "--criterion", "lint clean")
ONLY_IDLE = (*GOAL, "--stuck-limit", "0", "--max-iterations", "0")
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


def pauses_with(agent: Agent, code: str, **how: Any) -> str:
    """Stop; assert that the loop pauses with this code, and return the notice."""
    notice = agent.allowed(**how)
    assert kinds(agent.here)[-1] == f"pause {code}"
    assert f"is paused ({code}): " in notice
    why = agent.why()
    assert (why["decision"], why["code"]) == ("allow", code)
    assert agent.status("pause_code") == code
    assert agent.allowed(**how) == ""
    return notice


def blocks(agent: Agent, most: int, **how: Any) -> int:
    """Return how often the stop is blocked before it is allowed."""
    for count in range(most):
        if not agent.stop(**how) or agent.here.last()["type"] == "pause":
            return count
    return most


@pytest.mark.parametrize(("limit", "count"), [(["--max-iterations", "2"], 2), ([], 20)])
def test_used_up_iterations_pause_the_loop(agent: Agent, limit: list[str], count: int) -> None:
    loop = start(agent, *GOAL, *limit, "--stuck-limit", "0", "--idle-limit", "0")
    for number in range(1, count + 1):
        agent.uses_a_tool()
        assert f"loop iteration {number}/{count} " in agent.blocked()
    agent.uses_a_tool()
    notice = pauses_with(agent, "iterations")
    assert f"{count} of {count} iterations are used" in notice
    assert f"To continue, run: gsd-fsm --loop {loop} resume --add-iterations 10" in notice
    assert f"{count} of {count} iterations are used" in agent.why()["why"]


def test_execute_loop_has_three_iterations_for_each_task(agent: Agent) -> None:
    start(agent, "execute", *[word for n in range(8) for word in ("--task", f"T{n}")])
    assert "iteration 1/24" in agent.blocked()


def test_unlimited_iterations_are_numbered(agent: Agent) -> None:
    start(agent, *ONLY_IDLE)
    assert "iteration 1 (" in agent.blocked()


def test_used_up_rounds_pause_the_loop_at_the_default_of_20(agent: Agent) -> None:
    loop = start(agent, "verify", "--idle-limit", "0", "--stuck-limit", "0")
    agent.blocked()
    for _ in range(20):
        assert agent.status("status") == "running"
        agent.do("verified fail")
    assert agent.status("pause_code") == "rounds"
    notice = agent.allowed()
    assert "20 of 20 verification rounds are used" in notice
    assert f"gsd-fsm --loop {loop} resume --add-rounds 10" in notice


def test_stuck_loop_pauses_after_five_iterations_by_default(agent: Agent) -> None:
    loop = start(agent, *TWO_CRITERIA)
    for count in range(5):
        assert agent.status("stuck") == count
        agent.uses_a_tool()
        agent.blocked()
    agent.uses_a_tool()
    notice = pauses_with(agent, "stuck")
    assert "5 iterations changed no criterion, gap, task or evidence" in notice
    assert f"To continue, run: gsd-fsm --loop {loop} resume" in notice
    assert agent.status("last_unmet") == "tests pass"
    agent.do("resume")
    assert blocks(agent, 9, env={CAP: "0"}) == 3  # idle now


def test_progress_restarts_the_stuck_count(agent: Agent) -> None:
    start(agent, *TWO_CRITERIA, "--step", "one", "--stuck-limit", "3", "--idle-limit", "0")
    assert blocks(agent, 2) == 2
    assert agent.status("stuck", "last_unmet") == (2, "tests pass")
    agent.do("criterion 'tests pass' met")
    agent.blocked()
    assert agent.status("stuck", "last_unmet") == (0, "lint clean")
    assert blocks(agent, 2) == 2
    agent.do("task S1 running", "task S1 complete")  # a finished step is progress as well
    assert blocks(agent, 9) == 4
    assert agent.status("pause_code") == "stuck"


def test_same_error_three_times_pauses_the_loop(agent: Agent) -> None:
    loop = start(agent, *ONLY_IDLE, "--idle-limit", "0")
    for _ in range(3):
        assert agent.status("status") != "paused"
        agent.do("fail --error boom --class logic")
    assert agent.status("pause_code") == "repeated"
    notice = agent.allowed()
    assert "the same error occurred 3 times: boom" in notice
    assert f"gsd-fsm --loop {loop} resume" in notice


def test_spent_budget_pauses_the_loop(agent: Agent) -> None:
    start(agent, *ONLY_IDLE, "--budget", "1")
    agent.do("spend 1.5")
    assert agent.status("pause_code") == "budget"
    notice = agent.allowed()
    assert "1.50 of 1.00 USD" in notice
    assert "resume --add-budget" in notice


def test_used_up_minutes_pause_the_loop(agent: Agent) -> None:
    start(agent, *ONLY_IDLE, "--max-minutes", "0.001")
    time.sleep(0.1)
    assert "resume --add-minutes" in pauses_with(agent, "minutes")


# idle


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_idle_limit_of_n_gives_n_blocks_without_activity(agent: Agent, limit: int) -> None:
    start(agent, *ONLY_IDLE, "--idle-limit", str(limit))
    agent.talks()
    assert blocks(agent, 12, stop_hook_active=True) == limit
    assert agent.status("pause_code") == "idle"
    reason = agent.here.last()["data"]["reason"]
    assert reason.startswith(f"no activity in {limit} consecutive blocks")


@pytest.mark.parametrize(
    ("limit", "cap", "expected"),
    [
        ("0", None, 8),
        ("50", None, 8),
        ("0", "10", 10),
        ("9", "10", 9),
        ("5", "2", 2),
        ("0", "abc", 8),
        ("0", "", 8),
        ("50", "nonsense", 8),
        ("0", "0", 12),
        ("0", "-1", 12),
        ("10", "0", 10),
    ],
)
def test_idle_loop_pauses_before_the_cap_of_the_client(
    agent: Agent, limit: str, cap: str | None, expected: int
) -> None:
    start(agent, *ONLY_IDLE, "--idle-limit", limit)
    assert blocks(agent, 12, env={CAP: cap} if cap is not None else {}) == expected
    if expected < 12 and int(limit) != expected:
        words = f"the client would end the turn itself after {expected}"
        assert words in agent.here.last()["data"]["reason"]


def test_activity_between_stops_goes_beyond_the_cap_of_the_client(agent: Agent) -> None:
    start(agent, *ONLY_IDLE)
    for _ in range(12):
        agent.blocked()
        agent.uses_a_tool()
    assert agent.here.last()["data"]["activity"] is True


@pytest.mark.parametrize("by", ["agent", "human", "prompt", "machine prompt"])
def test_events_and_human_prompts_are_activity(agent: Agent, by: str) -> None:
    start(agent, *ONLY_IDLE, "--idle-limit", "1")
    agent.blocked()
    if by in ("agent", "human"):
        agent.here.ok("note", "at work", env=agent.shell if by == "agent" else {})
    else:
        agent.prompt("really?" if by == "prompt" else "<task-notification>\n<task-id>b1</task-id>")
    assert blocks(agent, 3) == (0 if by == "machine prompt" else 1)
    assert agent.status("pause_code") == "idle"


# failures


def fail(agent: Agent, error_class: str, error: str) -> None:
    agent.here.ok("fail", "S1", "--class", error_class, "--error", error, env=agent.shell)


def test_transient_error_is_retried_once_and_then_pauses(agent: Agent) -> None:
    start(agent, "goal", "g", "--step", "fetch")
    fail(agent, "transient", "connection reset")
    text = agent.blocked()
    assert "failed with a transient error; this is retry 1 of 1. Another transient error" in text
    assert "Next: Retry task S1 (fetch): retry 1 of 1." in text
    assert "Verification has failed" not in text
    fail(agent, "transient", "timed out")
    assert "paused (retries): Task S1 failed again with a transient error" in agent.allowed()


def test_logic_error_is_retried_until_the_retries_are_used_up(agent: Agent) -> None:
    start(agent, "goal", "g", "--step", "build")
    for retry in range(1, 4):
        fail(agent, "logic", f"test {retry} fails")
        text = agent.blocked()
        assert f"this is retry {retry} of 3. Do not repeat what failed." in text
        assert all(f"test {number} fails" in text for number in range(1, retry + 1))
    fail(agent, "logic", "test 4 fails")
    assert "is paused (retries): " in agent.allowed()
    assert agent.status("status", "pause_code") == ("paused", "retries")


@pytest.mark.parametrize("error_class", ["blocking", "unknown"])
def test_blocking_or_unknown_error_pauses_at_once_and_keeps_everything(
    agent: Agent, error_class: str
) -> None:
    loop = start(agent, *TWO_CRITERIA, "--step", "install")
    agent.do("criterion 'tests pass' met")
    fail(agent, error_class, "permission denied")
    notice = agent.allowed()
    assert f"is paused ({error_class}): " in notice
    assert "permission denied" in notice
    assert f"gsd-fsm --loop {loop} resume" in notice
    assert kinds(agent.here)[-1] == "stop paused"
    assert agent.allowed() == ""
    assert agent.status("status", "pause_code") == ("paused", error_class)
    assert [criterion["met"] for criterion in agent.status("criteria")] == [True, False]

"""Limits and failures: each pauses the loop with its code, its reason and the command to continue."""

from __future__ import annotations

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
    for text in (notice, agent.why()["why"]):
        assert f"{count} of {count} iterations are used" in text
    assert f"To continue, run: gsd-fsm resume --loop {loop} --add-iterations 10" in notice


@pytest.mark.parametrize(
    ("loop", "commands", "reason", "options"),
    [
        (("verify", "--task", "T1"), ["verified fail"] * 20, "(rounds): 20 of 20 verification rounds are used",
         " --add-rounds 10"),
        (GOAL, ["fail --error boom --class logic"] * 3,
         "(repeated): the same error occurred 3 times: boom", ""),
        ((*GOAL, "--budget", "1"), ["spend 0.75"] * 2, "(budget): $1.50 of $1.00 are spent",
         " --add-budget 1"),
    ],
)  # fmt: skip
def test_limit_that_a_command_uses_up_pauses_the_loop_at_once(
    agent: Agent, loop: tuple[str, ...], commands: list[str], reason: str, options: str
) -> None:
    name = start(agent, *loop)
    for command in commands:
        assert agent.status("status") != "paused"
        agent.do(command)
    assert f"({agent.status('pause_code')})" in reason
    notice = agent.allowed()
    assert f"is paused {reason}" in notice
    assert f"gsd-fsm resume --loop {name}{options}" in notice


def test_stuck_loop_pauses_after_five_iterations_by_default(agent: Agent) -> None:
    loop = start(agent, *TWO_CRITERIA)
    for count in range(5):
        assert agent.status("stuck") == count
        agent.uses_a_tool()
        agent.blocked()
    agent.uses_a_tool()
    notice = pauses_with(agent, "stuck")
    assert "5 iterations changed no criterion, gap, task or evidence" in notice
    assert f"To continue, run: gsd-fsm resume --loop {loop}" in notice
    assert agent.status("last_unmet") == "tests pass"
    agent.do("resume")
    assert blocks(agent, 9, env={CAP: "0"}) == 3  # idle now


@pytest.mark.parametrize(
    ("limit", "cap", "expected"),
    [
        ("1", None, 1), ("8", None, 8), ("0", None, 8), ("50", None, 8), ("9", "10", 9),
        ("5", "2", 2), ("0", "abc", 8), ("0", "", 8), ("0", "0", 12), ("0", "-1", 12), ("10", "0", 10),
    ],
)  # fmt: skip
def test_idle_loop_pauses_at_its_limit_or_before_the_cap_of_the_client(
    agent: Agent, limit: str, cap: str | None, expected: int
) -> None:
    start(agent, *ONLY_IDLE, "--idle-limit", limit)
    agent.talks()
    env = {CAP: cap} if cap is not None else {}
    assert blocks(agent, 12, env=env, stop_hook_active=True) == expected
    if expected < 12:
        assert agent.status("pause_code") == "idle"
        reason = agent.here.last()["data"]["reason"]
        assert reason.startswith(f"no activity in {expected} consecutive blocks")
        by_client = f"the client would end the turn itself after {expected}" in reason
        assert by_client is (int(limit) != expected)


def test_activity_between_stops_goes_beyond_the_cap_of_the_client(agent: Agent) -> None:
    start(agent, *ONLY_IDLE)
    for number in range(1, 13):
        agent.uses_a_tool()
        assert f"iteration {number} (" in agent.blocked()  # of no limited number
    data = agent.here.last()["data"]
    assert (data["activity"], data["transcript"]) == (True, agent.transcript.stat().st_size)


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


@pytest.mark.parametrize(
    ("error_class", "most", "advice", "reason"),
    [
        ("transient", 1, "failed with a transient error; this is retry 1 of 1. Another transient",
         "Task S1 failed again with a transient error"),
        ("logic", 3, "Do not repeat what failed.", "Task S1 failed after 3 retries"),
    ],
)  # fmt: skip
def test_error_is_retried_until_the_retries_are_used_up(
    agent: Agent, error_class: str, most: int, advice: str, reason: str
) -> None:
    start(agent, "goal", "g", "--step", "build")
    for retry in range(1, most + 1):
        agent.do(f"fail S1 --class {error_class} --error 'test {retry} fails'")
        text = agent.blocked()
        assert f"this is retry {retry} of {most}. " in text
        assert advice in text
        assert f"Next: Retry task S1 (build): retry {retry} of {most}." in text
        assert all(f"test {number} fails" in text for number in range(1, retry + 1))
        assert ("Verification has failed" in text) is (error_class == "logic")
    agent.do(f"fail S1 --class {error_class} --error 'test fails'")
    assert f"is paused (retries): {reason}" in agent.allowed()
    assert agent.status("status", "pause_code") == ("paused", "retries")


@pytest.mark.parametrize("error_class", ["blocking", "unknown"])
def test_blocking_or_unknown_error_pauses_and_loses_nothing(agent: Agent, error_class: str) -> None:
    loop = start(agent, *TWO_CRITERIA, "--step", "install")
    agent.do("criterion 'tests pass' met")
    agent.do(f"fail S1 --class {error_class} --error 'permission denied'")
    notice = agent.allowed()
    for part in (f"is paused ({error_class}): ", "permission denied", f"resume --loop {loop}"):
        assert part in notice
    assert agent.status("status", "pause_code") == ("paused", error_class)
    assert [criterion["met"] for criterion in agent.status("criteria")] == [True, False]

"""A spent limit pauses the loop with its code; activity is what the hook can see of work."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from tests.support.command_line import Here, git
from tests.support.hook_agent import Agent, kinds, start

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
CALM = (*GOAL, "--stuck-limit", "0", "--max-iterations", "0")
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


def pauses_with(agent: Agent, code: str, **how: Any) -> str:
    notice = agent.allowed(**how)
    assert kinds(agent.here)[-1] == f"pause {code}"
    assert f"paused ({code})" in notice
    why = agent.why()
    assert (why["decision"], why["code"]) == ("allow", code)
    assert agent.here.status()["pause_code"] == code
    assert agent.allowed(**how) == ""
    return notice


def blocks(agent: Agent, most: int, **how: Any) -> int:
    """How often the stop is blocked before it is allowed."""
    for count in range(most):
        if not agent.stop(**how) or agent.here.last()["type"] == "pause":
            return count
    return most


def test_iterations(agent: Agent) -> None:
    loop = start(agent, *GOAL, "--max-iterations", "2")
    assert "iteration 1/2" in agent.blocked()
    assert "iteration 2/2" in agent.blocked()
    notice = pauses_with(agent, "iterations")
    assert "2 of 2 iterations are used" in notice
    assert f"gsd-fsm --loop {loop} resume --add-iterations 10" in notice


def test_execute_loops_have_three_iterations_for_each_task(agent: Agent) -> None:
    tasks = [word for number in range(8) for word in ("--task", f"T{number}")]
    start(agent, "execute", *tasks)
    assert "iteration 1/24" in agent.blocked()


def test_unlimited_iterations_are_numbered(agent: Agent) -> None:
    start(agent, *CALM)
    assert "iteration 1 (" in agent.blocked()


def test_rounds_used_up_pause_the_loop_at_the_default_of_20(agent: Agent) -> None:
    loop = start(agent, "verify", "--idle-limit", "0", "--stuck-limit", "0")
    agent.blocked()
    for _ in range(20):
        assert agent.here.status()["status"] == "running"
        agent.here.ok("verified", "fail", env=agent.shell)
    assert agent.here.status()["pause_code"] == "rounds"
    notice = agent.allowed()
    assert "20 of 20 verification rounds are used" in notice
    assert f"gsd-fsm --loop {loop} resume --add-rounds 10" in notice


def test_stuck(agent: Agent) -> None:
    loop = start(agent, *GOAL, "--stuck-limit", "2", "--idle-limit", "0")
    for _ in range(2):
        agent.blocked()
    assert f"gsd-fsm --loop {loop} resume" in pauses_with(agent, "stuck")
    agent.here.ok("resume", env=agent.shell)
    assert blocks(agent, 5) == 2


def test_progress_just_before_the_stop_is_not_stuck(agent: Agent) -> None:
    start(agent, *GOAL, "--criterion", "told", "--stuck-limit", "2", "--idle-limit", "0")
    agent.blocked()
    agent.blocked()
    agent.here.ok("criterion", "2", "met", env=agent.shell)
    assert blocks(agent, 5) == 3


def test_repeated(agent: Agent) -> None:
    loop = start(agent, *CALM, "--idle-limit", "0")
    for _ in range(3):
        assert agent.here.status()["status"] != "paused"
        agent.here.ok("fail", "--error", "boom", "--class", "logic", env=agent.shell)
    assert agent.here.status()["pause_code"] == "repeated"
    notice = agent.allowed()
    assert "the same error occurred 3 times: boom" in notice
    assert f"gsd-fsm --loop {loop} resume" in notice


def test_budget(agent: Agent) -> None:
    start(agent, *CALM, "--budget", "1")
    agent.here.ok("spend", "1.5", env=agent.shell)
    assert agent.here.status()["pause_code"] == "budget"
    notice = agent.allowed()
    assert "1.50 of 1.00 USD" in notice
    assert "resume --add-budget" in notice


def test_minutes_count_active_time_only(agent: Agent) -> None:
    start(agent, *CALM, "--max-minutes", "0.001")
    time.sleep(0.1)
    notice = pauses_with(agent, "minutes")
    assert "resume --add-minutes" in notice


@pytest.mark.parametrize("code", ["retries", "blocking", "unknown"])
def test_a_failure_that_pauses_lets_the_agent_stop_and_tells_the_user(
    agent: Agent, code: str
) -> None:
    start(agent, "execute", "--task", "T1", "--max-retries", "1")
    kind = "logic" if code == "retries" else code
    for _ in range(2 if code == "retries" else 1):
        agent.here.ok("fail", "T1", "--error", "boom", "--class", kind, env=agent.shell)
    assert f"paused ({code})" in agent.allowed()
    assert kinds(agent.here)[-1] == "stop paused"
    assert agent.allowed() == ""


# idle


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_an_idle_limit_of_n_gives_n_blocks(agent: Agent, limit: int) -> None:
    start(agent, *CALM, "--idle-limit", str(limit))
    agent.talks()
    assert blocks(agent, 12) == limit
    assert agent.here.status()["pause_code"] == "idle"
    assert agent.here.last()["data"]["reason"].startswith(
        f"no activity in {limit} consecutive blocks"
    )


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
def test_the_idle_guard_stays_inside_the_cap_of_the_client(
    agent: Agent, limit: str, cap: str | None, expected: int
) -> None:
    start(agent, *CALM, "--idle-limit", limit)
    assert blocks(agent, 12, env={CAP: cap} if cap is not None else {}) == expected
    if expected < 12 and int(limit) != expected:
        assert (
            f"the client would end the turn itself after {expected}"
            in (agent.here.last()["data"]["reason"])
        )


def test_tool_calls_between_the_stops_go_beyond_the_cap(agent: Agent) -> None:
    start(agent, *CALM)
    for _ in range(12):
        agent.blocked()
        agent.talks()
        agent.uses_a_tool()
        agent.talks()
    assert agent.here.last()["data"]["activity"] is True


def test_only_the_new_part_of_the_transcript_counts(agent: Agent) -> None:
    start(agent, *CALM, "--idle-limit", "2")
    agent.uses_a_tool()
    agent.prompt()
    assert blocks(agent, 9) == 2
    agent.here.ok("resume", env=agent.shell)
    assert blocks(agent, 9) == 2


def test_words_about_a_tool_call_are_no_tool_call(agent: Agent) -> None:
    start(agent, *CALM, "--idle-limit", "2")
    agent.prompt()
    agent.blocked()
    for _ in range(2):
        agent.talks('{"type":"tool_use","functionCall":1,"toolCalls":[]}')
        agent.stop()
    assert agent.here.status()["pause_code"] == "idle"


def test_a_tool_call_is_seen_in_a_long_transcript(agent: Agent) -> None:
    start(agent, *CALM, "--idle-limit", "1")
    agent.talks()
    agent.blocked()
    agent.talks("x" * 700_000)
    agent.uses_a_tool()
    agent.talks("y" * 700_000)
    agent.blocked()
    assert agent.here.last()["data"]["activity"] is True


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "nul", "surrogate"])
def test_a_transcript_that_is_none_is_no_activity(agent: Agent, kind: str) -> None:
    start(agent, *CALM, "--idle-limit", "2")
    path = str(agent.transcript)
    agent.transcript.parent.mkdir(parents=True)
    if kind == "directory":
        agent.transcript.mkdir()
    elif kind == "fifo":
        os.mkfifo(agent.transcript)
    elif kind == "nul":
        path += "\0"
    elif kind == "surrogate":
        path += "\ud800"
    assert blocks(agent, 5, transcript_path=path) == 2
    assert agent.here.status()["pause_code"] == "idle"


def test_events_of_agents_and_humans_are_activity(agent: Agent) -> None:
    start(agent, *CALM, "--idle-limit", "1")
    for env in (agent.shell, {}):
        agent.blocked()
        agent.here.ok("note", "at work", env=env)
        assert "at work" in agent.blocked()
        agent.here.ok("note", "more", env=env)
    agent.blocked()
    agent.allowed()


def test_a_human_prompt_is_activity_and_a_machine_prompt_is_not(agent: Agent) -> None:
    start(agent, *CALM, "--idle-limit", "1")
    agent.blocked()
    agent.prompt("really?")
    agent.blocked()
    agent.prompt("<task-notification>\n<task-id>b1</task-id>")
    agent.allowed()
    assert agent.here.status()["pause_code"] == "idle"


def test_a_commit_is_activity(agent: Agent, repository: Here) -> None:
    start(agent, *CALM, "--idle-limit", "1")
    agent.blocked()
    git(repository.root, "commit", "-qm", "more", "--allow-empty")
    agent.blocked()
    assert agent.here.last()["data"]["activity"] is True
    git(repository.root, "pack-refs", "--all")
    agent.allowed()
    assert agent.here.status()["pause_code"] == "idle"


def test_a_first_commit_is_activity(agent: Agent) -> None:
    git(agent.here.root, "init", "-q", "--template=")
    start(agent, *CALM, "--idle-limit", "1")
    agent.blocked()
    git(agent.here.root, "commit", "-qm", "first", "--allow-empty")
    agent.blocked()


def test_a_commit_in_a_linked_worktree_is_activity(agent: Agent, repository: Here) -> None:
    git(repository.root, "worktree", "add", "-q", str(repository.root.parent / "tree"))
    agent.here.root = repository.root.parent / "tree"
    moved = Here(agent.here.root, repository.patch)
    agent = Agent(moved, agent.place)
    start(agent, *CALM, "--idle-limit", "1")
    agent.blocked()
    git(moved.root, "commit", "-qm", "more", "--allow-empty")
    agent.blocked()
    agent.allowed()

"""The hook asks the user only once no task is running, so that every report is accepted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hook_agent import Agent
from tests.support.plan_loops import THREE_TASKS

COMPLETE, CHECKPOINT, FAILED = "TASK COMPLETE", "CHECKPOINT: Which one?", "TASK FAILED: no idea"


def begin(agent: Agent, kind: str, mode: str = "interactive") -> None:
    """Start a loop with the plan, in the session of the agent."""
    path = agent.here.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    path.parent.mkdir(parents=True)
    path.write_text(THREE_TASKS)
    agent.here.start(kind, "--phase", "1", "--mode", mode, env=agent.shell)


def run_tasks(agent: Agent, *names: str) -> None:
    for name in names:
        agent.here.ok("task", name, "running", env=agent.shell)


def report(agent: Agent, name: str, words: str) -> Any:
    answer = agent.here.ok("report", name, "--json", env=agent.shell, stdin=words.encode())
    return answer.json


@pytest.fixture
def two_tasks(agent: Agent) -> Agent:
    """An execute loop whose first wave, T01 and T02, is running."""
    begin(agent, "execute")
    agent.here.ok("answer", "y", env={})
    run_tasks(agent, "T01", "T02")
    return agent


@pytest.fixture
def two_fixes(agent: Agent) -> Agent:
    """A verify loop in which the fixes of two of its gaps, G1 and G2, are running."""
    begin(agent, "verify")
    (agent.here.root / "03.py").write_text("")
    agent.here.run("verify", env=agent.shell)
    agent.here.ok("answer", "y", env={})
    run_tasks(agent, "G1", "G2")
    return agent


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (COMPLETE, "Continue to Wave 2?"),
        (CHECKPOINT, "Task T01 needs a decision: Which one?"),
        (FAILED, "Task T01 failed. Retry? (0/3 attempts used) [Y/n]"),
    ],
)
def test_stop_while_a_parallel_task_runs_is_blocked_and_asked_after_its_report(
    two_tasks: Agent, words: str, question: str
) -> None:
    agent = two_tasks
    assert report(agent, "T01", words)["status"] != "waiting"

    agent.blocked()

    answer = report(agent, "T02", COMPLETE)
    assert (answer["verdict"], answer["status"]) == ("complete", "waiting")
    assert question in agent.allowed()


def test_checkpoint_in_yolo_mode_waits_for_a_parallel_task(agent: Agent) -> None:
    begin(agent, "execute", "yolo")
    run_tasks(agent, "T01", "T02")
    assert report(agent, "T01", CHECKPOINT)["status"] == "running"

    agent.blocked()

    assert report(agent, "T02", COMPLETE)["status"] == "waiting"
    assert "Task T01 needs a decision: Which one?" in agent.allowed()


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (CHECKPOINT, "Task G1 needs a decision: Which one?"),
        (FAILED, "Task G1 failed. Retry? (0/3 attempts used) [Y/n]"),
    ],
)
def test_stop_while_a_parallel_fix_runs_is_blocked_and_asked_after_its_report(
    two_fixes: Agent, words: str, question: str
) -> None:
    agent = two_fixes
    assert report(agent, "G1", words)["status"] != "waiting"

    agent.blocked()

    answer = report(agent, "G2", COMPLETE)
    assert (answer["verdict"], answer["status"]) == ("complete", "waiting")
    assert question in agent.allowed()


def test_gap_found_while_fixes_run_is_asked_about_after_their_reports(two_fixes: Agent) -> None:
    agent = two_fixes
    agent.here.ok("gap", "found", "--description", "one more", env=agent.shell)

    agent.blocked()

    assert report(agent, "G1", COMPLETE)["status"] == "fixing"
    agent.blocked()
    assert report(agent, "G2", COMPLETE)["status"] == "waiting"
    assert "Verification found 1 gap. Attempt automatic fix?" in agent.allowed()


def test_gap_found_while_fixes_run_keeps_other_fixes_from_starting(two_fixes: Agent) -> None:
    agent = two_fixes
    agent.here.ok("gap", "found", "--description", "one more", env=agent.shell)

    answer = agent.here.refused(4, "task", "G3", "running", env=agent.shell)

    assert "gap G3 is waiting for your decision" in answer.err

"""The end of a subagent: verdicts of a reviewer, and a task that nobody reported."""

from __future__ import annotations

from typing import Any

from tests.support.hook_agent import Agent
from tests.support.plan_loops import YOLO, start_plan, task_state
from tests.support.verification import document, failed_round, lay, start_verify, task

JUDGED = task("01", [("file", "a.txt exists"), ("manual", "The text is kind")], "a.txt")


def ends(agent: Agent, name: str, message: str) -> None:
    """Send the end of a subagent."""
    facts: dict[str, Any] = {"agent_id": name, "agent_type": "reviewer", "stop_hook_active": False}
    signal = agent.signal("SubagentStop", last_assistant_message=message, **facts)
    assert agent.send(signal) is None


def verifying(agent: Agent) -> None:
    """Start a verify loop of this session whose checks pass and which needs a verdict on T01#2."""
    start_verify(agent.here, JUDGED)
    agent.here.ok("resume", env=agent.shell)
    lay(agent.here.root, {"a.txt": "kind"})
    found = agent.here.ok("verify", "--json", env=agent.shell).json
    assert found["verdicts"] == ["T01#2"]


def test_verdict_lines_at_the_end_of_a_subagent_are_recorded_with_its_id(agent: Agent) -> None:
    verifying(agent)
    before = agent.here.journal.read_bytes()
    for message in (
        "VERDICT T01#2 PASS: read it\nBut who knows.",
        "VERDICT T01#2 PASS:",
        "It passes.",
    ):
        ends(agent, "r-1", message)
    assert agent.here.journal.read_bytes() == before
    ends(
        agent, "r-1", "I read a.txt.\n\n**VERDICT T01#2 PASS: it says kind**\nVERDICT X PASS: no\n"
    )
    event = agent.here.last()
    assert (event["by"], event["v"]) == ("hook", 2)
    assert event["data"] == {
        "verdict": "T01#2", "passed": True, "evidence": "it says kind", "agent": "r-1",
    }  # fmt: skip
    shown = agent.here.ok("complete", env=agent.shell).out
    assert "1 verdict by an agent" in shown


def test_failed_verdict_of_a_subagent_opens_a_gap(agent: Agent) -> None:
    verifying(agent)
    ends(agent, "r-1", "VERDICT T01#2 FAIL: it is rude")
    assert agent.status("status", "gaps_remaining") == ("fixing", 1)
    assert agent.status("gaps")[0]["evidence"] == "it is rude"
    agent.refused("complete")


def test_subagent_cannot_judge_the_gap_that_it_fixed(agent: Agent) -> None:
    verifying(agent)
    agent.do("gap found --kind orphan --file a.txt --description 'nobody imports it'")
    agent.do("task G1 running --ref f-1")
    agent.here.ok("report", "G1", stdin=b"TASK COMPLETE", env=agent.shell)
    found = agent.here.ok("verify", "--json", env=agent.shell).json
    assert found["verdicts"] == ["T01#2", "G1"]
    ends(agent, "f-1", "VERDICT T01#2 PASS: kind\nVERDICT G1 PASS: it is imported")
    assert "no verdict on G1" in agent.refused("complete")
    ends(agent, "r-1", "VERDICT G1 PASS: menu.ts imports it")
    agent.do("complete")


def test_verdict_before_a_round_that_passed_is_ignored(agent: Agent) -> None:
    verifying(agent)
    (agent.here.root / "a.txt").unlink()
    failed_round(agent.here)
    before = agent.here.journal.read_bytes()
    ends(agent, "r-1", "VERDICT T01#2 PASS: kind")
    assert agent.here.journal.read_bytes() == before
    lay(agent.here.root, {"a.txt": "kind"})
    agent.do("verify", "gap found --description 'nobody imports it'")
    before = agent.here.journal.read_bytes()
    ends(agent, "r-1", "VERDICT T01#2 PASS: kind\nVERDICT T01#2 FAIL: not kind")
    assert (
        agent.err.count("needs a round that passed before verdicts") == 1
    )  # a hook prints one line
    assert agent.here.journal.read_bytes() == before


def test_task_of_a_subagent_that_ended_without_a_report_fails_after_two_idle_stops(
    agent: Agent,
) -> None:
    start_plan(
        agent.here,
        *YOLO,
        plan=document(task("01", [("file", "a.txt exists")], "a.txt")),
        env=agent.shell,
    )
    agent.do("task T01 running --ref a-1")
    ends(agent, "a-2", "TASK COMPLETE")
    ends(agent, "a-1", "TASK COMPLETE")
    for _ in range(2):
        agent.blocked()
        assert task_state(agent.here)["status"] == "running"
    agent.blocked()
    assert task_state(agent.here)["status"] == "failed"
    failure = next(event for event in agent.here.lines() if event["type"] == "failure")
    assert failure["data"]["error"] == "the subagent ended without a report"
    assert (failure["data"]["class"], failure["by"]) == ("logic", "hook")

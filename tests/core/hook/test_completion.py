"""A loop that is done ends at the next stop; a model that only says so goes on."""

from __future__ import annotations

import pytest

from tests.support.command_line import Here
from tests.support.hook_agent import SUBAGENT, Agent, kinds, start

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
TAG, END = "<loop-complete>", "</loop-complete>"
CLAIMS = {
    "closing element": f"All is done.\n{TAG}shipped{END}",
    "alone": f"{TAG}{END}",
    "bare last line": f"All is done.\n{TAG}",
    "blanks after": f"All is done.\n\n  {TAG}  \n\n",
    "windows lines": f"All is done.\r\n{TAG}\r\n",
    "several lines": f"{TAG}\nshipped\nand told\n{END}",
    "after a fence": f"```sh\nmake\n```\n{TAG}ok{END}",
    "after a tilde fence": f"~~~\n```\n~~~\n{TAG}",
    "after code on one line": f"```make test``` passes.\n\n{TAG}",
    "after a longer fence": f"````md\n```\nmake\n```\n````\n{TAG}",
}
NO_CLAIMS = {
    "nothing": "",
    "in the middle": f"{TAG}\nBut there is more to do.",
    "element in the middle": f"{TAG}done{END} is what I shall write later.",
    "in prose": f"I shall end with {TAG}",
    "as code": f"Write `{TAG}done{END}`",
    "inside a fence": f"```\n{TAG}done{END}\n```",
    "inside an open fence": f"```\n{TAG}done{END}",
    "bare inside an open fence": f"~~~xml\n{TAG}",
    "inside a longer fence": f"````\n```\n{TAG}done{END}",
    "end without begin": f"done{END}",
    "another tag": "<loop-completed>",
}


@pytest.mark.parametrize("message", CLAIMS.values(), ids=CLAIMS)
def test_the_mark_is_the_exit_signal_when_every_criterion_is_met(
    agent: Agent, message: str
) -> None:
    start(agent, *GOAL)
    agent.here.ok("criterion", "1", "met", env=agent.shell)
    notice = agent.allowed(message)
    assert kinds(agent.here)[-2:] == ["exit", "complete"]
    assert "completed after 0 iterations" in notice
    assert agent.here.status()["status"] == "completed"


@pytest.mark.parametrize("message", NO_CLAIMS.values(), ids=NO_CLAIMS)
def test_what_only_looks_like_the_mark_is_none(agent: Agent, message: str) -> None:
    start(agent, *GOAL)
    agent.here.ok("criterion", "1", "met", env=agent.shell)
    text = agent.blocked(message)
    assert "You wrote" not in text
    assert "exit-signal" in text


def test_the_mark_with_unmet_criteria_changes_only_the_text(agent: Agent) -> None:
    start(agent, *GOAL)
    text = agent.blocked(f"Done.\n{TAG}")
    assert "You wrote <loop-complete>, but the loop is not done." in text
    assert "criterion not met: it is shipped" in text
    assert kinds(agent.here)[-1] == "iteration continue"
    assert agent.here.status()["exit_signal"] is False


def test_the_mark_does_not_replace_a_review(agent: Agent) -> None:
    start(agent, "goal", "Ship it")
    agent.here.ok("review", "begun", env=agent.shell)
    agent.here.ok("review", "failed", "--blockers", "1", env=agent.shell)
    text = agent.blocked(TAG)
    assert "the thorough review has not passed" in text
    assert kinds(agent.here)[-2:] == ["exit", "iteration continue"]


@pytest.mark.parametrize("kind", ["execute", "verify"])
def test_the_mark_completes_no_other_kind(agent: Agent, kind: str) -> None:
    start(agent, kind, *(("--task", "T1") if kind == "execute" else ()))
    text = agent.blocked(f"{TAG}done{END}")
    assert "You wrote <loop-complete>, but the loop is not done." in text


def test_the_mark_of_a_subagent_completes_nothing(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("criterion", "1", "met", env=agent.shell)
    before = agent.here.journal.read_bytes()
    ended = agent.signal(
        "SubagentStop",
        **{
            **agent.stop_signal(f"{TAG}done{END}"),
            "hook_event_name": "SubagentStop",
            "agent_id": "a1",
            "agent_type": "general-purpose",
        },
    )
    assert agent.send(ended) is None
    assert agent.here.journal.read_bytes() == before


def test_an_execute_loop_completes_when_no_task_is_left(agent: Agent) -> None:
    start(agent, "execute", "--task", "T1", "--task", "T2")
    agent.blocked()
    agent.here.ok("task", "T1", "running", env=agent.shell)
    agent.here.ok("task", "T1", "complete", env=agent.shell)
    assert "task T2 is pending" in agent.blocked()
    agent.here.ok("task", "T2", "skipped", env=agent.shell)
    assert "completed after 2 iterations" in agent.allowed()
    why = agent.here.ok("why", "--json").json
    assert (why["decision"], why["code"]) == ("allow", "complete")
    assert agent.here.status()["owner"] == "s-1"


def test_a_verify_loop_completes_after_a_pass(agent: Agent) -> None:
    start(agent, "verify")
    assert "verified pass" in agent.blocked()
    agent.here.ok("gap", "found", "--description", "no test", env=agent.shell)
    assert "no test" in agent.blocked()
    gap = next(iter(agent.here.status()["gaps"]))
    name = gap["id"] if isinstance(gap, dict) else gap
    agent.here.ok("gap", "close", name, env=agent.shell)
    assert "verified pass" in agent.blocked()
    agent.here.ok("verified", "pass", env=agent.shell)
    assert "completed" in agent.allowed()


def test_a_goal_loop_needs_both_conditions(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("criterion", "1", "met", env=agent.shell)
    assert "exit-signal" in agent.blocked()
    agent.here.ok("exit-signal", env=agent.shell)
    agent.allowed()
    assert agent.here.status()["status"] == "completed"


def test_evidence_without_a_tree_completes(agent: Agent) -> None:
    start(agent, "goal", "Ship it", "--check", "t=true")
    agent.here.ok("check", env=agent.shell)
    agent.here.ok("exit-signal", env=agent.shell)
    assert "completed" in agent.allowed()


def test_evidence_with_a_tree_is_left_to_the_complete_command(
    agent: Agent, repository: Here
) -> None:
    loop = start(agent, "goal", "Ship it", "--check", "t=true")
    agent.here.ok("check", env=agent.shell)
    text = agent.blocked(TAG)
    assert kinds(agent.here)[-2:] == ["exit", "iteration continue"]
    assert f"Run: gsd-fsm --loop {loop} complete" in text
    assert "complete" in agent.why()["why"]
    (repository.root / "code.py").write_text("two\n")
    assert agent.here.run("complete", env=agent.shell).code == 4
    assert f"gsd-fsm --loop {loop} check" in agent.blocked(TAG)
    agent.here.ok("check", env=agent.shell)
    agent.here.ok("exit-signal", env=agent.shell)
    agent.here.ok("complete", env=agent.shell)
    assert agent.stop() is None


def test_a_failing_check_is_quoted_with_its_command(agent: Agent) -> None:
    start(agent, "goal", "Ship it", "--check", "t=echo it is red; exit 3")
    assert agent.here.run("check", env=agent.shell).code == 7
    text = agent.blocked(TAG)
    assert "it is red" in text
    assert "exit code 3" in text
    assert "You wrote <loop-complete>, but" in text


def test_running_subagents_come_before_completion(agent: Agent) -> None:
    start(agent, "execute", "--task", "T1")
    agent.here.ok("task", "T1", "skipped", env=agent.shell)
    agent.allowed(background_tasks=[{**SUBAGENT, "id": "a1"}])
    assert agent.here.status()["status"] == "running"
    agent.allowed()
    assert agent.here.status()["status"] == "completed"


def test_a_final_loop_stays_silent(agent: Agent) -> None:
    start(agent, "execute", "--task", "T1")
    agent.here.ok("task", "T1", "skipped", env=agent.shell)
    agent.allowed()
    before = agent.here.journal.read_bytes()
    assert agent.stop() is None
    assert agent.prompt() == ""
    assert agent.here.journal.read_bytes() == before

"""`resume --add-retries`: exactly these attempts, each with a number of its own, and no question."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command_line import Here
from tests.support.hook_agent import Agent
from tests.support.plan_loops import start_planned

AGENT = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}


def fail(here: Here, name: str = "T01") -> Any:
    answer = here.ok("report", name, "--json", env=AGENT, stdin=b"TASK FAILED: no idea\n")
    return answer.json


def retry_numbers(here: Here, name: str = "T01") -> list[str]:
    """Let a task fail until the loop pauses; return what the reports say of its retries."""
    numbers = []
    while True:
        shown = here.ok("report", name, env=AGENT, stdin=b"TASK FAILED: no idea\n").out
        if here.status()["status"] == "paused":
            return numbers
        numbers.append(shown.partition("Retry ")[2].partition(".")[0])


@pytest.mark.parametrize(("added", "numbers"), [("1", []), ("3", ["5 of 6", "6 of 6"])])
def test_add_retries_grants_as_many_attempts_with_new_numbers(
    here: Here, added: str, numbers: list[str]
) -> None:
    start_planned(here)
    assert retry_numbers(here) == ["1 of 3", "2 of 3", "3 of 3"]

    here.ok("resume", "--add-retries", added)

    assert here.last()["data"]["retry"] == ["T01"]
    assert here.status()["task_retries"]["T01"] == 4
    assert retry_numbers(here) == numbers
    assert here.status()["pause_code"] == "retries"


@pytest.mark.parametrize("relayed", [False, True])
def test_add_retries_in_interactive_mode_does_not_ask_to_retry(agent: Agent, relayed: bool) -> None:
    here = agent.here
    start_planned(here, "interactive", "execute_max_retries = 0\n")
    here.ok("answer", "y")
    assert fail(here)["status"] == "paused"

    if relayed:
        agent.context("UserPromptSubmit", prompt="grant it one more retry")
    answer = here.ok("resume", "--add-retries", "1", "--json", env=AGENT if relayed else {}).json
    if not relayed:
        agent.context("UserPromptSubmit", prompt="go on")

    assert answer["status"] == "running"
    assert "T01" in agent.blocked()
    here.ok("task", "T01", "running", env=AGENT)
    assert fail(here)["status"] == "paused"


def test_add_retries_by_an_agent_without_a_user_prompt_is_refused(agent: Agent) -> None:
    here = agent.here
    start_planned(here, "interactive", "execute_max_retries = 0\n")
    here.ok("answer", "y")
    agent.blocked()
    fail(here)

    answer = here.refused(4, "resume", "--add-retries", "1", env=AGENT)

    assert "until the user sends a message" in answer.err

"""Stops of a loop whose check depends on an altered file: named once, blocked once more, paused."""

from __future__ import annotations

import pytest

from tests.support.command_line import without_loop
from tests.support.events import write
from tests.support.hook_agent import Agent, kinds, start

PASSES, WEAKER = "test -e done.txt\n", "exit 0\n"
ADVICE = "protected file check.sh was changed, and check t depends on it"


@pytest.fixture
def tempted(agent: Agent) -> Agent:
    """Return an agent whose loop has a check that runs check.sh, and another criterion."""
    write(agent.here.root / "check.sh", PASSES)
    start(agent, "goal", "g", "--check", "t=sh check.sh", "--criterion", "c")
    return agent


def weaken(agent: Agent) -> None:
    """Overwrite the script, and run the check as the agent."""
    write(agent.here.root / "check.sh", WEAKER)
    assert agent.here.run("check", env=agent.shell).code == 7


def held(agent: Agent) -> None:
    """Let nothing but the altered check be left, and stop once."""
    weaken(agent)
    agent.do("criterion c met")
    agent.blocked()


def test_altered_file_is_named_once_while_other_work_is_open(tempted: Agent) -> None:
    weaken(tempted)
    tempted.uses_a_tool()
    first = without_loop(tempted.blocked())
    assert first.count(ADVICE) == 1
    assert "Run: gsd-fsm restore t" in first
    assert tempted.here.last()["data"]["altered"] == ["check.sh"]
    for _ in range(3):
        tempted.uses_a_tool()
        assert ADVICE not in tempted.blocked()
    assert "pause altered" not in kinds(tempted.here)


def test_file_that_only_altered_checks_are_left_for_blocks_once_more_then_pauses(
    tempted: Agent,
) -> None:
    held(tempted)
    assert tempted.here.last()["data"]["code"] == "altered"
    text = without_loop(str(tempted.here.last()["data"]["reason"]))
    assert f"Only altered checks are left: {ADVICE}" in text
    assert "Run: gsd-fsm restore t" in text
    told = without_loop(tempted.allowed())
    assert "is paused (altered): " + ADVICE in told
    assert "To accept the change, run: gsd-fsm accept t; to undo it: gsd-fsm restore t" in told
    assert tempted.here.status()["pause_code"] == "altered"


def test_restored_file_lets_the_work_go_on_without_a_pause(tempted: Agent) -> None:
    held(tempted)
    tempted.do("restore t")
    assert "gsd-fsm check" in without_loop(tempted.blocked())
    write(tempted.here.root / "done.txt", "")
    tempted.do("check", "complete")
    assert tempted.here.status()["status"] == "completed"


def test_file_altered_again_after_a_restore_is_named_again(tempted: Agent) -> None:
    held(tempted)
    tempted.do("restore t")
    weaken(tempted)
    assert ADVICE in tempted.blocked()
    assert "is paused (altered)" in tempted.allowed()


def test_resume_gives_one_more_chance(tempted: Agent) -> None:
    held(tempted)
    tempted.allowed()
    tempted.here.ok("resume", env=tempted.shell)
    assert ADVICE in tempted.blocked()
    assert "is paused (altered)" in tempted.allowed()


def test_accept_during_the_pause_lets_the_loop_complete(tempted: Agent) -> None:
    held(tempted)
    tempted.allowed()
    told = without_loop(tempted.here.ok("accept", "t").out)
    assert "Run: gsd-fsm complete" in told
    assert "Accepted changes: check.sh." in tempted.here.ok("complete").out
    assert "Accepted changes: check.sh." in tempted.allowed()


def test_agent_restores_and_completes_after_the_pause_at_the_prompt_of_the_user(
    tempted: Agent,
) -> None:
    held(tempted)
    tempted.allowed()
    told = without_loop(tempted.prompt("go on"))
    assert "check.sh" in told
    assert "run: gsd-fsm restore t" in told
    tempted.do("restore t")
    write(tempted.here.root / "done.txt", "")
    tempted.do("check", "complete")


def test_failing_check_with_altered_file_is_no_reason_to_pause(tempted: Agent) -> None:
    tempted.do("criterion c met")
    write(tempted.here.root / "check.sh", "exit 3\n")
    for _ in range(3):
        assert tempted.here.run("check", env=tempted.shell).code == 7
        tempted.uses_a_tool()
        tempted.blocked()
    assert "pause altered" not in kinds(tempted.here)

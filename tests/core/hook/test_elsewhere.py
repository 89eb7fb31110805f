"""A human speaks in another session: what stands still may go on from there, all else is left alone."""

from __future__ import annotations

import pytest

from tests.support.hook_agent import Agent, start


@pytest.mark.parametrize(
    ("stands", "command"),
    [
        ("spend 2", "resume --add-budget 10"),
        ("spend 2", "cancel"),
        ("wait Which?", "answer this"),
        ("wait Which?", "resume"),
    ],
)
def test_a_human_who_speaks_elsewhere_sets_a_standing_loop_going_from_there(
    agent: Agent, stands: str, command: str
) -> None:
    loop = start(agent, "goal", "g", "--budget", "1")
    agent.here.ok(*stands.split(), env=agent.shell)
    later, third = agent.other("s-2"), agent.other("s-3")
    assert f"--loop {loop} resume" in later.starts()
    named = ("--loop", loop, *command.split())
    assert "until the user sends a message" in agent.here.refused(4, *named, env=later.shell).err
    later.context("UserPromptSubmit", prompt="<task-notification>\n", permission_mode="default")
    agent.here.refused(4, *named, env=later.shell)
    assert later.prompt("go on with it") == ""
    before = agent.here.journal.read_bytes()
    later.prompt("and again")
    assert agent.new(before) == []  # once is enough
    for other in (agent, third):  # nobody has spoken to these
        agent.here.refused(4, *named, env=other.shell)
    agent.here.ok(*named, env=later.shell)


def test_a_prompt_elsewhere_says_nothing_to_a_loop_at_work(agent: Agent) -> None:
    start(agent, "goal", "g")
    before = agent.here.journal.read_bytes()
    agent.other("s-2").prompt("something else")
    assert agent.new(before) == []


def test_who_has_spoken_elsewhere_is_forgotten_when_the_loop_goes_on(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--budget", "1")
    agent.here.ok("pause", env=agent.shell)
    later = agent.other("s-2")
    later.prompt("look at it")
    agent.here.ok("resume", env=agent.shell)
    agent.here.ok("spend", "2", env=agent.shell)
    named = ("--loop", loop, "resume", "--add-budget", "10")
    agent.here.refused(4, *named, env=later.shell)


def test_a_loop_for_one_session_stays_where_the_user_only_looks_into_another(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--session-only")
    agent.ends("resume")
    assert agent.here.status()["status"] == "running"
    assert loop in agent.starts("resume")
    agent.blocked()


def test_a_session_with_a_loop_of_its_own_is_heard_for_others_too(agent: Agent) -> None:
    standing = start(agent, "goal", "g")
    agent.here.ok("iterate", env=agent.shell)
    agent.here.ok("pause", env=agent.shell)
    other = agent.other("s-2")
    start(other, "goal", "h")
    agent.here.refused(4, "--loop", standing, "cancel", env=other.shell)
    other.prompt("cancel the other one")
    agent.here.ok("--loop", standing, "cancel", env=other.shell)

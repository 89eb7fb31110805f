"""A loop belongs to one session: it alone is blocked, and ownership moves only by the rules."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import Here
from tests.support.hook_agent import Agent, call, kinds, start, told

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")


def owner(here: Here) -> str | None:
    return here.status()["owner"]


def test_the_first_human_prompt_binds_and_is_told(agent: Agent) -> None:
    loop = agent.here.start(*GOAL)
    assert owner(agent.here) is None
    agent.starts()
    assert agent.stop() is None
    assert owner(agent.here) is None
    text = agent.prompt("please ship it")
    assert "This session now owns the loop" in text
    assert loop in text
    assert "Ship it" in text
    assert owner(agent.here) == "s-1"
    assert kinds(agent.here)[-2:] == ["session bind", "session prompt"]
    assert agent.prompt("and now?") == ""
    agent.blocked()


@pytest.mark.parametrize(
    "prompt",
    [
        "<task-notification>\n<task-id>b1</task-id>\n</task-notification>",
        "\n  <task-notification>",
        "<system-reminder>x</system-reminder>",
    ],
)
def test_machine_prompts_bind_nothing_and_count_as_no_human(agent: Agent, prompt: str) -> None:
    agent.here.start(*GOAL)
    before = agent.here.journal.read_bytes()
    assert agent.prompt(prompt) == ""
    assert agent.here.journal.read_bytes() == before
    agent.prompt()
    agent.here.ok("wait", "Which?", env=agent.shell)
    agent.prompt(prompt)
    assert agent.here.run("answer", "the first", env=agent.shell).code == 4
    agent.prompt("the first")
    agent.here.ok("answer", "the first", env=agent.shell)


@pytest.mark.parametrize("session", ["", "   ", None, 7, ["s-1"]])
def test_a_session_without_an_id_matches_nothing(agent: Agent, session: object) -> None:
    agent.here.start(*GOAL)
    before = agent.here.journal.read_bytes()
    for signal in (agent.stop_signal(), agent.signal("UserPromptSubmit", prompt="hi")):
        for members in ({**signal, "session_id": session}, signal):
            if members is signal:
                del members["session_id"]
            assert agent.send(members) is None
    assert agent.here.journal.read_bytes() == before


@pytest.mark.parametrize(
    "session", ["x" * 500, "two words", "tab\there", "ünï", "\ud800", "a" * 200, "line\nbreak"]
)
def test_odd_ids_own_and_are_told_apart(agent: Agent, session: str) -> None:
    agent.here.start(*GOAL)
    odd = Agent(agent.here, agent.place, session)
    odd.transcript = agent.transcript
    assert "owns the loop" in odd.prompt()
    odd.blocked()
    near = Agent(agent.here, agent.place, session + "x")
    near.transcript = agent.transcript
    assert near.stop() is None
    assert agent.stop() is None


def test_two_ids_that_differ_in_a_lone_surrogate_are_two_sessions(agent: Agent) -> None:
    agent.here.start(*GOAL)
    agent.send({**agent.signal("UserPromptSubmit", prompt="hi"), "session_id": "a\ud800"})
    assert agent.send({**agent.stop_signal(), "session_id": "a\ud801"}) is None
    assert told(agent.send({**agent.stop_signal(), "session_id": "a\ud800"}))


def test_start_in_a_session_owns_at_once(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    assert kinds(agent.here) == ["journal", "start", "iteration continue"]


def test_resume_of_the_client_keeps_the_loop(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    agent.ends()
    text = agent.starts("resume", env={"CLAUDE_PID": "4800"})
    assert text.startswith("[LOOP RESUME] Active loop detected")
    assert "Iteration: 1 of 20" in text
    agent.blocked()
    assert owner(agent.here) == "s-1"


@pytest.mark.parametrize("ended", [True, False])
def test_clear_is_followed_through_the_client_process(agent: Agent, ended: bool) -> None:
    start(agent, *GOAL)
    agent.starts()
    if ended:
        agent.ends("clear")
    heir = agent.other("s-2", CLAUDE_PID="4711")
    assert heir.starts("clear").startswith("[LOOP RESUME]")
    assert owner(agent.here) == "s-2"
    heir.blocked()
    assert agent.stop() is None


def test_clear_follows_a_loop_that_the_session_started_itself(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    agent.ends("clear")
    heir = agent.other("s-2", CLAUDE_PID="4711")
    assert "[LOOP RESUME]" in heir.starts("clear")
    heir.blocked()


@pytest.mark.parametrize("pid", ["4712", "0", "", "-4711", "abc", "4711x"])
def test_clear_in_another_process_takes_nothing(agent: Agent, pid: str) -> None:
    loop = start(agent, *GOAL)
    agent.starts()
    agent.ends("clear")
    stranger = agent.other("s-2", CLAUDE_PID=pid)
    text = stranger.starts("clear")
    assert "[LOOP RESUME]" not in text
    assert f"{loop} (goal, running)" in text
    assert "belongs to session s-1" in text
    assert stranger.stop() is None


@pytest.mark.parametrize("source", ["startup", "resume", "compact", "fork"])
def test_only_clear_follows_the_process(agent: Agent, source: str) -> None:
    start(agent, *GOAL)
    agent.starts()
    same = agent.other("s-2", CLAUDE_PID="4711")
    assert "belongs to session s-1" in same.starts(source)
    assert owner(agent.here) == "s-1"


def test_a_cleared_session_takes_no_loop_that_was_resumed_elsewhere(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.starts()
    second = agent.other("s-2")
    agent.here.ok("resume", env=second.shell)
    assert owner(agent.here) == "s-2"
    agent.ends("clear")
    heir = agent.other("s-3", CLAUDE_PID="4711")
    heir.starts("clear")
    assert owner(agent.here) == "s-2"
    second.blocked()
    assert heir.stop() is None


def test_a_process_that_went_to_another_session_clears_only_that_one_away(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.starts()
    agent.ends("resume")
    same = {"CLAUDE_PID": "4711"}
    second = agent.other("s-2", **same)
    second.starts("resume")
    second.ends("clear")
    third = agent.other("s-3", **same)
    assert "belongs to session s-1" in third.starts("clear")
    assert owner(agent.here) == "s-1"


def test_a_fork_owns_nothing_until_it_resumes(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    fork = agent.other("s-2")
    text = fork.starts("fork")
    assert "forked" in text
    assert f"gsd-fsm --loop {loop} resume" in text
    fork.prompt("go on")
    assert fork.stop() is None
    agent.blocked()
    agent.here.ok("--loop", loop, "resume", env=fork.shell)
    fork.blocked()
    assert agent.stop() is None


def test_another_session_is_told_and_never_blocked(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    second = agent.other("s-2")
    before = agent.here.journal.read_bytes()
    text = second.starts()
    assert text.startswith("[LOOP]")
    for words in (loop, "Ship it", "belongs to session s-1", "not part of it"):
        assert words in text
    for _ in range(3):
        assert second.prompt("hello") == ""
        assert second.stop(message="<loop-complete>") is None
    assert second.ends() == second.compacts() == second.fails("rate_limit") == ""
    assert agent.here.journal.read_bytes() == before


def test_each_session_has_its_own_loop(agent: Agent) -> None:
    second = agent.other("s-2")
    one = start(agent, "goal", "one", "--criterion", "c")
    two = start(second, "goal", "two", "--criterion", "c")
    assert one in agent.blocked()
    assert two in second.blocked()
    assert one in agent.starts("resume")
    assert two in second.starts("compact")
    agent.here.ok("--loop", two, "pause", env={})
    second.allowed()
    agent.blocked()


def test_a_session_with_a_loop_does_not_take_an_unowned_one_too(agent: Agent) -> None:
    one = start(agent, "goal", "one", "--criterion", "c")
    two = agent.here.start("goal", "two", "--criterion", "c")
    agent.prompt()
    assert agent.here.ok("--loop", two, "status", "--json").json["owner"] is None
    second = agent.other("s-2")
    assert two in second.prompt()
    assert one in agent.blocked()


def test_resume_outside_a_session_clears_the_owner(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("resume")
    assert agent.stop() is None
    second = agent.other("s-2")
    assert "owns the loop" in second.prompt()
    assert agent.stop() is None


@pytest.mark.parametrize(
    ("signal", "binds"),
    [
        ({"event": "Stop", "session_id": "s-9", "last_assistant_message": "x"}, True),
        ({"gsd_client": "opencode", "hook_event_name": "session.idle", "session_id": "s-9"}, True),
        (
            {
                "hook_event_name": "Stop",
                "conversation_id": "s-9",
                "workspace_roots": ["ROOT"],
                "agent_stop_cause": "end_turn",
            },
            True,
        ),
        ({"hook_event_name": "Stop", "session_id": "s-9", "turn_id": "t"}, False),
        ({"hook_event_name": "Stop", "session_id": "s-9", "session_crons": []}, False),
        ({"hook_event_name": "Stop", "session_id": "s-9"}, False),
        ({"event": "Stop", "last_assistant_message": "x"}, False),
    ],
    ids=["goose", "opencode", "auggie", "codex", "claude", "generic", "goose without id"],
)
def test_a_stop_binds_only_where_prompts_have_no_hook(
    here: Here, signal: dict[str, object], binds: bool
) -> None:
    here.start(*GOAL)
    raw = json.dumps(signal).replace("ROOT", str(here.root)).encode()
    answer = call(raw, cwd=here.root).answer
    assert bool(answer) is binds
    assert owner(here) == ("s-9" if binds else None)

"""Which session owns a loop: one with a user by a prompt, one without by name; and its release."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm import gsd_fsm_hook
from gsd_fsm.core.journal.journal import Journal
from tests.support.client_sessions import SESSIONS
from tests.support.events import append, draft
from tests.support.hook_agent import CLIENT_PID, GOAL, Agent, kinds, start

HEADLESS = {"CLAUDE_CODE_SESSION_ATTENDED": "0", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}


@pytest.mark.parametrize("recorded", SESSIONS, ids=lambda it: it["session"])
def test_prompt_binds_only_sessions_with_a_user(
    agent: Agent, recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    binds, env = recorded["user"], recorded["environment"]
    loop = agent.here.start(*GOAL)
    agent.prompt("<task-notification>")  # loads the part of the hook that reads processes
    process = gsd_fsm_hook.Process(7, 1, ["claude"], recorded["command"])
    monkeypatch.setattr(gsd_fsm_hook, "ancestors", lambda: [process])
    shown = agent.starts(env=env)
    assert ("the user's next prompt will bind it" in shown) is binds
    assert (f"To continue it here, run: gsd-fsm resume --loop {loop}" in shown) is not binds
    payload = {**recorded["payload"], "session_id": agent.session, "cwd": str(agent.here.root)}
    agent.answer = agent.send({**payload, "transcript_path": str(agent.transcript)}, **env)
    assert (agent.status("owner") == "s-1") is binds
    if binds:
        words = f"loop {loop} now belongs to this session. To release it, run: gsd-fsm release"
        assert agent.notice == f"gsd-fsm: {words} --loop {loop}"
        agent.blocked(env=env)
    else:
        assert agent.stop(env=env) is None


def test_headless_session_owns_the_loop_that_it_was_started_for(agent: Agent) -> None:
    loop = agent.here.start(*GOAL)
    env = {**HEADLESS, "GSD_FSM_LOOP": loop}
    assert agent.starts(env=env).startswith("[LOOP RESUME]")
    assert agent.status("owner") == "s-1"
    agent.prompt("go", env=env)
    agent.blocked(env=env)
    child = agent.other("s-2", **env)  # the variable is inherited by what the agent starts
    assert "belongs to session s-1" in child.starts()
    child.prompt("write a commit message")
    assert child.stop() is None
    assert agent.status("owner") == "s-1"


def test_named_loop_is_bound_by_a_prompt_but_not_by_a_stop(agent: Agent) -> None:
    loop = agent.here.start(*GOAL)
    env = {**HEADLESS, "GSD_FSM_LOOP": loop}
    assert agent.stop(env=env) is None
    agent.prompt("go", env=env)
    agent.blocked(env=env)
    assert agent.status("owner") == "s-1"


@pytest.mark.parametrize("how", ["release", "resume in a terminal"])
def test_child_session_does_not_bind_a_loop_that_had_an_owner(
    agent: Agent, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {**HEADLESS, "GSD_FSM_LOOP": agent.here.start(*GOAL)}
    agent.starts(env=env)
    agent.here.ok("release" if how == "release" else "resume")
    clients = [gsd_fsm_hook.Process(pid, 1, ["claude"], ["claude", "-p"]) for pid in (7, 9)]
    clients.insert(1, gsd_fsm_hook.Process(8, 1, ["sh"], ["sh"]))
    monkeypatch.setattr(gsd_fsm_hook, "ancestors", lambda: clients)
    child = agent.other("s-2", **env)
    child.starts()
    child.prompt("write a commit message")
    assert child.stop() is None
    assert agent.status("owner") is None


def test_next_session_started_for_a_loop_owns_it_after_resume_in_a_terminal(agent: Agent) -> None:
    env = {**HEADLESS, "GSD_FSM_LOOP": agent.here.start(*GOAL)}
    agent.starts(env=env)
    agent.here.ok("resume")
    second = agent.other("s-2", **env)
    second.starts()
    second.blocked()


def test_only_the_named_loop_is_bound_and_an_unknown_one_is_reported(agent: Agent) -> None:
    start(agent.other("s-0"), *GOAL)
    loop = agent.here.start(*GOAL)
    agent.starts(env={**HEADLESS, "GSD_FSM_LOOP": "lp-none"})
    assert "GSD_FSM_LOOP names lp-none, but no such loop is live here" in agent.notice
    for number in range(4):
        start(agent.other(f"s-{number + 5}"), *GOAL)
    agent.starts(env={**HEADLESS, "GSD_FSM_LOOP": loop}, agent_id="a1")  # of a subagent
    assert "GSD_FSM_LOOP" not in agent.notice
    agent.starts(env={"GSD_FSM_DISABLE": "1", "GSD_FSM_LOOP": loop})
    assert agent.notice == ""
    assert agent.here.ok("--loop", loop, "status", "--json").json["owner"] is None
    agent.starts(env={**HEADLESS, "GSD_FSM_LOOP": loop})
    assert "[LOOP RESUME]" in agent.starts(env=HEADLESS)


def test_headless_session_owns_what_it_starts_or_resumes(agent: Agent) -> None:
    agent.prompt("go", env=HEADLESS)
    start(agent, *GOAL)
    agent.blocked(env=HEADLESS)
    agent.here.ok("resume")  # in a terminal: the owner is cleared
    agent.prompt("go on", env=HEADLESS)
    assert agent.stop(env=HEADLESS) is None
    agent.do("resume")
    agent.blocked(env=HEADLESS)


@pytest.mark.parametrize(("command", "binds"), [("goose", True), ("goose run -t go", False)])
def test_stop_binds_only_sessions_with_a_user(
    agent: Agent, command: str, binds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.here.start(*GOAL)
    words = command.split()
    agent.starts()  # loads the part of the hook that reads processes
    process = gsd_fsm_hook.Process(7, 1, words[:1], words)
    monkeypatch.setattr(gsd_fsm_hook, "ancestors", lambda: [process])
    stop = {"event": "stop", "session_id": "s-9", "working_dir": str(agent.here.root)}
    assert bool(agent.send(stop)) is binds


# release


def test_released_session_is_bound_again_only_by_resume(agent: Agent) -> None:
    loop = agent.here.start(*GOAL)
    agent.prompt()
    agent.blocked()
    assert "agents cannot release loop" in agent.refused("release")
    agent.prompt("let go of it")
    agent.do("release")
    assert agent.status("owner", "status") == (None, "running")
    env = {"GSD_FSM_LOOP": loop}
    for signal in (agent.prompt, agent.starts, agent.stop):
        signal(env=env)
    assert agent.stop() is None
    assert agent.status("owner") is None
    other = agent.other("s-2")
    other.prompt()
    other.blocked()
    other.prompt("release it")
    other.do("release")
    agent.prompt("take it again")
    agent.do("resume")
    agent.blocked()


def test_released_loop_does_not_follow_clear_of_its_old_session(agent: Agent) -> None:
    agent.here.start(*GOAL)
    agent.prompt()
    agent.here.ok("release")
    agent.ends("clear")
    heir = agent.other("s-2", CLAUDE_PID=CLIENT_PID)
    heir.starts("clear")
    assert heir.stop() is None
    assert agent.status("owner") is None
    assert "your first prompt will bind" not in (agent.starts(), agent.notice)[1]


def test_release_names_the_next_step_and_refuses_a_loop_without_owner(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    words = agent.here.ok("release", "--loop", loop).out
    assert (
        f"start claude (your first prompt will bind it), or run: GSD_FSM_LOOP={loop} claude -p"
        in words
    )
    assert f"no session owns loop {loop}" in agent.here.refused(4, "release").err


# /clear


@pytest.mark.parametrize("before", ["start and end", "start", "stop and end"])
def test_cleared_session_passes_the_loop_on_within_its_process(looping: Agent, before: str) -> None:
    looping.starts() if "start" in before else looping.blocked()
    if "end" in before:
        looping.ends("clear")
    heir = looping.other("s-2", CLAUDE_PID=CLIENT_PID)
    assert heir.starts("clear").startswith("[LOOP RESUME]")
    assert looping.status("owner") == "s-2"
    heir.blocked()
    assert looping.stop() is None


def test_other_process_or_source_gets_nothing_from_a_cleared_session(looping: Agent) -> None:
    looping.starts()
    looping.ends("clear")
    others = [
        (pid, "clear") for pid in ("4712", "0", "", f"-{CLIENT_PID}", "abc", f"{CLIENT_PID}x")
    ]
    same = [(CLIENT_PID, source) for source in ("startup", "resume", "compact", "fork")]
    for pid, source in (*others, *same):
        stranger = looping.other("s-2", CLAUDE_PID=pid)
        assert "belongs to session s-1" in stranger.starts(source), (pid, source)
        assert stranger.stop() is None
        assert looping.status("owner") == "s-1"


def test_process_passes_on_only_the_loop_of_its_last_session(looping: Agent) -> None:
    looping.starts()
    looping.ends("resume")
    second = looping.other("s-2", CLAUDE_PID=CLIENT_PID)
    second.starts("resume")
    second.ends("clear")
    third = looping.other("s-3", CLAUDE_PID=CLIENT_PID)
    assert "belongs to session s-1" in third.starts("clear")
    assert looping.status("owner") == "s-1"
    looping.starts()
    elsewhere = looping.other("s-4")
    elsewhere.takes_over()
    looping.ends("clear")
    third.starts("clear")
    elsewhere.blocked()
    assert third.stop() is None


def test_cleared_session_of_a_younger_process_with_the_same_id_gets_nothing(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    agent.starts()
    known = [event["data"] for event in agent.here.lines() if "pid" in event["data"]][-1]
    assert (known["pid"], bool(known["began"])) == (int(CLIENT_PID), True)
    for began in ({"began": "1"}, {}):
        data = {"action": "compact", "pid": int(CLIENT_PID), **began}
        append(Journal(str(agent.here.gsd)), draft("session", loop, "hook", data, session="s-1"))
        heir = agent.other("s-2", CLAUDE_PID=CLIENT_PID)
        assert "belongs to session s-1" in heir.starts("clear")
        assert agent.status("owner") == "s-1"
    agent.compacts()
    heir.starts("clear")
    assert agent.status("owner") == "s-2"


# the end of throttling


@pytest.fixture
def throttled(agent: Agent) -> Agent:
    start(agent, *GOAL)
    agent.prompt()
    agent.fails("rate_limit")
    assert agent.status("status") == "waiting"
    return agent


def test_prompt_and_stop_of_the_owner_end_throttling(throttled: Agent) -> None:
    throttled.prompt("<task-notification>")
    assert throttled.status("status") == "waiting"
    throttled.prompt("and now?")
    assert throttled.status("status") == "running"
    assert kinds(throttled.here)[-2:] == ["resume", "session prompt"]
    throttled.fails("overloaded")
    throttled.blocked()
    assert kinds(throttled.here)[-2:] == ["resume", "iteration continue"]


@pytest.mark.parametrize(
    "command", ["criterion 1 met", "note hello", "complete", "check", "exit-signal", "resume"]
)
def test_any_command_of_the_owner_ends_throttling(agent: Agent, command: str) -> None:
    start(agent, *GOAL, "--check", "t=true")
    agent.do("criterion 1 met", "check")
    agent.fails("rate_limit")
    agent.do(command)
    assert kinds(agent.here).count("resume") == 1
    assert agent.status("status") == ("completed" if command == "complete" else "running")


def test_commands_of_others_and_those_that_read_do_not_end_throttling(throttled: Agent) -> None:
    throttled.do("status", "next", "why")
    throttled.here.ok("note", "from a terminal")
    throttled.here.ok("statusline", stdin=b'{"session_id":"s-1","cost":{"total_cost_usd":1}}')
    assert throttled.status("status") == "waiting"

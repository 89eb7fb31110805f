"""Owners: a loop belongs to one session, only that session is blocked, and the owner changes by rules."""

from __future__ import annotations

import pytest

from tests.support.hook_agent import GOAL, Agent, kinds, start


def owner(agent: Agent) -> str | None:
    found: str | None = agent.status("owner")
    return found


# binding


def test_first_human_prompt_binds_the_session_and_shows_the_loop(agent: Agent) -> None:
    loop = agent.here.start(*GOAL)
    agent.starts()
    assert agent.stop() is None
    assert owner(agent) is None
    text = agent.prompt("please ship it")
    assert text.startswith("This session now owns the loop below.\n[LOOP RESUME]")
    assert loop in text
    assert "Ship it" in text
    assert owner(agent) == "s-1"
    assert kinds(agent.here)[-2:] == ["session bind", "session prompt"]
    assert agent.prompt("and now?") == ""
    agent.blocked()


@pytest.mark.parametrize(
    "prompt", ["<task-notification>\n<task-id>b1</task-id>", "<system-reminder>x</system-reminder>"]
)
def test_machine_prompt_neither_binds_nor_allows_an_answer(agent: Agent, prompt: str) -> None:
    agent.here.start(*GOAL)
    before = agent.here.journal.read_bytes()
    assert agent.prompt(prompt) == ""
    assert agent.here.journal.read_bytes() == before
    agent.prompt()
    agent.do("wait Which?")
    agent.prompt(prompt)
    agent.refused("answer 'the first'")
    agent.prompt("the first")
    agent.do("answer 'the first'")


def test_start_in_a_session_makes_it_the_owner_at_once(looping: Agent) -> None:
    looping.blocked()
    assert kinds(looping.here) == ["journal", "start", "iteration continue"]


def test_session_that_owns_a_loop_is_not_bound_to_another(agent: Agent) -> None:
    one = start(agent, "goal", "one", "--criterion", "c")
    two = agent.here.start("goal", "two", "--criterion", "c")
    agent.prompt()
    assert agent.here.ok("--loop", two, "status", "--json").json["owner"] is None
    assert two in agent.other("s-2").prompt()
    assert one in agent.blocked()


def test_resume_outside_a_session_clears_the_owner(looping: Agent) -> None:
    looping.here.ok("resume")
    assert looping.stop() is None
    assert "owns the loop" in looping.other("s-2").prompt()
    assert looping.stop() is None


# ids of sessions


@pytest.mark.parametrize("session", ["", "   ", None, 7, ["s-1"], "missing"])
def test_signal_without_a_session_id_concerns_no_loop(agent: Agent, session: object) -> None:
    agent.here.start(*GOAL)
    before = agent.here.journal.read_bytes()
    for signal in (agent.stop_signal(), agent.signal("UserPromptSubmit", prompt="hi")):
        signal["session_id"] = session
        if session == "missing":
            del signal["session_id"]
        assert agent.send(signal) is None
    assert agent.here.journal.read_bytes() == before


@pytest.mark.parametrize(
    "session",
    ["x" * 500, "two words", "tab\there", "ünï", "\ud800", "a" * 200, "line\nbreak", "a\ud800"],
)
def test_unusual_session_ids_are_told_apart(agent: Agent, session: str) -> None:
    agent.here.start(*GOAL)
    odd = Agent(agent.here, agent.place, session)
    near = Agent(agent.here, agent.place, session[:-1] + "\ud801")
    odd.transcript = near.transcript = agent.transcript
    assert "owns the loop" in odd.prompt()
    odd.blocked()
    assert near.stop() is None
    assert agent.stop() is None


# other sessions


def test_another_session_is_notified_and_never_blocked(looping: Agent) -> None:
    second = looping.other("s-2")
    loop = looping.status("loop")
    before = looping.here.journal.read_bytes()
    text = second.starts()
    assert text == (
        f'[LOOP] gsd-fsm loop {loop} (goal, running) "Ship it" belongs to session s-1. This session '
        f"is not part of it. To continue it here, run: gsd-fsm --loop {loop} resume"
    )
    assert f"To continue it here, run: gsd-fsm --loop {loop} resume" in second.notice
    for _ in range(3):
        assert second.prompt("hello") == ""
        assert second.stop(message="<loop-complete>") is None
    assert second.ends() == second.compacts() == second.fails("rate_limit") == ""
    assert looping.here.journal.read_bytes() == before


def test_each_session_has_its_own_loop(agent: Agent) -> None:
    second = agent.other("s-2")
    one = start(agent, "goal", "one", "--criterion", "c")
    two = start(second, "goal", "two", "--criterion", "c")
    assert one in agent.blocked()
    assert two in second.blocked()
    assert one in agent.starts("resume")
    assert two in second.starts("compact")
    agent.here.ok("--loop", two, "pause")
    second.allowed()
    agent.blocked()


def test_fork_owns_nothing_until_it_resumes(looping: Agent) -> None:
    fork = looping.other("s-2")
    assert ", which this session may be forked from. This session is not" in fork.starts("fork")
    fork.prompt("go on")
    assert fork.stop() is None
    looping.blocked()
    fork.do(f"--loop {looping.status('loop')} resume")
    fork.blocked()
    assert looping.stop() is None


# /clear and --resume


def test_resumed_client_session_keeps_the_loop(looping: Agent) -> None:
    looping.blocked()
    looping.ends()
    text = looping.starts("resume", env={"CLAUDE_PID": "4800"})
    assert text.startswith("[LOOP RESUME] Active loop detected")
    assert "Iteration: 1 of 20" in text
    looping.blocked()
    assert owner(looping) == "s-1"


@pytest.mark.parametrize("before", ["start and end", "start", "stop and end"])
def test_cleared_session_passes_the_loop_on_in_the_same_process(
    looping: Agent, before: str
) -> None:
    if "start" in before:
        looping.starts()
    else:
        looping.blocked()
    if "end" in before:
        looping.ends("clear")
    heir = looping.other("s-2", CLAUDE_PID="4711")
    assert heir.starts("clear").startswith("[LOOP RESUME]")
    assert owner(looping) == "s-2"
    heir.blocked()
    assert looping.stop() is None


@pytest.mark.parametrize("pid", ["4712", "0", "", "-4711", "abc", "4711x"])
def test_cleared_session_in_another_process_gets_nothing(looping: Agent, pid: str) -> None:
    looping.starts()
    looping.ends("clear")
    stranger = looping.other("s-2", CLAUDE_PID=pid)
    assert "belongs to session s-1" in stranger.starts("clear")
    assert stranger.stop() is None


@pytest.mark.parametrize("source", ["startup", "resume", "compact", "fork"])
def test_only_clear_passes_the_loop_on(looping: Agent, source: str) -> None:
    looping.starts()
    same = looping.other("s-2", CLAUDE_PID="4711")
    assert "belongs to session s-1" in same.starts(source)
    assert owner(looping) == "s-1"


def test_cleared_session_does_not_take_a_loop_that_was_resumed_elsewhere(looping: Agent) -> None:
    looping.starts()
    second = looping.other("s-2")
    second.do("resume")
    looping.ends("clear")
    heir = looping.other("s-3", CLAUDE_PID="4711")
    heir.starts("clear")
    assert owner(looping) == "s-2"
    second.blocked()
    assert heir.stop() is None


def test_process_that_resumed_another_session_passes_on_only_that_one(looping: Agent) -> None:
    looping.starts()
    looping.ends("resume")
    second = looping.other("s-2", CLAUDE_PID="4711")
    second.starts("resume")
    second.ends("clear")
    third = looping.other("s-3", CLAUDE_PID="4711")
    assert "belongs to session s-1" in third.starts("clear")
    assert owner(looping) == "s-1"


def test_session_only_loop_survives_while_its_client_resumes_another_session(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--session-only")
    agent.ends("resume")
    assert agent.status("status") == "running"
    assert loop in agent.starts("resume")
    agent.blocked()


# prompts in another session


@pytest.mark.parametrize(
    ("halt", "command"),
    [
        ("spend 2", "resume --add-budget 10"),
        ("spend 2", "cancel"),
        ("wait Which?", "answer this"),
        ("wait Which?", "resume"),
    ],
)
def test_human_prompt_elsewhere_allows_to_continue_a_halted_loop_there(
    agent: Agent, halt: str, command: str
) -> None:
    loop = start(agent, "goal", "g", "--budget", "1")
    agent.do(halt)
    later, third = agent.other("s-2"), agent.other("s-3")
    named = f"--loop {loop} {command}"
    assert "until the user sends a message" in later.refused(named)
    later.prompt("<task-notification>\n")
    later.refused(named)
    assert later.prompt("go on with it") == ""
    before = agent.here.journal.read_bytes()
    later.prompt("and again")
    assert agent.new(before) == []  # one is enough
    agent.refused(named)  # no human has prompted these
    third.refused(named)
    later.do(named)


def test_human_prompt_elsewhere_is_not_recorded_for_an_active_loop(looping: Agent) -> None:
    before = looping.here.journal.read_bytes()
    looping.other("s-2").prompt("something else")
    assert looping.new(before) == []


def test_human_prompt_elsewhere_counts_only_until_the_loop_continues(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--budget", "1")
    agent.do("pause")
    later = agent.other("s-2")
    later.prompt("look at it")
    agent.do("resume", "spend 2")
    later.refused(f"--loop {loop} resume --add-budget 10")


def test_human_prompt_of_a_session_with_its_own_loop_counts_for_others(agent: Agent) -> None:
    halted = start(agent, "goal", "g")
    agent.do("iterate", "pause")
    other = agent.other("s-2")
    start(other, "goal", "h")
    other.refused(f"--loop {halted} cancel")
    other.prompt("cancel the other one")
    other.do(f"--loop {halted} cancel")


def test_prompt_that_quotes_our_notice_is_human(agent: Agent) -> None:
    start(agent, *GOAL, "--max-iterations", "1")
    agent.blocked()
    agent.prompt(f"It says: {agent.allowed()} Yes, do that.")
    agent.do("resume --add-iterations 10")

"""Signals other than stops: prompts, failed turns, marks, and blocks that the client dropped."""

from __future__ import annotations

import time

import pytest

from tests.support.hook_agent import GOAL, Agent, kinds, start

LOST = "the client, not the loop, ended the turn"


# prompts


def test_prompt_of_the_owner_is_recorded_and_not_answered_while_the_loop_is_active(
    looping: Agent,
) -> None:
    assert looping.prompt("how far are you?") == ""
    assert looping.notice == ""
    assert kinds(looping.here)[-1] == "session prompt"
    assert "how far" not in looping.here.journal.read_text()


def test_prompt_is_answered_with_the_open_question_and_its_command(agent: Agent) -> None:
    loop = start(agent, "execute", "--task", "T1", by="interactive")
    agent.do("fail T1 --error boom --class logic")
    agent.allowed()
    for _ in range(2):
        assert agent.prompt("yes") == (
            f"gsd-fsm loop {loop}: Waiting for the user's answer: Task T1 failed. Retry? (0/3 attempts"
            f" used) [Y/n] If this message answers it, run: gsd-fsm --loop {loop} answer TEXT (TEXT: "
            "the user's answer, quoted)"
        )
        assert agent.status("status") == "waiting"
    agent.do("answer yes")
    assert agent.prompt("and?") == ""


def test_prompt_is_answered_with_the_pause_and_its_command(agent: Agent) -> None:
    loop = start(agent, *GOAL, "--max-iterations", "1")
    agent.blocked()
    agent.allowed()
    command = f"--loop {loop} resume --add-iterations 10"
    assert agent.prompt("go on") == (
        f"gsd-fsm loop {loop}: Paused (iterations): 1 of 1 iterations are used. If the user wants the "
        f"loop to continue, run: gsd-fsm {command}"
    )
    assert agent.status("status") == "paused"
    agent.do(command)
    agent.blocked()


def test_prompt_that_binds_a_waiting_loop_shows_its_question(agent: Agent) -> None:
    loop = agent.here.start(*GOAL)
    agent.here.ok("wait", "Which database?")
    text = agent.prompt("hello")
    assert "Which database?" in text
    assert f"gsd-fsm --loop {loop} answer" in text


def test_disabled_hook_answers_and_records_no_signal(looping: Agent) -> None:
    (looping.here.gsd / "STOP").touch()
    before = looping.here.journal.read_bytes()
    assert (looping.starts("resume"), looping.prompt("hello"), looping.notice) == ("", "", "")
    looping.fails("billing_error")
    assert looping.here.journal.read_bytes() == before


# failed turns


@pytest.mark.parametrize("error", ["rate_limit", "overloaded", "server_error"])
def test_temporary_client_error_makes_the_loop_wait(looping: Agent, error: str) -> None:
    looping.blocked()
    assert looping.fails(error) == ""
    last = looping.here.last()
    assert last["type"] == "wait"
    assert last["data"] == {"for": "throttled", "reason": f"the client reports {error}"}
    assert looping.status("iteration", "last_error") == (1, None)
    why = looping.why()
    assert (why["decision"], why["code"]) == ("allow", "throttled")


@pytest.mark.parametrize(
    "error",
    [
        "authentication_failed", "billing_error", "unknown", "invalid_request", "model_not_found",
        "max_output_tokens", "oauth_org_not_allowed", "account_on_hold", "verification_required",
        "cloud_credential_error", "something new", "",
    ],
)  # fmt: skip
def test_other_client_error_pauses_the_loop(looping: Agent, error: str) -> None:
    looping.fails(error)
    assert kinds(looping.here)[-1] == "pause client"
    assert looping.status("status", "pause_code") == ("paused", "client")
    assert "is paused (client): the client could not finish the turn: " in looping.allowed()


def test_end_of_a_rate_limit_is_recorded_if_the_client_reports_it(looping: Agent) -> None:
    until = int(time.time()) + 3_600
    looping.fails("rate_limit", f"Claude AI usage limit reached|{until}")
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(until))
    assert looping.here.last()["data"]["until"] == stamp


def test_client_error_does_not_change_a_paused_loop(looping: Agent) -> None:
    looping.here.ok("pause")
    before = looping.here.journal.read_bytes()
    looping.fails("rate_limit")
    looping.fails("billing_error")
    assert looping.here.journal.read_bytes() == before


# marks


def test_compaction_and_the_end_of_a_session_are_recorded(looping: Agent) -> None:
    looping.compacts("manual")
    looping.ends("prompt_input_exit")
    assert looping.answer is None
    marks = [event["data"] for event in looping.here.lines()[-2:]]
    assert [(mark["action"], mark["reason"], mark["pid"]) for mark in marks] == [
        ("compact", "manual", 4711),
        ("end", "prompt_input_exit", 4711),
    ]


@pytest.mark.parametrize(
    "event", ["SubagentStop", "SubagentStart", "TaskCreated", "TaskCompleted", "PostCompact",
              "PreToolUse", "Notification", "Unheard", ""],
)  # fmt: skip
def test_other_signals_change_nothing(looping: Agent, event: str) -> None:
    before = looping.here.journal.read_bytes()
    members = {"agent_id": "a1", "agent_type": "", "task_id": "1", "task_subject": "a"}
    signal = {**looping.stop_signal("<loop-complete>"), **members, "hook_event_name": event}
    assert looping.send(signal) is None
    assert looping.err == ""
    assert looping.here.journal.read_bytes() == before


# blocks that the client dropped


@pytest.mark.parametrize("how", ["prompt", "end", "start", "cleared"])
def test_dropped_block_is_recorded_and_notified_at_the_next_signal(
    looping: Agent, how: str
) -> None:
    looping.blocked()
    seq = looping.here.last()["seq"]
    then = looping
    if how == "prompt":
        looping.prompt("hello?")
    elif how == "end":
        looping.ends()
    elif how == "start":
        looping.starts("resume")
    else:
        then = looping.other("s-2", CLAUDE_PID="4711")
        looping.starts("compact")
        then.starts("clear")
    assert LOST in then.notice
    assert "stop client" in kinds(looping.here)
    why = then.why(str(seq))
    assert (why["decision"], why["code"]) == ("block", "continue")
    assert "The client ended the turn" in why["why"]
    then.prompt("again")
    assert LOST not in then.notice
    assert kinds(looping.here).count("stop client") == 1


@pytest.mark.parametrize("then", ["stop", "criterion 1 met", "tool"])
def test_honoured_block_is_recognised_by_the_work_after_it(looping: Agent, then: str) -> None:
    looping.blocked()
    seq = str(looping.here.last()["seq"])
    assert "not known yet" in looping.why(seq)["why"]
    if then == "stop":
        looping.blocked()
    elif then == "tool":
        looping.uses_a_tool()
        looping.prompt("Esc was pressed later")
    else:
        looping.do(then)
        looping.prompt("Esc was pressed later")
    if then != "tool":
        assert "The client continued" in looping.why(seq)["why"]
    if then != "criterion 1 met":
        assert "stop client" not in kinds(looping.here)


@pytest.mark.parametrize(
    "what", ["automatic compaction", "machine prompt", "allowed stop before a prompt"]
)
def test_turn_that_continues_is_not_recorded_as_dropped(agent: Agent, what: str) -> None:
    start(agent, *GOAL, "--max-iterations", "1" if "allowed" in what else "0")
    agent.blocked()
    if what == "automatic compaction":
        agent.compacts()
        agent.starts("compact")
    elif what == "machine prompt":
        agent.prompt("<task-notification>\n<task-id>b</task-id>")
    else:
        agent.allowed()
        agent.prompt("hello?")
    assert LOST not in agent.notice
    assert "stop client" not in kinds(agent.here)


@pytest.mark.parametrize("meanwhile", ["compaction by hand", "command in a terminal"])
def test_dropped_block_is_recorded_whatever_happens_in_between(
    looping: Agent, meanwhile: str
) -> None:
    looping.blocked()
    seq = str(looping.here.last()["seq"])
    if meanwhile == "compaction by hand":
        looping.compacts("manual")
        looping.starts("compact")
    else:
        looping.here.ok("pause", "--reason", "over night")
    assert "The client continued" not in looping.why(seq)["why"]
    looping.prompt("hello?")
    assert LOST in looping.notice
    assert "The client ended the turn" in looping.why(seq)["why"]

"""Failed stops: remembered, recorded once, and shown until then."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gsd_fsm.core.hook.clients import Signal
from gsd_fsm.core.hook.memory import remember_failure
from tests.support.hook_agent import GOAL, Agent, start
from tests.support.hook_project import run_hook

PROBLEM = "is corrupt at line 2"


def failed_stops(agent: Agent, count: int = 1) -> None:
    """Let the agent stop while the journal is damaged."""
    good = agent.here.journal.read_bytes()
    agent.here.journal.write_bytes(good.replace(b"Ship it", b"Skip it"))
    for _ in range(count):
        assert PROBLEM in agent.allowed()
    agent.here.journal.write_bytes(good)


def failures() -> Path:
    return Path(os.environ["XDG_STATE_HOME"], "gsd-fsm", "failures")


def recorded(agent: Agent) -> list[str]:
    """Return who recorded each failed stop."""
    errors = [event for event in agent.here.lines() if event["data"].get("code") == "error"]
    assert all(PROBLEM in event["data"]["reason"] for event in errors)
    assert all(event["data"]["at"] < event["ts"] for event in errors)
    return [event["by"] for event in errors]


SIGNALS = {
    "stop": (lambda agent: agent.blocked(), "hook"),
    "prompt": (lambda agent: agent.prompt(), "hook"),
    "session start": (lambda agent: agent.starts("resume"), "hook"),
    "command": (lambda agent: agent.here.ok("note", "hello"), "cli"),
    "resume elsewhere": (lambda agent: agent.here.ok("resume"), "cli"),
    "disabled stop": (lambda agent: agent.stop(env={"GSD_FSM_DISABLE": "1"}), "hook"),
}


@pytest.mark.parametrize("signal", SIGNALS)
def test_next_signal_records_a_failed_stop_once(looping: Agent, signal: str) -> None:
    send, by = SIGNALS[signal]
    failed_stops(looping)
    for _ in range(2):
        send(looping)
        assert recorded(looping) == [by]
    assert looping.here.ok("fsck", "--json").json["ok"]


def test_last_three_failures_in_a_row_are_recorded(looping: Agent) -> None:
    failed_stops(looping, 5)
    looping.blocked()
    assert recorded(looping) == ["hook"] * 3
    failed_stops(looping)
    looping.blocked()
    assert recorded(looping) == ["hook"] * 4


def test_failures_of_other_sessions_leave_those_of_the_owner(looping: Agent) -> None:
    failed_stops(looping)
    for number in range(10):
        failed_stops(looping.other(f"s-{number + 2}"), 4)
    failed_stops(looping)
    looping.blocked()
    assert recorded(looping) == ["hook", "hook"]
    looping.here.ok("fsck")


def test_failure_belongs_to_the_loop_that_the_session_owned_then(looping: Agent) -> None:
    other = looping.here.start(*GOAL, env={"CLAUDE_CODE_SESSION_ID": "s-2"})
    failed_stops(looping)
    failed_stops(looping.other("s-9"))
    looping.here.ok("cancel", env=looping.shell | {"CLAUDECODE": ""})
    looping.prompt()
    looping.do(f"resume --loop {other}")
    looping.blocked()
    assert [event["loop"] == other for event in looping.here.lines() if "at" in event["data"]] == [
        False
    ]


@pytest.mark.parametrize("command", ["complete", "start --fresh goal g --criterion c"])
def test_command_that_ends_the_loop_records_its_failed_stop_first(
    looping: Agent, command: str
) -> None:
    looping.do("criterion 1 met")
    failed_stops(looping)
    looping.here.ok(*command.split(), env={"CLAUDE_CODE_SESSION_ID": looping.session})
    types = [event["data"].get("code", event["type"]) for event in looping.here.lines()]
    assert types.index("error") < types.index("complete" if command == "complete" else "cancel")
    assert "without a decision" not in looping.here.ok("status").out


def test_two_processes_remember_both_of_their_failures(looping: Agent) -> None:
    good = looping.here.journal.read_bytes()
    looping.here.journal.write_bytes(good.replace(b"Ship it", b"Skip it"))
    with ThreadPoolExecutor(8) as pool:
        agents = [looping.other(f"s-{number}") for number in range(2, 18)]
        list(pool.map(lambda it: run_hook(json.dumps(it.stop_signal())), agents))
    (file,) = failures().iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["session"] for line in lines} == {agent.session for agent in agents}


# the answer of a hook that ran out of time


def run_out_of_time(agent: Agent) -> None:
    """Let the agent stop, and lose the answer after its event was written."""
    signal = agent.stop_signal(message=f"Done at {agent.status('head')}.")
    agent.send(signal)
    failed = Signal(signal, json.dumps(signal), "one", lambda _: "")
    failed.place = str(agent.here.gsd)
    remember_failure(failed, "no answer within 6 s")


def test_note_of_a_block_that_was_not_printed_is_delivered_again(looping: Agent) -> None:
    looping.here.ok("note", "use Python 3.12")
    run_out_of_time(looping)
    assert "use Python 3.12" in looping.blocked()
    assert "use Python 3.12" not in looping.blocked()


def test_pause_that_was_not_printed_is_reported_at_the_next_stop(agent: Agent) -> None:
    start(agent, *GOAL, "--max-iterations", "1")
    agent.blocked()
    run_out_of_time(agent)
    assert "is paused (iterations)" in agent.allowed()
    assert agent.allowed() == ""


def test_completion_that_was_not_printed_is_reported_at_the_next_stop(agent: Agent) -> None:
    start(agent, "execute", "--task", "T1")
    agent.do("task T1 running", "task T1 complete")
    run_out_of_time(agent)
    assert agent.status("status") == "completed"
    assert "without a decision" not in agent.here.ok("status").out
    assert "completed after" in agent.allowed()
    assert agent.allowed() == ""


def test_failed_stop_of_an_earlier_loop_of_the_session_is_not_recorded_again(
    looping: Agent,
) -> None:
    failed_stops(looping)
    looping.here.ok("cancel")
    assert recorded(looping) == ["cli"]  # by the command that ended the loop
    start(looping, *GOAL)
    looping.blocked()
    assert recorded(looping) == ["cli"]


def test_status_and_why_show_a_failed_stop_before_and_after_it_is_recorded(looping: Agent) -> None:
    looping.blocked()
    failed_stops(looping)
    before = looping.here.ok("status").out
    assert "was allowed without a decision: " in before
    assert PROBLEM in before
    assert PROBLEM in looping.why()["why"]
    looping.prompt()
    after = looping.here.ok("status").out
    assert "The last stop was allowed without a decision (event " in after
    assert PROBLEM in after
    assert looping.why()["code"] == "error"
    looping.blocked()
    assert PROBLEM not in looping.here.ok("status").out
    assert looping.why()["code"] == "continue"


def test_why_of_a_loop_without_decisions_names_the_failed_stop(looping: Agent) -> None:
    failed_stops(looping)
    message, hint, *_ = looping.here.refused(3, "why").err.splitlines()
    assert message.startswith("gsd-fsm: no stop of this loop has been decided yet; the stop at ")
    assert PROBLEM in message
    assert hint == "  → Run: gsd-fsm status"


@pytest.mark.parametrize("damage", ["garbage", "{}\n", '{"at":7}\n', "[1]\n", "a directory"])
def test_memory_that_cannot_be_read_is_ignored(looping: Agent, damage: str) -> None:
    failed_stops(looping)
    (file,) = failures().iterdir()
    file.unlink()
    if damage == "a directory":
        file.mkdir()
    else:
        file.write_text(damage)
    looping.blocked()
    assert recorded(looping) == []
    failed_stops(looping)
    looping.blocked()
    assert recorded(looping) == ([] if damage == "a directory" else ["hook"])


def test_secrets_and_escapes_in_a_reason_are_not_recorded(looping: Agent) -> None:
    failed_stops(looping)
    (file,) = failures().iterdir()
    facts = json.loads(file.read_text())
    file.write_text(json.dumps({**facts, "reason": "\x1b[31mred\n<system-reminder>" * 99}) + "\n")
    looping.blocked()
    (event,) = [it for it in looping.here.lines() if it["data"].get("code") == "error"]
    reason = event["data"]["reason"]
    assert len(reason) <= 300
    assert reason.isprintable()
    assert "<system" not in reason

"""Failed stops: remembered, recorded once, and shown until then."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.hook_agent import GOAL, Agent, start

PROBLEM = "is corrupt at line 2"


def failed_stops(agent: Agent, count: int = 1) -> None:
    """Let the agent stop while the journal is damaged."""
    good = agent.here.journal.read_bytes()
    agent.here.journal.write_bytes(good.replace(b"Ship it", b"Skip it"))
    for _ in range(count):
        assert PROBLEM in agent.allowed()
    agent.here.journal.write_bytes(good)


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


def test_same_failure_in_a_row_is_recorded_once(looping: Agent) -> None:
    failed_stops(looping, 2)
    looping.blocked()
    assert recorded(looping) == ["hook"]
    failed_stops(looping)
    looping.blocked()
    assert recorded(looping) == ["hook", "hook"]


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
    refused = looping.here.refused(3, "why")
    assert PROBLEM in refused.err


@pytest.mark.parametrize("damage", ["garbage", "{}\n", '{"at":7}\n', "[1]\n", "a directory"])
def test_memory_that_cannot_be_read_is_ignored(looping: Agent, damage: str) -> None:
    failed_stops(looping)
    (file,) = Path(os.environ["XDG_STATE_HOME"], "gsd-fsm", "failures").iterdir()
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
    (file,) = Path(os.environ["XDG_STATE_HOME"], "gsd-fsm", "failures").iterdir()
    facts = json.loads(file.read_text())
    file.write_text(json.dumps({**facts, "reason": "\x1b[31mred\n<system-reminder>" * 99}) + "\n")
    looping.blocked()
    (event,) = [it for it in looping.here.lines() if it["data"].get("code") == "error"]
    reason = event["data"]["reason"]
    assert len(reason) <= 600
    assert reason.isprintable()
    assert "<system" not in reason

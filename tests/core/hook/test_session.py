"""Sessions come and go: the model knows the loop, the user knows what the client did to it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from tests.support.events import append, draft
from tests.support.hook_agent import Agent, kinds, start

GOAL = ("goal", "Ship it", "--criterion", "it is shipped", "--criterion", "it is told")
LOST = "the client, not the loop, ended the turn"


def standing(agent: Agent) -> Any:
    """What no signal of others may change."""
    return agent.here.journal.read_bytes()


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_the_owner_is_told_of_its_loop_at_every_start(agent: Agent, source: str) -> None:
    loop = start(agent, *GOAL)
    agent.here.ok("criterion", "1", "met", env=agent.shell)
    agent.here.ok("iterate", env=agent.shell)
    lines = agent.starts(source).split("\n")
    assert lines[0] == "[LOOP RESUME] Active loop detected"
    text = "\n".join(lines)
    assert f"{loop} (goal, running)" in text
    assert "Spec: Ship it" in text
    assert "Progress: 1/2 criteria | Iteration: 1 of 20" in text
    assert "Unmet criteria: it is told" in text
    assert "Next: Meet criterion 2: it is told" in text
    assert f"Run: gsd-fsm --loop {loop} criterion 2 met" in text
    last = agent.here.last()
    assert (last["type"], last["by"]) == ("session", "hook")
    assert last["data"].items() >= {"action": "start", "source": source, "pid": 4711}.items()


def test_the_announcement_counts_steps_and_names_stage_scores_and_reviews(agent: Agent) -> None:
    start(agent, "goal", "Ship it", "--step", "build", "--step", "tell", "--criterion", "done")
    agent.here.ok("stage", "intent", env=agent.shell)
    agent.here.ok("review", "light", "--wave", "1", "--issues", "2", env=agent.shell)
    text = agent.starts("resume")
    assert "Progress: 0/2 steps | Iteration: 0 of 20" in text
    assert "Stage: intent | Spec: none | Fit: none" in text
    assert "Reviews: wave 1: 2 issues" in text
    assert "Next: " in text


def test_a_paused_loop_is_announced_with_its_way_on(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    agent.here.ok("pause", "--reason", "over night")
    text = agent.starts("resume")
    assert "paused" in text
    assert "over night" in text
    assert f"If the user wants the loop to continue, run: gsd-fsm --loop {loop} resume" in text


def test_announcements_are_short_enough_for_the_client(agent: Agent) -> None:
    criteria = [word for number in range(60) for word in ("--criterion", f"{number} " + "c" * 300)]
    loop = start(agent, "goal", "g" * 20_000, *criteria)
    reviews = [
        draft("review", loop, "agent", {"action": "light", "wave": wave, "issues": 2})
        for wave in range(1, 501)
    ]
    append(Journal(str(agent.here.gsd)), *reviews)
    assert len(agent.starts("resume")) < 8_000
    agent.here.ok("resume", env={})
    assert len(agent.prompt()) < 8_000


# prompts


def test_a_prompt_of_the_owner_is_marked_and_says_nothing_while_the_loop_runs(
    agent: Agent,
) -> None:
    start(agent, *GOAL)
    assert agent.prompt("how far are you?") == ""
    assert agent.notice == ""
    assert kinds(agent.here)[-1] == "session prompt"
    assert "how far" not in agent.here.journal.read_text()


def test_a_prompt_reminds_of_the_question_with_the_exact_command(agent: Agent) -> None:
    loop = start(agent, "execute", "--task", "T1", by="interactive")
    agent.here.ok("fail", "T1", "--error", "boom", "--class", "logic", env=agent.shell)
    agent.allowed()
    for _ in range(2):
        text = agent.prompt("yes")
        assert "Task T1 failed. Retry?" in text
        assert f"gsd-fsm --loop {loop} answer" in text
        assert agent.here.status()["status"] == "waiting"
    agent.here.ok("--loop", loop, "answer", "yes", env=agent.shell)
    assert agent.prompt("and?") == ""


def test_a_prompt_reminds_of_the_pause_with_the_exact_command(agent: Agent) -> None:
    loop = start(agent, *GOAL, "--max-iterations", "1")
    agent.blocked()
    agent.allowed()
    text = agent.prompt("go on")
    command = f"gsd-fsm --loop {loop} resume --add-iterations 10"
    assert "iterations" in text
    assert command in text
    assert agent.here.status()["status"] == "paused"
    agent.here.ok(*command.split()[1:], env=agent.shell)
    agent.blocked()


def test_a_prompt_that_binds_a_waiting_loop_tells_its_question(agent: Agent) -> None:
    loop = agent.here.start(*GOAL)
    agent.here.ok("wait", "Which database?")
    text = agent.prompt("hello")
    assert "Which database?" in text
    assert f"gsd-fsm --loop {loop} answer" in text


# turns that failed


@pytest.mark.parametrize("error", ["rate_limit", "overloaded", "server_error"])
def test_what_passes_by_itself_is_waited_for(agent: Agent, error: str) -> None:
    start(agent, *GOAL)
    agent.blocked()
    assert agent.fails(error) == ""
    last = agent.here.last()
    assert last["type"] == "wait"
    assert last["data"]["for"] == "throttled"
    assert error in last["data"]["reason"]
    assert "until" not in last["data"]
    assert agent.here.status()["iteration"] == 1
    assert agent.here.status()["last_error"] is None
    why = agent.why()
    assert (why["decision"], why["code"]) == ("allow", "throttled")


@pytest.mark.parametrize(
    "error",
    [
        "authentication_failed", "billing_error", "unknown", "invalid_request", "model_not_found",
        "max_output_tokens", "oauth_org_not_allowed", "account_on_hold", "verification_required",
        "cloud_credential_error", "something new", "",
    ],
)  # fmt: skip
def test_what_needs_the_user_pauses(agent: Agent, error: str) -> None:
    start(agent, *GOAL)
    agent.fails(error)
    assert kinds(agent.here)[-1] == "pause client"
    status = agent.here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "client")
    assert "paused (client)" in agent.allowed()


def test_the_end_of_a_limit_is_kept_where_the_client_tells_it(agent: Agent) -> None:
    start(agent, *GOAL)
    until = int(time.time()) + 3_600
    agent.fails("rate_limit", f"Claude AI usage limit reached|{until}")
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(until))
    assert agent.here.last()["data"]["until"] == stamp


def test_a_failed_turn_changes_no_loop_that_stands_still(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("pause")
    before = standing(agent)
    agent.fails("rate_limit")
    agent.fails("billing_error")
    assert standing(agent) == before


# marks


def test_compaction_and_the_end_leave_a_mark(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.compacts("manual")
    agent.ends("prompt_input_exit")
    assert agent.answer is None
    marks = [event["data"] for event in agent.here.lines()[-2:]]
    assert [(mark["action"], mark["reason"], mark["pid"]) for mark in marks] == [
        ("compact", "manual", 4711),
        ("end", "prompt_input_exit", 4711),
    ]


@pytest.mark.parametrize(
    "event", ["SubagentStop", "SubagentStart", "TaskCreated", "TaskCompleted", "PostCompact",
              "PreToolUse", "Notification", "Unheard", ""],
)  # fmt: skip
def test_other_signals_leave_everything_alone(agent: Agent, event: str) -> None:
    start(agent, *GOAL)
    before = standing(agent)
    members = {"agent_id": "a1", "agent_type": "", "task_id": "1", "task_subject": "a"}
    signal = {**agent.stop_signal("<loop-complete>"), **members, "hook_event_name": event}
    assert agent.send(signal) is None
    assert agent.err == ""
    assert standing(agent) == before


# blocks that came to nothing


@pytest.mark.parametrize("how", ["prompt", "end", "start", "cleared"])
def test_a_block_that_the_client_dropped_is_recorded_and_told_at_the_next_signal(
    agent: Agent, how: str
) -> None:
    start(agent, *GOAL)
    agent.blocked()
    seq = agent.here.last()["seq"]
    then = agent
    if how == "prompt":
        agent.prompt("hello?")
    elif how == "end":
        agent.ends()
    elif how == "start":
        agent.starts("resume")
    else:
        then = agent.other("s-2", CLAUDE_PID="4711")
        agent.starts("compact")
        then.starts("clear")
    assert LOST in then.notice
    assert "stop client" in kinds(agent.here)
    why = then.why(str(seq))
    assert (why["decision"], why["code"]) == ("block", "continue")
    assert "The client ended the turn" in why["why"]
    then.prompt("again")
    assert LOST not in then.notice
    assert kinds(agent.here).count("stop client") == 1


def test_a_block_that_was_honoured_is_known_as_such(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    seq = str(agent.here.last()["seq"])
    assert "not known yet" in agent.why(seq)["why"]
    agent.blocked()
    assert "The client continued" in agent.why(seq)["why"]
    assert "stop client" not in kinds(agent.here)


def test_compaction_within_a_turn_is_no_lost_turn(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    agent.compacts()
    agent.starts("compact")
    assert agent.notice == ""
    assert "stop client" not in kinds(agent.here)
    agent.blocked()


def test_a_compaction_by_hand_does_not_hide_a_lost_turn(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    seq = str(agent.here.last()["seq"])
    agent.compacts("manual")
    agent.starts("compact")
    assert "The client continued" not in agent.why(seq)["why"]
    agent.prompt("hello?")
    assert LOST in agent.notice
    assert "The client ended the turn" in agent.why(seq)["why"]


def test_a_machine_prompt_is_no_lost_turn(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    agent.prompt("<task-notification>\n<task-id>b</task-id>")
    assert agent.notice == ""
    assert "stop client" not in kinds(agent.here)


def test_a_command_in_a_terminal_does_not_show_that_the_client_went_on(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    seq = str(agent.here.last()["seq"])
    agent.here.ok("pause", "--reason", "over night")
    assert "The client continued" not in agent.why(seq)["why"]
    agent.prompt("hello?")
    assert LOST in agent.notice


def test_an_allowed_stop_is_no_lost_turn(agent: Agent) -> None:
    start(agent, *GOAL, "--max-iterations", "1")
    agent.blocked()
    agent.allowed()
    agent.prompt("hello?")
    assert LOST not in agent.notice

"""Reports of the client: spending in its transcripts, and the tasks of its list."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.hook.main import reply as core_reply
from gsd_fsm.core.journal.journal import Journal
from tests.support.client_reports import LATER, status_line, subagent, subagent_stops
from tests.support.command_line import without_loop
from tests.support.events import append, draft
from tests.support.faults import files_in
from tests.support.hook_agent import Agent, kinds, start

BUDGET = ("goal", "g", "--budget", "9", "--max-tokens", "9000", "--idle-limit", "0")


def reply(agent: Agent, name: str, tokens: int, rows: int = 2, **more: Any) -> None:
    """Write a reply as the client does: a row for each content block, with the usage in each."""
    usage = {"input_tokens": tokens, "output_tokens": 0}
    message = {"id": name, "role": "assistant", "content": [], "usage": usage}
    agent.write(*[{"type": "assistant", "timestamp": LATER, "message": message, **more}] * rows)


def total(agent: Agent, usd: float) -> None:
    agent.write({"type": "cost-state", "totalCostUSD": usd})


def tokens(agent: Agent) -> list[int | None]:
    """Return the tokens of every event that records spending."""
    lines = agent.here.lines()
    return [line["data"].get("tokens") for line in lines if line["type"] == "spend"]


def test_tokens_of_a_reply_count_once_and_their_limit_pauses(agent: Agent) -> None:
    start(agent, "goal", "g", "--max-tokens", "1000")
    reply(agent, "msg_1", 400, rows=3)
    agent.blocked()
    reply(agent, "msg_1", 400)  # the rest of a reply that was written late
    reply(agent, "msg_2", 500)
    agent.blocked()
    assert tokens(agent) == [400, 500]
    reply(agent, "msg_3", 200)
    notice = agent.allowed()
    assert "is paused (budget): 1100 of 1000 tokens are used" in notice
    assert "--add-tokens" in notice


def test_total_of_the_client_counts_only_by_its_growth(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "2")
    for usd in (5.0, 6.5, 6.5):
        total(agent, usd)
        agent.uses_a_tool()
        agent.blocked()
    assert agent.status("spent_usd") == 1.5
    total(agent, 7.25)
    notice = agent.allowed()
    assert "$2.25 of $2.00 are spent" in notice
    assert "resume --add-budget 1.25" in without_loop(notice)
    agent.prompt("take ten more")
    agent.do(agent.status("next").rpartition("Run: gsd-fsm ")[2])
    agent.blocked()


@pytest.mark.parametrize("replied", [True, False])
def test_total_of_a_session_younger_than_the_loop_counts_fully(agent: Agent, replied: bool) -> None:
    agent.here.start("goal", "g", "--budget", "5")
    agent.write({"type": "user", "timestamp": agent.here.lines()[-1]["ts"]})
    time.sleep(0.01)
    agent.prompt("go")
    if replied:
        reply(agent, "msg_1", 10)
    total(agent, 4.0)
    agent.ends()
    assert agent.status("spent_usd") == 4


def test_older_total_adds_nothing_to_the_one_of_the_status_line(agent: Agent) -> None:
    start(agent, *BUDGET)
    for usd in (1.0, 3.0):
        status_line(agent, usd)
    total(agent, 2.5)
    agent.blocked()
    assert agent.status("spent_usd") == 2


def test_replies_with_a_price_are_not_counted_again_with_the_total(agent: Agent) -> None:
    start(agent, *BUDGET)
    agent.write({"type": "user", "timestamp": LATER})
    reply(agent, "msg_1", 10, costUSD=1.5)
    agent.blocked()
    reply(subagent(agent, "a1"), "msg_9", 10, costUSD=0.5)
    subagent_stops(agent, "a1")
    assert agent.status("spent_usd") == 2
    status_line(agent, 2.25, transcript_path=str(agent.transcript))
    assert agent.status("spent_usd") == 2.25
    total(agent, 2.5)
    reply(agent, "msg_2", 10, costUSD=0.25)
    agent.blocked()
    assert agent.status("spent_usd") == 2.5


@pytest.mark.parametrize("budget", [["--max-tokens", "1000"], []])
def test_spending_counts_only_in_a_loop_with_a_budget(agent: Agent, budget: list[str]) -> None:
    at = "2020-01-01T00:00:00.000Z" if budget else LATER
    reply(agent, "msg_0", 900, timestamp=at)
    start(agent, "goal", "g", *budget)
    agent.blocked()
    assert tokens(agent) == []


def test_spending_before_a_session_took_the_loop_over_does_not_count(agent: Agent) -> None:
    start(agent, *BUDGET)
    other, now = agent.other("s-2"), agent.here.last()["ts"]
    other.write({"type": "user", "timestamp": now})
    reply(other, "msg_1", 900, timestamp=now)
    time.sleep(0.01)
    other.takes_over()
    total(other, 5.0)
    other.blocked()
    reply(other, "msg_2", 50)
    total(other, 6.0)
    other.blocked()
    assert agent.status("spent_usd") == 1
    assert tokens(agent) == [None, 50]


def test_spending_of_a_session_while_another_owned_the_loop_does_not_count(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "50")
    other = agent.other("s-2")
    for session, totals in ((agent, (1.0, 2.0)), (other, (7.0, 7.5)), (agent, (6.0, 6.25))):
        session.takes_over()
        for usd in totals:
            status_line(session, usd)
    assert agent.status("spent_usd") == 1.75


def test_spending_of_the_user_during_a_pause_does_not_count(agent: Agent) -> None:
    start(agent, *BUDGET)
    status_line(agent, 1.0)
    reply(agent, "msg_1", 100, timestamp=agent.here.lines()[-1]["ts"])
    time.sleep(0.01)
    agent.do("fail --error 'no idea' --class unknown", "resume")  # a pause of the agent
    agent.blocked()
    agent.do("pause")
    status_line(agent, 1.5)  # what led to the pause is reported after it
    reply(agent, "msg_2", 20)
    agent.prompt("something else")
    status_line(agent, 4.0)
    reply(agent, "msg_3", 7000, timestamp=agent.here.lines()[-1]["ts"])
    agent.ends()
    agent.starts("resume")
    time.sleep(0.01)
    agent.do("resume")
    status_line(agent, 4.5)
    status_line(agent, 4.75)
    reply(agent, "msg_4", 3)
    agent.blocked()
    assert agent.status("spent_usd") == 0.75
    assert sum(count or 0 for count in tokens(agent)) == 123


def test_tokens_of_a_subagent_that_are_reported_late_count_at_the_next_stop(agent: Agent) -> None:
    start(agent, *BUDGET)
    reply(subagent(agent, "a1"), "msg_1", 100)
    for _ in range(2):
        subagent_stops(agent, "a1")
    assert tokens(agent) == [100]
    assert agent.here.last()["by"] == "hook"
    reply(subagent(agent, "a1"), "msg_2", 20)
    for _ in range(2):
        subagent_stops(agent, "a2")  # nothing is written yet
    reply(subagent(agent, "a2"), "msg_3", 3)
    agent.blocked()
    assert agent.status("status") == "running"
    assert tokens(agent) == [100, 20, 3]
    agent.blocked()
    assert len(tokens(agent)) == 3


# the task list


def put(number: str, status: str, name: str = "my-loop", **more: Any) -> Path:
    place = Path(os.environ["HOME"]) / ".claude" / "tasks" / name
    place.mkdir(parents=True, exist_ok=True)
    task = {"id": number, "subject": f"subject {number}", "description": "d", "status": status}
    path = place / f"{number}.json"
    path.write_text(json.dumps({**task, "blocks": [], "blockedBy": [], **more}, indent=2))
    return path


def tasks(agent: Agent) -> dict[str, tuple[str, str]]:
    return {task["id"]: (task["title"], task["status"]) for task in agent.status("tasks")}


@pytest.fixture
def mirroring(agent: Agent) -> Agent:
    """A goal loop that mirrors the list my-loop."""
    start(agent, "goal", "g", "--task-list", "my loop", "--criterion", "c")
    return agent


def test_open_tasks_of_the_list_block_until_they_are_completed(mirroring: Agent) -> None:
    put("1", "completed")
    put("2", "in_progress", blockedBy=["1"])
    folder = put("3", "pending", blockedBy=["2"]).parent
    mirroring.do("criterion c met", "exit-signal")
    before = files_in(folder)
    assert "task 2 is running; task 3 is pending" in mirroring.blocked()
    assert files_in(folder) == before
    # A task that was completed before the loop saw it does not count.
    assert tasks(mirroring) == {"2": ("subject 2", "running"), "3": ("subject 3", "pending")}
    put("2", "completed")
    put("3", "completed")
    mirroring.do("criterion c unmet")
    assert "criterion not met: c; no exit signal" in mirroring.blocked()
    mirroring.do("criterion c met", "exit-signal")
    assert "completed" in mirroring.allowed()


def test_complete_of_a_paused_loop_is_refused_if_its_list_has_changed(agent: Agent) -> None:
    listed = ("--task-list", "my loop", "--criterion", "c", "--max-iterations", "1")
    loop = start(agent, "goal", "g", *listed)
    agent.blocked()
    agent.do("criterion c met")
    agent.allowed()
    assert kinds(agent.here)[-1] == "pause iterations"
    path = put("1", "pending")
    before = agent.here.journal.read_bytes()
    assert "not done: the client's task list has changed" in agent.refused("complete")
    assert agent.new(before) == []
    path.unlink()
    agent.do(f"complete --loop {loop}")


def test_agent_can_settle_a_task_of_the_list_only_in_the_list(mirroring: Agent) -> None:
    put("1", "pending")
    text = mirroring.blocked()
    assert "Do task 1 (subject 1) of your task list and mark it completed there." in text
    for status in ("running", "complete", "skipped"):
        assert "belongs to the client's task list" in mirroring.refused(f"task 1 {status}")
    mirroring.here.ok("task", "1", "skipped")


def test_changes_of_the_mirrored_list_are_recorded_at_once_and_once(mirroring: Agent) -> None:
    facts = {"task_id": "1", "task_subject": "alpha", "task_description": "d"}
    before = mirroring.here.journal.read_bytes()
    mirroring.context("TaskCreated", **facts)  # in the list of the session
    assert mirroring.new(before) == []
    named = {"CLAUDE_CODE_TASK_LIST_ID": "my loop"}
    for event, status in (("TaskCreated", "pending"), ("TaskCompleted", "complete")):
        mirroring.context(event, env=named, **facts)
        before = mirroring.here.journal.read_bytes()
        mirroring.twin("two").context(event, env=named, **facts)
        assert mirroring.new(before) == []
        assert tasks(mirroring) == {"1": ("alpha", status)}


def test_list_named_by_the_user_is_mirrored_unless_it_is_switched_off(agent: Agent) -> None:
    put("1", "pending")
    named = {"CLAUDE_CODE_TASK_LIST_ID": "my loop"}
    start(agent, "goal", "g", "--task-list", "none")
    agent.do("exit-signal")
    assert "completed" in agent.allowed(env=named)
    start(agent, "goal", "g")
    agent.do("exit-signal")
    assert "task 1 is pending" in agent.blocked(env=named)


def test_open_tasks_of_an_earlier_session_hold_the_loop_until_settled(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    put("1", "in_progress", name=agent.session)
    put("2", "pending", name=agent.session)
    agent.blocked()
    later = agent.other("s-later")
    later.takes_over()
    later.do("exit-signal")
    put("1", "pending", name=later.session, subject="subject 1")
    text = later.blocked()
    assert "task 1 is running; task 2 is pending; task client-1 is pending" in text
    # Its client cannot reach the old list any more, so it settles those tasks here.
    assert "Finish task 1 (subject 1)." in text
    later.refused("task client-1 skipped")
    later.do("task 1 complete", "task 2 running", "task 2 complete")
    put("1", "pending", name=agent.session)
    assert "of your task list" in later.blocked()
    team = {"CLAUDE_CODE_TASK_LIST_ID": "team"}  # and then the client uses another list
    put("1", "pending", name="team")
    assert "task client-1-2 is pending" in later.blocked(env=team)
    later.here.refused(4, "task", "client-1-2", "skipped", env={**later.shell, **team})
    later.here.ok("task", "client-1", "skipped", env={**later.shell, **team})
    put("1", "completed", name="team")
    assert "completed" in later.allowed(env=team)


def test_recorded_tasks_without_a_list_belong_to_the_current_one(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--task-list", "auto")
    agent.do("exit-signal")
    old = {"task": "1", "status": "pending", "title": "subject 1", "mirrored": True, "depends": []}
    append(Journal(str(agent.here.gsd)), draft("task", loop, "hook", old, session=agent.session))
    put("1", "pending", name=agent.session)
    agent.blocked()
    agent.refused("task 1 complete")
    put("1", "in_progress", name=agent.session)
    assert "task 1 is running" in agent.here.run("complete", env=agent.shell).err  # reads the list
    put("1", "completed", name=agent.session)
    agent.do("complete")


def test_report_that_the_rules_refuse_is_logged_and_does_not_end_the_loop(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    before = agent.here.journal.read_bytes()
    wrong = [{"task": "x", "status": "complete"}]
    monkeypatch.setattr("gsd_fsm.core.hook.client_usage.list_changes", lambda *_: wrong)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(agent.here.root))
    answer = core_reply(json.dumps(agent.stop_signal()), "one")
    assert "Continuing goal loop" in json.dumps(answer)
    assert [event["type"] for event in agent.new(before)] == ["iteration"]
    assert "has no task x yet" in (agent.here.gsd / "hook.log").read_text()
    core_reply(json.dumps(agent.signal("SessionEnd", reason="other")), "one")
    assert [event["type"] for event in agent.new(before)] == ["iteration", "stop", "session"]

"""Budgets at every stop: what counts, what is shown, and what cannot be counted."""

from __future__ import annotations

import os
import time

import pytest

from gsd_fsm import gsd_fsm_hook
from tests.support.client_reports import priced, status_line, subagent, subagent_stops
from tests.support.hook_agent import SUBAGENT, Agent, kinds, start


def test_budget_is_enforced_by_tokens_and_shown_alike_everywhere(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "1")
    priced(agent, "msg_1", 20)
    agent.blocked()
    assert "spent ~$0.40 of $1.00" in agent.why()["why"]
    priced(agent, "msg_2", 41)
    agent.uses_a_tool()
    notice = agent.allowed()
    assert "is paused (budget): ~$1.22 of $1.00 are spent" in notice
    assert " --add-budget 0.72" in notice
    assert agent.status("spent_usd", "pause_reason") == (1.22, "~$1.22 of $1.00 are spent")
    for command in (("status",), ("why",), ("statusline",)):
        assert "~$1.22" in agent.here.ok(*command).out, command
    agent.prompt("take more")
    agent.do("resume --add-budget 0.72")
    agent.blocked()


def test_larger_of_estimate_and_total_counts(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "9", "--idle-limit", "0")
    priced(agent, "msg_1", 50)
    agent.blocked()
    status_line(agent, 0.7, transcript_path=str(agent.transcript))
    assert "~$1.00" in agent.here.ok("status").out
    status_line(agent, 1.25, transcript_path=str(agent.transcript))
    assert "$1.25 of" in agent.here.ok("status").out
    assert "~" not in agent.here.ok("statusline").out
    priced(agent, "msg_2", 50)
    agent.blocked()
    assert agent.status("spent_usd") == 2


def test_budget_is_tested_before_background_work_and_running_subagents_count(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "1")
    running = [{**SUBAGENT, "id": "a1"}]
    priced(subagent(agent, "a1"), "msg_1", 30)
    a_second_ago = time.time() - 1  # file systems keep times less exactly than the journal
    os.utime(subagent(agent, "a1").transcript, (a_second_ago, a_second_ago))
    assert "running subagents" in agent.allowed(background_tasks=running)
    assert agent.status("status", "spent_usd") == ("running", 0.6)
    priced(subagent(agent, "a1"), "msg_2", 30)
    assert "(budget): ~$1.20 of $1.00 are spent" in agent.allowed(background_tasks=running)
    assert agent.status("status") == "paused"


def test_budget_is_enforced_when_a_subagent_ends(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "1")
    priced(subagent(agent, "a1"), "msg_1", 60)
    subagent_stops(agent, "a1")
    assert "(budget): ~$1.20 of $1.00 are spent" in agent.notice
    assert kinds(agent.here)[-1] == "pause budget"
    before = agent.here.journal.read_bytes()
    subagent_stops(agent, "a1")
    assert agent.new(before) == []
    assert "(budget)" in agent.allowed()


def test_old_transcripts_of_subagents_are_not_read(agent: Agent) -> None:
    old = subagent(agent, "a0")
    priced(old, "msg_0", 60)
    os.utime(old.transcript, (0, 0))
    start(agent, "goal", "g", "--budget", "1")
    priced(subagent(agent, "not an id"), "msg_1", 60)
    (old.transcript.parent / "agent-a2.meta.json").write_text("{}")
    priced(agent, "msg_2")
    agent.blocked()
    assert agent.status("spent_usd") == 0.02


def test_more_subagents_than_are_remembered_do_not_count_twice(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(agent, "goal", "g", "--budget", "50", "--idle-limit", "0", "--stuck-limit", "0")
    agent.blocked()  # loads the part of the hook that has the bound
    monkeypatch.setattr(gsd_fsm_hook, "MOST_SOURCES", 3)
    priced(agent, "msg")
    for number in range(6):
        priced(subagent(agent, f"a{number}"), f"msg_{number}")
    for _ in range(3):
        agent.blocked()
    assert agent.status("spent_usd") == 0.06


@pytest.mark.parametrize(
    ("limit", "what"), [("--budget", "the budget"), ("--max-tokens", "the token limit")]
)
def test_limit_without_a_source_pauses_at_the_second_stop(
    agent: Agent, limit: str, what: str
) -> None:
    start(agent, "goal", "g", limit, "5")
    agent.blocked()
    notice = agent.allowed()
    assert f"(budget): {what} cannot be enforced: neither a status line nor a transcript" in notice
    agent.prompt("go on")
    agent.do("resume")
    agent.blocked()
    agent.uses_a_tool()
    priced(agent, "msg_1", 0)
    if limit == "--budget":
        assert "cannot be enforced" in agent.allowed()
        agent.prompt("go on")
        agent.do("resume", "spend 1")
        agent.blocked()
        assert "cannot be enforced" in agent.allowed()  # an agent cannot count for its client
        agent.here.ok("resume")
        agent.prompt("I count it myself")
        agent.here.ok("spend", "1")
        agent.blocked()
        agent.blocked()


def test_finished_loop_completes_though_its_budget_is_used_up(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "1")
    agent.do("exit-signal")
    priced(agent, "msg_1", 60)
    assert "completed" in agent.allowed()
    assert agent.status("spent_usd") == 1.2


def test_stop_in_plan_mode_is_allowed_and_recorded(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "9")
    priced(agent, "msg_1", 50)
    for _ in range(4):
        assert agent.allowed(permission_mode="plan") == ""
    assert kinds(agent.here)[-1] == "stop plan-mode"
    assert agent.status("iteration", "spent_usd") == (0, 1)
    assert agent.why()["code"] == "plan-mode"
    agent.blocked()


def test_budget_at_the_end_of_a_subagent_counts_the_main_agent_and_other_subagents(
    agent: Agent,
) -> None:
    start(agent, "goal", "g", "--budget", "1")
    priced(agent, "msg_1", 30)
    priced(subagent(agent, "a2"), "msg_2", 30)
    subagent_stops(agent, "a1")
    assert "(budget): ~$1.20 of $1.00 are spent" in agent.notice


def test_spending_after_a_pause_within_the_turn_counts_and_is_shown(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "1")
    priced(subagent(agent, "a1"), "msg_1", 60)
    subagent_stops(agent, "a1")
    priced(agent, "msg_2", 500)
    notice = agent.allowed()
    assert "(budget): ~$11.20 of $1.00 are spent" in notice
    assert "--add-budget 10.7" in notice
    assert agent.status("spent_usd", "pause_reason") == (11.2, "~$11.20 of $1.00 are spent")


def test_pause_at_the_budget_names_every_limit_that_is_used_up(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "1", "--max-iterations", "1")
    agent.blocked()
    priced(agent, "msg_1", 60)
    notice = agent.allowed()
    assert "(budget)" in notice
    agent.here.ok(*notice.rpartition("run: gsd-fsm ")[2].split())


def other_work(agent: Agent) -> None:
    """Let a session without a loop spend six US dollars."""
    priced(agent, "other", 300, timestamp=agent.here.lines()[-1]["ts"])
    time.sleep(0.01)


@pytest.mark.parametrize("how", ["named", "prompt of a paused loop"])
def test_what_a_session_spent_before_it_owned_the_loop_does_not_count(
    agent: Agent, how: str
) -> None:
    loop = agent.here.start("goal", "g", "--budget", "5")
    other_work(agent)
    if how == "named":
        agent.starts("resume", env={"GSD_FSM_LOOP": loop})
    else:
        agent.here.ok("pause")
        agent.prompt()
    assert agent.status("owner", "spent_usd") == ("s-1", 0)


def test_what_the_user_spent_while_the_loop_was_paused_does_not_count_after_resume_in_a_terminal(
    agent: Agent,
) -> None:
    start(agent, "goal", "g", "--budget", "2")
    for usd in (1.0, 3.1):
        status_line(agent, usd)
    assert agent.status("status", "spent_usd") == ("paused", 2.1)
    agent.prompt("something else")
    agent.here.ok("resume", "--add-budget", "3")
    agent.prompt("and now the loop again")
    for usd in (9.0, 9.2):
        status_line(agent, usd)
    assert agent.status("status", "spent_usd") == ("running", 2.3)


def test_late_total_of_the_status_line_adds_nothing(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "50")
    for usd in (0.01, 10, 4, 10.01):
        status_line(agent, usd)
    assert agent.status("spent_usd") == 10


def test_free_model_in_the_settings_counts_as_a_source(agent: Agent) -> None:
    agent.here.gsd.mkdir(exist_ok=True)
    config = "[prices.claude-opus-5-5]\ninput = 0\noutput = 0\n"
    (agent.here.gsd / "config.toml").write_text(config)
    start(agent, "goal", "g", "--budget", "5", "--idle-limit", "0")
    for number in range(3):
        priced(agent, f"msg_{number}")
        agent.blocked()
    assert agent.status("spent_usd") == 0


def test_missing_source_does_not_pause_before_the_second_stop(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "5")
    agent.blocked()
    subagent_stops(agent, "a1")
    assert agent.status("status") == "running"
    assert "cannot be enforced" in agent.allowed()


@pytest.mark.parametrize("path", ["a\0b.jsonl", "\ud800.jsonl", "", "notes.txt", "/dev/null"])
def test_odd_transcript_path_is_ignored(agent: Agent, path: str) -> None:
    start(agent, "goal", "g", "--budget", "5")
    (agent.here.root / "subagents").mkdir()
    agent.transcript = agent.here.root / "subagents" / "agent-a1.jsonl"
    priced(agent, "msg_1", 900)
    agent.blocked(transcript_path=path)
    assert agent.status("spent_usd") == 0

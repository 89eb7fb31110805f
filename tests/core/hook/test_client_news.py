"""What the client itself tells the hook of money and tokens, in its transcripts."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from gsd_fsm.core.hook.main import reply as answer_of
from tests.support.hook_agent import Agent, start

LATER = "2999-01-01T00:00:00.000Z"


def reply(agent: Agent, name: str, tokens: int, rows: int = 2, **more: Any) -> None:
    """One reply of the model as the client writes it: a row for each block, the usage in each."""
    usage = {"input_tokens": tokens, "output_tokens": 0}
    message = {"id": name, "role": "assistant", "content": [], "usage": usage}
    row = {"type": "assistant", "timestamp": LATER, "message": message, **more}
    write(agent, *[row] * rows)


def write(agent: Agent, *rows: dict[str, Any]) -> None:
    agent.transcript.parent.mkdir(parents=True, exist_ok=True)
    with agent.transcript.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def spends(agent: Agent) -> list[Any]:
    return [line["data"] for line in agent.here.lines() if line["type"] == "spend"]


def test_tokens_of_each_reply_count_once_and_their_limit_pauses(agent: Agent) -> None:
    start(agent, "goal", "g", "--max-tokens", "1000")
    reply(agent, "msg_1", 400, rows=3)
    agent.blocked()
    reply(agent, "msg_1", 400)  # the rest of a reply that lagged behind
    reply(agent, "msg_2", 500)
    agent.uses_a_tool()
    agent.blocked()
    assert [data["tokens"] for data in spends(agent)] == [400, 500]
    reply(agent, "msg_3", 200)
    notice = agent.allowed()
    status = agent.here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "budget")
    assert "1100 of 1000 tokens are used" in notice
    assert "--add-tokens" in notice


def test_the_clients_own_total_counts_only_what_it_grew_by(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "2")
    for total in (5.0, 6.5, 6.5):
        write(agent, {"type": "cost-state", "totalCostUSD": total})
        agent.uses_a_tool()
        agent.blocked()
    assert agent.here.status()["spent_usd"] == 1.5
    write(agent, {"type": "cost-state", "totalCostUSD": 7.25})
    notice = agent.allowed()
    assert "2.25 of 2.00 USD are spent" in notice
    assert "resume --add-budget 10" in notice
    resume = agent.here.status()["next"].rpartition("Run: ")[2].split()[1:]
    agent.prompt("take ten more")
    agent.here.ok(*resume, env=agent.shell)
    agent.uses_a_tool()
    agent.blocked()


def test_all_of_a_session_that_is_younger_than_the_loop_counts(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "2")
    write(agent, {"type": "user", "timestamp": LATER})
    write(agent, {"type": "cost-state", "totalCostUSD": 2.5})
    agent.allowed()
    assert agent.here.status()["spent_usd"] == 2.5


def test_an_older_total_adds_nothing_to_what_the_status_line_has_told(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "9")
    for total in (1.0, 3.0):
        told = {"session_id": agent.session, "cost": {"total_cost_usd": total}}
        agent.here.ok("statusline", stdin=json.dumps(told).encode())
    write(agent, {"type": "cost-state", "totalCostUSD": 2.5})
    agent.blocked()
    assert agent.here.status()["spent_usd"] == 2


def test_replies_with_a_price_are_not_paid_again_with_the_total_of_their_session(
    agent: Agent,
) -> None:
    start(agent, "goal", "g", "--budget", "9")
    write(agent, {"type": "user", "timestamp": LATER})
    reply(agent, "msg_1", 10, costUSD=1.5)
    agent.blocked()
    says(agent, "a1", "msg_9", 10, costUSD=0.5)
    ends(agent, "a1")
    assert agent.here.status()["spent_usd"] == 2
    cost = {"total_cost_usd": 2.25}
    told = {"session_id": agent.session, "cost": cost, "transcript_path": str(agent.transcript)}
    agent.here.ok("statusline", stdin=json.dumps(told).encode())
    assert agent.here.status()["spent_usd"] == 2.25
    write(agent, {"type": "cost-state", "totalCostUSD": 2.5})
    reply(agent, "msg_2", 10, costUSD=0.25)
    agent.uses_a_tool()
    agent.blocked()
    assert agent.here.status()["spent_usd"] == 2.5


def test_what_was_spent_before_the_loop_began_does_not_count(agent: Agent) -> None:
    reply(agent, "msg_0", 900, timestamp="2020-01-01T00:00:00.000Z")
    start(agent, "goal", "g", "--max-tokens", "1000")
    agent.blocked()
    assert spends(agent) == []


def test_a_session_does_not_pay_with_the_loop_for_what_it_did_before(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "9", "--max-tokens", "1000")
    other = agent.other("s-2")
    now = agent.here.lines()[-1]["ts"]
    write(other, {"type": "user", "timestamp": now})
    reply(other, "msg_1", 900, timestamp=now)
    time.sleep(0.01)
    agent.here.ok("resume", env=other.shell)
    write(other, {"type": "cost-state", "totalCostUSD": 5.0})
    other.blocked()
    reply(other, "msg_2", 50)
    write(other, {"type": "cost-state", "totalCostUSD": 6.0})
    other.uses_a_tool()
    other.blocked()
    assert agent.here.status()["spent_usd"] == 1
    assert [data.get("tokens") for data in spends(agent)] == [None, 50]


def test_a_loop_without_a_budget_reads_no_figures(agent: Agent) -> None:
    start(agent, "goal", "g")
    reply(agent, "msg_1", 400)
    agent.blocked()
    assert spends(agent) == []


def says(agent: Agent, subagent: str, name: str, tokens: int, **more: Any) -> None:
    """A reply of a subagent, in its own transcript."""
    own = agent.transcript
    agent.transcript = own.with_suffix("") / "subagents" / f"agent-{subagent}.jsonl"
    reply(agent, name, tokens, **more)
    agent.transcript = own


def ends(agent: Agent, subagent: str) -> None:
    path = str(agent.transcript.with_suffix("") / "subagents" / f"agent-{subagent}.jsonl")
    agent.context("SubagentStop", agent_id=subagent, agent_type="x", agent_transcript_path=path)


def test_tokens_of_a_subagent_count_when_it_stops(agent: Agent) -> None:
    start(agent, "goal", "g", "--max-tokens", "1000")
    says(agent, "a1", "msg_9", 300)
    for _ in range(2):
        ends(agent, "a1")
    assert [data["tokens"] for data in spends(agent)] == [300]
    assert agent.here.last()["by"] == "hook"


def test_what_a_subagent_s_transcript_tells_late_counts_at_the_next_stop(agent: Agent) -> None:
    start(agent, "goal", "g", "--max-tokens", "9000")
    says(agent, "a1", "msg_1", 100)
    ends(agent, "a1")
    says(agent, "a1", "msg_2", 20)
    for _ in range(2):
        ends(agent, "a2")  # of which nothing is written yet
    says(agent, "a2", "msg_3", 3)
    agent.blocked()
    assert agent.here.status()["status"] == "running"
    assert [data.get("tokens") for data in spends(agent)] == [100, None, 20, 3]
    agent.uses_a_tool()
    agent.blocked()
    assert len(spends(agent)) == 4


# whose money it is


def test_a_session_that_comes_back_does_not_pay_for_what_it_did_meanwhile(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "50")
    other = agent.other("s-2")
    for session, totals in ((agent, (1.0, 2.0)), (other, (7.0, 7.5)), (agent, (6.0, 6.25))):
        agent.here.ok("resume", env=session.shell)
        for total in totals:
            told = {"session_id": session.session, "cost": {"total_cost_usd": total}}
            agent.here.ok("statusline", stdin=json.dumps(told).encode())
    assert agent.here.status()["spent_usd"] == 1.75


def test_what_a_user_does_while_the_loop_is_paused_is_not_the_loop_s(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "5", "--max-tokens", "9000")

    def told(total: float) -> None:
        facts = {"session_id": agent.session, "cost": {"total_cost_usd": total}}
        agent.here.ok("statusline", stdin=json.dumps(facts).encode())

    told(1.0)
    reply(agent, "msg_1", 100)
    agent.blocked()
    agent.here.ok("pause", env=agent.shell)
    told(1.5)  # what led to the pause is told after it
    reply(agent, "msg_2", 20)
    agent.prompt("something else")
    told(4.0)
    reply(agent, "msg_3", 7000, timestamp=agent.here.lines()[-1]["ts"])
    agent.ends()
    agent.starts("resume")
    time.sleep(0.01)
    agent.here.ok("resume", env=agent.shell)
    told(4.5)
    told(4.75)
    reply(agent, "msg_4", 3)
    agent.uses_a_tool()
    agent.blocked()
    status = agent.here.status()
    assert status["spent_usd"] == 0.75
    assert sum(data.get("tokens", 0) for data in spends(agent)) == 123


def test_all_of_a_session_counts_that_replied_first_after_it_had_the_loop(agent: Agent) -> None:
    agent.here.start("goal", "g", "--budget", "5")
    write(agent, {"type": "user", "timestamp": agent.here.lines()[-1]["ts"]})
    time.sleep(0.01)
    agent.prompt("go")
    reply(agent, "msg_1", 10)
    write(agent, {"type": "cost-state", "totalCostUSD": 4.0})
    agent.ends()
    assert agent.here.status()["spent_usd"] == 4


@pytest.mark.parametrize(
    "row",
    [
        b"{",
        b"null\n",
        b'{"type":"assistant","message":{"id":"m","usage":{"input_tokens":-5}}}\n',
        b'{"type":"assistant","message":{"id":7,"usage":{"input_tokens":5}}}\n',
        b'{"type":"assistant","message":{"id":"m","usage":{"input_tokens":1e99}}}\n',
        b'{"type":"cost-state","totalCostUSD":"9"}\n',
        b'{"type":"cost-state","totalCostUSD":NaN}\n',
        b"\xff\xfe\x00\n" * 100,
    ],
)
def test_damaged_figures_are_passed_over(agent: Agent, row: bytes) -> None:
    start(agent, "goal", "g", "--budget", "1", "--max-tokens", "10")
    agent.transcript.parent.mkdir(parents=True, exist_ok=True)
    agent.transcript.write_bytes(row)
    agent.blocked()
    assert agent.here.status()["spent_usd"] == 0


def test_news_that_the_journal_refuses_are_no_way_out_of_the_loop(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    before = agent.here.journal.read_bytes()
    absurd = [{"task": "x", "status": "complete"}]
    monkeypatch.setattr("gsd_fsm.core.hook.client_usage.list_changes", lambda *_: absurd)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(agent.here.root))
    answer = answer_of(json.dumps(agent.stop_signal()), "one")
    assert "Continuing goal loop" in json.dumps(answer)
    assert [event["type"] for event in agent.new(before)] == ["iteration"]
    assert "has no task x yet" in (agent.here.gsd / "hook.log").read_text()
    ended = agent.signal("SessionEnd", reason="other")
    answer_of(json.dumps(ended), "one")
    assert [event["type"] for event in agent.new(before)] == ["iteration", "stop", "session"]


def test_an_agent_that_pauses_and_goes_on_by_itself_pays_all_the_same(agent: Agent) -> None:
    start(agent, "goal", "g", "--budget", "100", "--max-tokens", "9000")
    for turn in range(1, 4):
        reply(agent, f"msg_{turn}", 500, timestamp=agent.here.lines()[-1]["ts"])
        write(agent, {"type": "cost-state", "totalCostUSD": 5.0 * turn})
        agent.here.ok("fail", "--error", "no idea", "--class", "unknown", env=agent.shell)
        agent.here.ok("resume", env=agent.shell)
        agent.uses_a_tool()
        agent.blocked()
    assert agent.here.status()["spent_usd"] == 15
    assert sum(data.get("tokens", 0) for data in spends(agent)) == 1500

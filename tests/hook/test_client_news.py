"""What the client itself tells the hook: money and tokens in transcripts, tasks in its list."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.entry import reply as answer_of
from tests.hook.rig import Agent, start

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


def test_what_was_spent_before_the_loop_began_does_not_count(agent: Agent) -> None:
    reply(agent, "msg_0", 900, timestamp="2020-01-01T00:00:00.000Z")
    start(agent, "goal", "g", "--max-tokens", "1000")
    agent.blocked()
    assert spends(agent) == []


def test_a_loop_without_a_budget_reads_no_figures(agent: Agent) -> None:
    start(agent, "goal", "g")
    reply(agent, "msg_1", 400)
    agent.blocked()
    assert spends(agent) == []


def test_tokens_of_a_subagent_count_when_it_stops(agent: Agent) -> None:
    start(agent, "goal", "g", "--max-tokens", "1000")
    own = agent.transcript
    agent.transcript = own.with_name("agent-a1.jsonl")
    reply(agent, "msg_9", 300)
    path, agent.transcript = str(agent.transcript), own
    for _ in range(2):
        agent.context("SubagentStop", agent_id="a1", agent_type="x", agent_transcript_path=path)
    assert [data["tokens"] for data in spends(agent)] == [300]
    assert agent.here.last()["by"] == "hook"


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
    start(agent, "goal", "g", "--max-tokens", "9")
    before = agent.here.journal.read_bytes()

    def absurd(_loop: object, _signal: object) -> list[tuple[str, dict[str, Any]]]:
        return [("task", {"task": "x", "status": "complete"})]

    monkeypatch.setattr("gsd_fsm.core.client.client_news", absurd)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(agent.here.root))
    answer = answer_of(json.dumps(agent.stop_signal()), "one")
    assert "Continuing goal loop" in json.dumps(answer)
    assert [event["type"] for event in agent.new(before)] == ["iteration"]
    assert "cannot become complete" in (agent.here.gsd / "hook.log").read_text()


# the client's list of tasks


def home() -> Path:
    return Path(os.environ["HOME"])


def put(number: str, status: str, name: str = "my-loop", **more: Any) -> Path:
    place = home() / ".claude" / "tasks" / name
    place.mkdir(parents=True, exist_ok=True)
    task = {"id": number, "subject": f"subject {number}", "description": "d", "status": status}
    path = place / f"{number}.json"
    path.write_text(json.dumps({**task, "blocks": [], "blockedBy": [], **more}, indent=2))
    return path


def tasks(agent: Agent) -> dict[str, tuple[str, str]]:
    return {t["id"]: (t["title"], t["status"]) for t in agent.here.status()["tasks"]}


def test_pending_tasks_of_the_list_keep_the_loop_going_until_they_are_done(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my loop")
    put("1", "completed")
    put("2", "in_progress", blockedBy=["1"])
    put("3", "pending", blockedBy=["2"])
    agent.here.ok("exit-signal", env=agent.shell)
    text = agent.blocked()
    assert "task 2 is running; task 3 is pending" in text
    assert tasks(agent) == {
        "1": ("subject 1", "complete"),
        "2": ("subject 2", "running"),
        "3": ("subject 3", "pending"),
    }
    assert agent.here.status()["wave"] == 2
    put("2", "completed")
    put("3", "completed")
    assert "completed" in agent.allowed()


def test_a_task_that_was_deleted_no_longer_holds_the_loop(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    path = put("1", "pending")
    agent.here.ok("exit-signal", env=agent.shell)
    agent.blocked()
    path.unlink()
    agent.allowed()
    assert tasks(agent) == {"1": ("subject 1", "skipped")}


def test_tasks_of_another_loop_and_damaged_files_are_left_alone(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--task-list", "my-loop")
    put("1", "pending", metadata={"loopId": "another"})
    put("2", "pending").write_text('{"id": "2", "subj')
    put("3", "pending").write_text("[]")
    put("4", "dreaming")
    put("5", "pending", metadata={"loopId": loop})
    (home() / ".claude/tasks/my-loop/6.json").symlink_to("/etc/hostname")
    os.mkfifo(home() / ".claude/tasks/my-loop/7.json")
    agent.blocked()
    assert list(tasks(agent)) == ["5"]


def test_a_half_written_file_does_not_undo_what_was_known_of_it(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    path = put("1", "pending")
    agent.blocked()
    path.write_text("")
    agent.uses_a_tool()
    agent.blocked()
    assert tasks(agent) == {"1": ("subject 1", "pending")}


def test_made_and_completed_tasks_are_journalled_at_once_and_once(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "auto")
    facts = {"task_id": "1", "task_subject": "alpha", "task_description": "d"}
    agent.context("TaskCreated", **facts)
    agent.twin("two").context("TaskCreated", **facts)
    assert tasks(agent) == {"1": ("alpha", "pending")}
    agent.context("TaskCompleted", **facts)
    before = agent.here.journal.read_bytes()
    agent.twin("two").context("TaskCompleted", **facts)
    assert tasks(agent) == {"1": ("alpha", "complete")}
    assert agent.new(before) == []


def test_tasks_of_a_list_that_is_not_mirrored_are_not_journalled(agent: Agent) -> None:
    facts = {"task_id": "1", "task_subject": "alpha", "task_description": "d"}
    start(agent, "goal", "g", "--task-list", "my-loop")
    before = agent.here.journal.read_bytes()
    agent.context("TaskCreated", **facts)
    assert agent.new(before) == []
    agent.context("TaskCreated", env={"CLAUDE_CODE_TASK_LIST_ID": "my loop"}, **facts)
    assert [event["type"] for event in agent.new(before)] == ["task"]


def test_a_list_that_the_user_has_named_is_mirrored_by_itself_unless_it_is_not_wanted(
    agent: Agent,
) -> None:
    named = {"CLAUDE_CODE_TASK_LIST_ID": "my loop"}
    put("1", "pending")
    start(agent, "goal", "g")
    agent.here.ok("exit-signal", env=agent.shell)
    assert "task 1 is pending" in agent.blocked(env=named)
    agent.here.ok("cancel")
    start(agent, "goal", "g", "--task-list", "none")
    agent.here.ok("exit-signal", env=agent.shell)
    assert "completed" in agent.allowed(env=named)


def test_a_number_that_the_loop_has_already_is_told_apart(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop", "--task", "1:ours")
    put("1", "pending")
    agent.blocked()
    assert tasks(agent) == {"1": ("ours", "pending"), "client-1": ("subject 1", "pending")}


def test_secrets_in_subjects_do_not_reach_the_journal(agent: Agent) -> None:
    start(agent, "goal", "g", "--task-list", "my-loop")
    secret = "ghp_" + "a1B2" * 9
    put("1", "pending", subject=f"use {secret}")
    agent.blocked()
    assert secret not in agent.here.journal.read_text()
    assert "use " in tasks(agent)["1"][0]

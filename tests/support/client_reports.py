"""What a client of an agent reports about its use: replies, totals and the status line."""

from __future__ import annotations

import json
from typing import Any

from tests.support.hook_agent import Agent

LATER = "2999-01-01T00:00:00.000Z"


def priced(agent: Agent, name: str, thousands: int = 1, **more: Any) -> None:
    """Write a reply that costs 0.02 US dollars for each thousand of tokens."""
    used = {"input_tokens": 0, "output_tokens": 1_000 * thousands}
    message = {"id": name, "role": "assistant", "model": "claude-opus-5-5", "content": []}
    row = {"type": "assistant", "timestamp": LATER, "message": {**message, "usage": used}}
    agent.write({**row, **more})


def status_line(agent: Agent, usd: float, **more: str) -> None:
    facts = {"session_id": agent.session, "cost": {"total_cost_usd": usd}, **more}
    agent.here.ok("statusline", stdin=json.dumps(facts).encode())


def subagent(agent: Agent, name: str) -> Agent:
    """Return who writes the transcript of this subagent."""
    writer = agent.twin("one")
    writer.transcript = agent.transcript.with_suffix("") / "subagents" / f"agent-{name}.jsonl"
    return writer


def subagent_stops(agent: Agent, name: str) -> None:
    path = str(subagent(agent, name).transcript)
    agent.context("SubagentStop", agent_id=name, agent_type="x", agent_transcript_path=path)

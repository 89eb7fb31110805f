"""Golden journals: recorded once, kept byte for byte, and replayed by every version.

To record missing journals and all replays, run: GSD_RECORD=1 pytest tests/core/loop/test_golden.py
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

from gsd_fsm.core.codec import encode_event
from tests.support.chaos import run_random_story
from tests.support.story import MINUTE, PAYLOADS, Story

DIRECTORY = Path(__file__).parents[1] / "journals" / "v1"
RECORD = os.environ.get("GSD_RECORD") == "1"


def execute() -> Story:
    tasks = [{"id": "T1", "title": "Login", "wave": 1}, {"id": "T2", "wave": 2, "depends": ["T1"]}]
    story = Story("execute", tasks=tasks, goal="Ship phase 3", phase=3, must_not=["break the API"])
    story("iteration", activity=True, _by="hook")
    story.task("T1", "running", ref="bg-1", _by="agent")
    for attempt in range(3):
        story.fail("T1", error=f"test_login fails ({attempt})", signature="test_login", _by="agent")
        story.task("T1", "running", phase="green", _by="agent")
    story.task("T1", "complete", commit="0a1b2c3", _by="agent")
    story("wait", for_="human", question="Next wave?", _by="hook")
    story("answer", text="Ja, weiter: größer → besser 👍")
    story.task("T2", "running", _by="agent")
    for _ in range(4):
        story.fail("T2", error="boom", _by="agent")
    story("resume", add={"max_retries": 2}, _session="s-1", _client="claude")
    story.task("T2", "running", _by="agent")
    story.task("T2", "complete", _by="agent")
    story("complete", summary="done")
    return story


def verify() -> Story:
    story = Story("verify", limits={"max_rounds": 2, "max_minutes": 90.5})
    story("verified", passed=False, report="two gaps")
    story.gap("G1", kind="missing", file="src/a.py", description="no logout", evidence="404")
    story.gap("G2", description="typo")
    story.gap("G1", "closed")
    story("verified", passed=False)
    story("pause", code="rounds", reason="2 of 2 verification rounds are used", _by="hook")
    story("resume", add={"max_rounds": 5})
    story.gap("G2", "closed")
    story.gap("G1", "reopened", evidence="500")
    story.gap("G1", "closed")
    story("repair", bytes=17, aside="journal.broken-x", what="torn tail", _loop=None, _by="cli")
    story("verified", passed=True)
    story("complete")
    return story


def goal() -> Story:
    proof = {
        "command": "make test",
        "exit_code": 1,
        "tail": "1 failed",
        "likeness": "a",
        "tree": "t1",
    }
    criteria = [{"name": "tests", "check": "make test"}, {"name": "The docs are right"}]
    story = Story(
        "goal", criteria=criteria, goal="All green", review=True, limits={"budget_usd": 2.5}
    )
    for stage in ("intent", "shape", "decompose", "executing"):
        story("stage", stage=stage)
    story("score", spec_score=88, fit_score=9, shape="tool-review", spec={"clarity": 4})
    story("criterion", criterion="tests", met=False, evidence=proof, _by="cli")
    story("note", text="Mind the \u2028 gap \u202e")
    story("note", text="remember", kind="recall")
    story("iteration", delivered=[next(iter(story.loop.notes))], reason="continue", _by="hook")
    story("spend", usd=0.1, tokens=1200)
    story("spend", usd=0.2)
    story("review", action="light", wave=1, score=7.5, issues=2, blockers=0)
    story("review", action="begun")
    story("review", action="failed", blockers=1)
    story("criterion", criterion="tests", met=True, evidence={**proof, "exit_code": 0}, _by="cli")
    story("criterion", criterion="The docs are right", met=True)
    story("exit", reason="all met")
    story("review", action="begun")
    story("review", action="passed", score=9)
    story("complete", tree="t1")
    return story


def shape() -> Story:
    """Return a shape with a repeated criterion, as written before a check could join one."""
    story = Story("goal", criteria=[{"name": "tests"}], goal="All green", views=["state"])
    story("session", action="bind", _session="s-1", _client="claude", _by="hook")
    story("stage", stage="intent")
    story("score", spec_score=3, fit_score=20, shape="blocked", spec={"outcome": 1})
    story("score", spec_score=9, fit_score=55, shape="tool", spec={"outcome": 2})
    for stage in ("shape", "decompose"):
        story("stage", stage=stage)
    story("plan", criteria=[{"name": "tests", "check": "make test"}, {"name": "docs"}])
    for name, more in (("A", {}), ("B", {"depends": ["A"]}), ("C", {"mirrored": True})):
        story("task", task=name, status="pending", **more)
    for total in (1.0, 2.5):
        story("spend", meter="s-1", total_usd=total, what="status line", _by="cli")
    story("review", action="begun")
    story("review", action="passed")
    story("pause", code="manual")
    story("session", action="prompt", _session="s-1", _by="hook")
    story("spend", meter="s-1", total_usd=4.0, what="status line", _by="cli")
    story("resume", _session="s-1", _by="agent")
    story("spend", meter="s-1", total_usd=4.5, what="status line", _by="cli")
    for name in ("A", "B", "C"):
        story("task", task=name, status="running")
        story("task", task=name, status="complete")
    story("iteration", _by="hook")
    story("criterion", criterion="tests", met=True)
    story("criterion", criterion="docs", met=True)
    story("exit")
    story.obeys_rules = False  # an earlier version allowed work after the review
    story("complete")
    return story


def several() -> Story:
    story = Story("goal", goal="one")
    start = PAYLOADS["start"]
    story("start", **start, _loop="lp-2", _session="s-2", _client="gemini")
    story("session", action="bind", _session="s-1", _client="claude", _by="hook")
    story("session", action="prompt", _session="s-1", _by="hook")
    story("start", **start, _loop="lp-3")
    story.fail(None, "transient", _loop="lp-3")
    story.fail(None, "transient", _loop="lp-3")
    story("wait", for_="throttled", until="2026-11-16T00:00:00.000Z", _loop="lp-2", _by="hook")
    story("resume", _loop="lp-2", _session="s-2", _by="hook")
    story("cancel", reason="start --fresh", _loop="lp-3")
    story("stop", code="background", _by="hook")
    story("checkpoint", name="before", commit="abc")
    story("mode", mode="interactive")
    story("issue", text="smell", severity="WARNING")
    story("plan", digest="d1", file="PLAN.md")
    story("session", action="end", _session="s-1", _by="hook")
    return story


def clock() -> Story:
    story = Story("goal", limits={"max_minutes": 10})
    for step in (MINUTE, -3 * MINUTE, 2 * MINUTE, -86_400_000, 5 * MINUTE, 60):
        story("iteration", _after=step, _by="hook")
    story("pause", code="minutes", _after=-1, _by="hook")
    story("resume", add={"max_minutes": 0.5}, _after=315_360_000_000)
    return story


def _random(seed: int) -> list[dict[str, Any]]:
    return run_random_story(Random(seed), 400)[1]


def stories() -> dict[str, list[dict[str, Any]]]:
    told = {tell.__name__: tell().events for tell in (execute, verify, goal, several, clock, shape)}
    return {**told, "random-1": _random(11), "random-2": _random(22)}


NAMES = ("clock", "execute", "goal", "random-1", "random-2", "several", "shape", "verify")


def write_lines(events: list[dict[str, Any]]) -> bytes:
    lines, previous = [], ""
    for event in events:
        line, previous = encode_event({n: v for n, v in event.items() if n != "sum"}, previous)
        lines.append(line)
    return b"".join(lines)


def journal_bytes(name: str) -> bytes:
    return (DIRECTORY / f"{name}.jsonl").read_bytes()

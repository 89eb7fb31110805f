"""Every loop ends: no agent gets more iterations than its limits allow."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.limits import reached_limit
from gsd_fsm.core.loop.state import ACTIVE, LIVE
from tests.support.story import Story


def idler(r: Random, story: Story) -> None:
    """Stop at once."""


def talker(r: Random, story: Story) -> None:
    story("note", text="nearly done", _by="agent")


def failer(r: Random, story: Story) -> None:
    story.fail(r.choice(("T1", "T2", None)), r.choice(("logic", "transient")), _by="agent")
    if story.status in ACTIVE and r.random() < 0.5:
        story.task("T1", "running", _by="agent")


def liar(r: Random, story: Story) -> None:
    """Claim that the work is done."""
    lies: list[tuple[str, dict[str, Any]]] = [
        ("complete", {}),
        ("exit", {}),
        ("criterion", {"criterion": "checked", "met": True}),
        ("criterion", {"criterion": "checked", "met": True,
                       "evidence": {"command": "true", "exit_code": 0}}),
        ("resume", {"add": {"max_iterations": 100}}),
        ("cancel", {}),
        ("answer", {"text": "yes"}),
    ]  # fmt: skip
    for kind, data in r.sample(lies, 3):
        try:
            story(kind, **data, _by="agent", _session="s-1")
        except Refused:
            continue
        raise AssertionError(kind)


def seesaw(r: Random, story: Story) -> None:
    """Make progress and undo it."""
    gap = f"G{r.randrange(3)}"
    action = (
        "closed" if gap in story.loop.gaps and story.loop.gaps[gap].status == "open" else "found"
    )
    if action == "found" and gap in story.loop.gaps:
        action = "reopened"
    story.gap(gap, action, _by="agent")


def resumer(r: Random, story: Story) -> None:
    """Resume, which resets every count but not the limits."""
    story("resume", _by="agent", _session="s-1")


ENDINGS = ("iterations", "stuck", "idle", "repeated", "minutes", "retries", "oscillation")
AGENTS = (idler, talker, failer, liar, seesaw, resumer)


def live_out(seed: int) -> tuple[Story, int]:
    """Drive a loop until it stops; return its story and the number of blocks."""
    r = Random(seed)
    limits: dict[str, Any] = {
        "max_iterations": r.randrange(1, 30),
        "max_retries": r.randrange(4),
        "stuck_limit": r.randrange(6),
        "idle_limit": r.randrange(4),
    }
    if r.random() < 0.3:
        limits["max_minutes"] = r.randrange(1, 5)
    story = Story(
        r.choice(("execute", "verify", "goal")),
        limits=limits,
        tasks=[{"id": "T1"}, {"id": "T2"}],
        criteria=[{"name": "checked", "check": "make"}],
    )
    agents = r.sample(AGENTS, r.randrange(1, 4))
    blocks = 0
    story("iteration", _by="hook")
    while story.status in ACTIVE:
        r.choice(agents)(r, story)
        if story.status not in ACTIVE:
            break
        spent = reached_limit(story.loop, story.now, r.random() < 0.3)
        if spent is not None:
            story("pause", code=spent.code, reason=spent.reason, _by="hook")
            break
        story("iteration", _by="hook", _after=r.choice((1000, -60_000, 30_000)))
        blocks += 1
        assert blocks <= limits["max_iterations"]
    return story, blocks


def check_life(seed: int) -> None:
    story, blocks = live_out(seed)
    loop = story.loop
    assert loop.iteration == blocks + 1 <= loop.limits.max_iterations
    assert sum(event["type"] == "iteration" for event in story.events) == blocks + 1
    assert loop.status in LIVE
    assert loop.pause_code in ENDINGS
    for task in loop.tasks.values():
        assert task.retries <= loop.limits.max_retries


@pytest.mark.parametrize("part", range(5))
def test_random_agents_stay_within_iteration_limits(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        check_life(seed)


@pytest.mark.torture
def test_100000_random_agents_stay_within_limits() -> None:
    for seed in range(int(100_000 * float(os.environ.get("GSD_TORTURE", "1.0")))):
        check_life(seed)

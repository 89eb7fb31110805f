"""Limits of a loop: their codes, time, capacity, and no agent that gets more than they allow."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop import limits as capacity
from gsd_fsm.core.loop.limits import active_minutes, reached_limit
from gsd_fsm.core.loop.state import ACTIVE, LIVE
from gsd_fsm.core.text.progress import progress, status_block
from gsd_fsm.core.views.loop_json import state
from gsd_fsm.engine.status import status_view
from gsd_fsm.history.timeline import counts
from tests.support.command_line import Here, here
from tests.support.story import MINUTE, NOW, Story

__all__ = ["here"]
OFF = {"stuck_limit": 0, "idle_limit": 0, "max_iterations": 0}


def code(story: Story, later: int = 0, *, activity: bool = False) -> str:
    spent = reached_limit(story.loop, story.now + later, activity)
    return "" if spent is None else spent.code


@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize(
    ("limit", "reached"),
    [("max_iterations", "iterations"), ("idle_limit", "idle"), ("stuck_limit", "stuck")],
)
def test_iteration_limit_allows_exactly_n(limit: str, reached: str, most: int) -> None:
    story = Story("goal", limits={**OFF, limit: most})
    assert story.blocks() == (most, reached)
    assert code(story, activity=True) == ("" if reached == "idle" else reached)
    assert Story("goal", limits=OFF).blocks(most=150) == (150, "")


@pytest.mark.parametrize("by", ["agent", "human", "prompt", "client"])
def test_idle_count_is_reset_by_activity_but_not_by_engine_events(by: str) -> None:
    story = Story("goal", limits={**OFF, "idle_limit": 3})
    assert story.blocks() == (3, "idle")
    for engine in ("hook", "cli"):
        story("stop", code="background", _by=engine)
    assert code(story) == "idle"
    if by == "client":
        assert [story.block(activity=True) for _ in range(3)] == [None] * 3
    elif by == "prompt":
        story("session", action="prompt", _by="hook", _session="s-1")
    else:
        story("spend", usd=0, _by=by)
    assert story.blocks() == (2 if by == "client" else 3, "idle")


UNLIKE = {"command": "c", "exit_code": 1, "likeness": "other"}
PROGRESS: list[tuple[str, dict[str, Any]]] = [
    ("criterion", {"criterion": "A", "met": True}),
    ("gap", {"gap": "G1", "action": "found"}),
    ("task", {"task": "T1", "status": "skipped"}),
    ("criterion", {"criterion": "A", "met": False, "evidence": UNLIKE}),
]
STUCK: dict[str, Any] = {"criteria": [{"name": "A"}], "tasks": [{"id": "T1"}],
                         "limits": {**OFF, "stuck_limit": 3}}  # fmt: skip


def require_stuck_count(story: Story, count: int) -> None:
    """Require this count in the limit and in every view."""
    assert code(story) == ("stuck" if count == 3 else "")
    assert status_view(story.loop, "")["stuck"] == count
    assert state(story.loop)["circuitBreaker"]["stuckCount"] == count
    assert f"Stuck count: {count}" in progress(story.loop)
    assert f"Stuck: {count}/3" in status_block(story.loop)
    assert f"stuck {count}/3" in counts(story.loop)


@pytest.mark.parametrize(("kind", "data"), PROGRESS)
def test_progress_resets_stuck_count_in_limit_and_views(kind: str, data: dict[str, Any]) -> None:
    story = Story("goal", **STUCK)
    assert story.blocks() == (3, "stuck")
    require_stuck_count(story, 3)
    story(kind, **data, _by="cli")
    require_stuck_count(story, 0)
    story.block()
    assert story.blocks() == (3, "stuck")


def test_events_without_lasting_change_keep_stuck_count() -> None:
    story = Story("goal", **STUCK)
    story("criterion", criterion="A", met=False, _by="cli")
    story.blocks()
    for kind, data in (
        ("criterion", {"criterion": "A", "met": False}),
        ("task", {"task": "T1", "status": "running"}),
        ("note", {"text": "hm"}),
        ("spend", {"usd": 1}),
    ):
        story(kind, **data, _by="cli")
        assert code(story) == "stuck"
    for action in ("found", "closed"):
        story.gap("G1", action, _by="cli")
    assert code(story) == "stuck"


@pytest.mark.parametrize("most", [1, 3])
def test_round_limit_allows_exactly_n_verifications(most: int) -> None:
    verify, goal = (Story(kind, limits={**OFF, "max_rounds": most}) for kind in ("verify", "goal"))
    for _ in range(most):
        assert code(verify) == ""
        verify("verified", passed=False)
        goal("verified", passed=False)
    assert (code(verify), code(goal)) == ("rounds", "")


def test_repeated_limit_counts_equal_errors_of_the_loop_until_a_task_completes() -> None:
    story = Story("goal", limits={**OFF, "max_retries": 9}, tasks=[{"id": "T1"}])
    for _ in range(6):
        story.fail("T1", error="same")
    for error in ("same", "same", "other", "same", "same"):
        story.fail(None, error=error)
        assert code(story) == ""
    story.fail(None, error="same")
    assert code(story) == "repeated"
    story.task("T1", "skipped")
    assert code(story) == ""


STEPS = st.lists(
    st.tuples(st.sampled_from(["iteration", "pause", "resume", "wait", "throttle", "answer"]),
              st.integers(-90 * MINUTE, 90 * MINUTE)),
    max_size=30,
)  # fmt: skip


@given(STEPS, st.integers(-90 * MINUTE, 90 * MINUTE))
def test_active_time_sums_active_forward_steps(steps: list[tuple[str, int]], last: int) -> None:
    data = {
        "pause": {"code": "manual"}, "wait": {"for": "human"}, "throttle": {"for": "throttled"},
        "answer": {"text": "y"},
    }  # fmt: skip
    legal = {
        "running": {"iteration", "pause", "wait", "throttle", "resume"},
        "waiting": {"answer", "resume", "pause"},
        "paused": {"resume"},
    }
    story = Story("goal", limits={**OFF, "max_minutes": 1_000_000})
    story.now += 10_000 * MINUTE
    story("iteration", _after=0)
    expected = story.now - to_ms(story.loop.started)
    for kind, step in steps:
        if kind not in legal[story.status]:
            continue
        was_active = story.status in ACTIVE
        event = "wait" if kind == "throttle" else kind
        story(event, **data.get(kind, {}), _after=step)
        expected += max(0, step) if was_active else 0
    if story.status in ACTIVE:
        expected += max(0, last)
    assert active_minutes(story.loop, story.now + last) == expected / MINUTE


@pytest.mark.parametrize("jump", [-MINUTE, -(NOW - 1000)])
def test_backward_step_of_the_clock_is_counted_and_adds_no_time(jump: int) -> None:
    story = Story("goal", limits={**OFF, "max_minutes": 3})
    story("iteration", _after=2 * MINUTE)
    story("iteration", _after=jump)
    assert story.loops.backwards == 1
    assert active_minutes(story.loop, story.now - MINUTE) == 2
    assert (code(story), code(story, MINUTE)) == ("", "minutes")


def test_commands_count_active_minutes(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    # In this zone the clocks jump from 02:00 to 03:00 local time at 01:00 UTC.
    monkeypatch.setenv("TZ", "Europe/Berlin")
    moment = datetime(2026, 3, 29, 0, 55, tzinfo=timezone.utc)
    steps: list[tuple[float, str, int]] = [  # minutes, then a command and its exit code
        (0, "start goal g --max-minutes 10", 0),
        (6, "iterate", 0),
        (3.9, "iterate", 0),
        (0.1, "iterate", 4),
        (600, "resume", 4),
        (600, "resume --add-minutes 2", 0),
        (-60 * 24, "iterate", 0),  # a backward step adds no time
        (1.9, "iterate", 0),
        (60 * 24 * 3653, "iterate", 4),
    ]
    for minutes, command, exit_code in steps:
        moment += timedelta(minutes=minutes)
        with freeze_time(moment):
            assert here.run(*command.split()).code == exit_code, command
    events = here.lines()
    assert events[2]["ts"] == "2026-03-29T01:01:00.000Z"
    assert [e["data"]["code"] for e in events if e["type"] == "pause"] == ["minutes"] * 2


def _tasks(count: int) -> list[dict[str, Any]]:
    return [{"id": f"T{number}"} for number in range(count)]


def _depending(count: int, each: int) -> list[dict[str, Any]]:
    names = [f"T{number}" for number in range(each)]
    return [*_tasks(each), *({"id": f"D{number}", "depends": names} for number in range(count))]


PENDING = {"task": "new", "status": "pending"}
FAILED = {"task": "new", "error": "e", "class": "logic"}
FOUND = {"action": "found", "gap": "new"}
LIGHT = {"action": "light", "wave": 1}
ONE = [{"name": "a"}]
TASKS, FULL = {"tasks": _tasks(3)}, {"tasks": _depending(2, 2)}
NEEDS_T0 = {"tasks": [{"id": "new", "depends": ["T0"]}]}
NEEDS_ALL = {"tasks": [{"id": "new", "depends": ["T0", "T1", "T2"]}]}
TOO_MANY = "2 dependencies per task; task %s has more"
# a limit, its value here, the start of a loop, events that fill it, the event beyond it, its name
CASES: list[Any] = [
    ("TASKS", 3, TASKS, [], ("task", PENDING), "3 tasks"),
    ("TASKS", 3, TASKS, [], ("plan", {"tasks": [{"id": "T1"}, {"id": "new"}]}), "3 tasks"),
    ("TASKS", 3, TASKS, [], ("failure", FAILED), "3 tasks"),
    ("DEPENDENCIES", 2, {"tasks": _depending(1, 2)}, [],
     ("task", {**PENDING, "task": "D0", "depends": ["x"]}), TOO_MANY % "D0"),
    ("DEPENDENCIES", 2, TASKS, [], ("plan", NEEDS_ALL), TOO_MANY % "new"),
    ("DEPENDENCIES_IN_ALL", 4, FULL, [], ("task", {**PENDING, "depends": ["T0"]}),
     "4 dependencies in total"),
    ("DEPENDENCIES_IN_ALL", 4, FULL, [], ("plan", NEEDS_T0), "4 dependencies in total"),
    ("CRITERIA", 2, {"criteria": [*ONE, {"name": "b"}]}, [], ("plan", {"criteria": [*ONE, {"name": "c"}]}), "2 criteria"),
    ("MUST_NOTS", 1, {"must_not": ["a"]}, [], ("plan", {"must_not": ["a", "new"]}), "1 must-nots"),
    ("GAPS", 1, {}, [("gap", {**FOUND, "gap": "G1"})], ("gap", FOUND), "1 gaps"),
    ("NOTES", 1, {}, [("note", {"text": "a"})], ("note", {"text": "b"}), "1 undelivered notes"),
    ("REVIEWS", 1, {}, [("review", LIGHT)], ("review", {**LIGHT, "wave": 2}), "1 reviews"),
    ("CHECKPOINTS", 1, {}, [("checkpoint", {"name": "a"})], ("checkpoint", {"name": "b"}),
     "1 checkpoints"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_append_beyond_capacity_is_refused_but_journal_is_read(
    case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, most, start, filling, (kind, data), named = case
    monkeypatch.setattr(capacity, "MOST_" + limit, most)
    story = Story("goal", **start).then(*filling)
    refusal = story.refused(kind, **data)
    assert str(refusal) == f"loop lp-1 may have at most {named}"
    assert refusal.hint.endswith(".")
    story.obeys_rules = False
    story(kind, **data)


def test_capacity_ignores_known_names_and_delivered_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TASKS", "CRITERIA", "GAPS", "REVIEWS", "CHECKPOINTS", "NOTES"):
        monkeypatch.setattr(capacity, "MOST_" + name, 1)
    story = Story("goal", tasks=_tasks(1), criteria=ONE)
    story("plan", tasks=_tasks(1), criteria=ONE)
    story.task("T0", "running")
    story.fail("T0")
    story.fail(None)
    for _ in range(2):
        story("checkpoint", name="a")
        story("review", action="light", wave=1)
        story.gap("G1", "found")
        story("note", text="a note")
        story("note", text="a lesson", kind="recall")
        story("iteration", delivered=list(story.loop.notes), _by="hook")


def test_replaced_plan_counts_dependencies_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MOST_DEPENDENCIES_IN_ALL", 4)
    story = Story("goal", tasks=_depending(2, 2))
    story("plan", tasks=_depending(2, 2))
    story("checkpoint", name="a", reset=["D0"])
    story("plan", tasks=[{"id": "D0"}])
    story.task("new", "pending", depends=["T0", "T1"])
    story.refused("task", task="D0", status="pending", depends=["T0"])


def test_start_beyond_capacity_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MOST_TASKS", 2)
    monkeypatch.setattr(capacity, "MOST_LIVE_LOOPS", 1)
    story = Story()
    start = {"kind": "goal", "mode": "yolo", "limits": {}}
    refused = story.refused("start", **start, tasks=_tasks(3))
    assert str(refused) == "loop lp-1 may have at most 2 tasks"
    story("start", **start, tasks=_tasks(2))
    refused = story.refused("start", **start, _loop="lp-2", _session="other")
    assert str(refused) == "the journal already has 1 live loops"


# Every loop ends: no agent gets more iterations than its limits allow.


def failing(r: Random, story: Story) -> None:
    story.fail(r.choice(("T1", "T2", None)), r.choice(("logic", "transient")), _by="agent")
    if story.status in ACTIVE and r.random() < 0.5:
        story.task("T1", "running", _by="agent")


TRUE = {"command": "true", "exit_code": 0}
LIES: list[tuple[str, dict[str, Any]]] = [
    ("complete", {}),
    ("exit", {}),
    ("criterion", {"criterion": "checked", "met": True}),
    ("criterion", {"criterion": "checked", "met": True, "evidence": TRUE}),
    ("resume", {"add": {"max_iterations": 100}}),
    ("cancel", {}),
    ("answer", {"text": "yes"}),
]


def lying(r: Random, story: Story) -> None:
    """Claim that the work is done."""
    for kind, data in r.sample(LIES, 3):
        with pytest.raises(Refused):
            story(kind, **data, _by="agent", _session="s-1")


def undoing(r: Random, story: Story) -> None:
    """Make progress and undo it."""
    name = f"G{r.randrange(3)}"
    gap = story.loop.gaps.get(name)
    action = "found" if gap is None else "closed" if gap.status == "open" else "reopened"
    story.gap(name, action, _by="agent")


AGENTS: tuple[Callable[[Random, Story], Any], ...] = (
    lambda r, story: None,  # stops at once
    lambda r, story: story("note", text="nearly done", _by="agent"),
    failing,
    lying,
    undoing,
    lambda r, story: story("resume", _by="agent", _session="s-1"),  # resets counts, not limits
)
ENDINGS = ("iterations", "stuck", "idle", "repeated", "minutes", "retries", "oscillation")


def live_out(seed: int) -> None:
    """Drive a loop until it stops, and require that it stopped within its limits."""
    r = Random(seed)
    limits: dict[str, Any] = {
        "max_iterations": r.randrange(1, 30),
        "max_retries": r.randrange(4),
        "stuck_limit": r.randrange(6),
        "idle_limit": r.randrange(4),
    }
    if r.random() < 0.3:
        limits["max_minutes"] = r.randrange(1, 5)
    criteria = [{"name": "checked", "check": "make"}]
    kind = r.choice(("execute", "verify", "goal"))
    story = Story(kind, limits=limits, tasks=[{"id": "T1"}, {"id": "T2"}], criteria=criteria)
    agents = r.sample(AGENTS, r.randrange(1, 4))
    iterations = 1
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
        iterations += 1
        assert iterations <= limits["max_iterations"]
    loop = story.loop
    assert loop.iteration == iterations == [e["type"] for e in story.events].count("iteration")
    assert loop.status in LIVE
    assert loop.pause_code in ENDINGS
    assert all(task.retries <= limits["max_retries"] for task in loop.tasks.values())


@pytest.mark.parametrize("agents", [500, pytest.param(100_000, marks=pytest.mark.torture)])
def test_random_agents_stay_within_iteration_limits(agents: int) -> None:
    share = 1.0 if agents == 500 else float(os.environ.get("GSD_TORTURE", "1.0"))
    for seed in range(int(agents * share)):
        live_out(seed)

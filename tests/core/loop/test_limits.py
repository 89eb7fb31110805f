"""Limits of a loop, each with its own code, and its capacity."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.cli import run
from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop import limits as capacity
from gsd_fsm.core.loop.limits import active_minutes, reached_limit
from gsd_fsm.core.loop.state import ACTIVE, Loop
from gsd_fsm.core.text.progress import progress, status_block
from gsd_fsm.core.views.loop_json import state
from gsd_fsm.engine.status import status_view
from gsd_fsm.history.timeline import counts
from tests.support.story import MINUTE, NOW, Story

OFF = {"stuck_limit": 0, "idle_limit": 0, "max_iterations": 0}


def code(story: Story, later: int = 0, *, activity: bool = False) -> str:
    spent = reached_limit(story.loop, story.now + later, activity)
    return "" if spent is None else spent.code


@pytest.mark.parametrize("most", [1, 2, 5, 20])
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


def unlike_evidence(story: Story) -> None:
    evidence = {"command": "c", "exit_code": 1, "likeness": "other"}
    story("criterion", criterion="A", met=False, evidence=evidence, _by="cli")


PROGRESS: dict[str, Any] = {
    "criterion": lambda s: s("criterion", criterion="A", met=True, _by="cli"),
    "gap": lambda s: s.gap("G1", _by="cli"),
    "task": lambda s: s.task("T1", "skipped", _by="cli"),
    "evidence": unlike_evidence,
}


def stuck_story() -> Story:
    limits = {**OFF, "stuck_limit": 3}
    return Story("goal", criteria=[{"name": "A"}], tasks=[{"id": "T1"}], limits=limits)


def require_stuck_count(story: Story, count: int) -> None:
    """Require this count in the limit and in every view."""
    assert code(story) == ("stuck" if count == 3 else "")
    assert status_view(story.loop, "")["stuck"] == count
    assert state(story.loop)["circuitBreaker"]["stuckCount"] == count
    assert f"Stuck count: {count}" in progress(story.loop)
    assert f"Stuck: {count}/3" in status_block(story.loop)
    assert f"stuck {count}/3" in counts(story.loop)


@pytest.mark.parametrize("what", PROGRESS)
def test_any_progress_resets_stuck_count_in_limit_and_views(what: str) -> None:
    story = stuck_story()
    assert story.blocks() == (3, "stuck")
    require_stuck_count(story, 3)
    PROGRESS[what](story)
    require_stuck_count(story, 0)
    story.block()
    assert story.blocks() == (3, "stuck")


def test_events_without_lasting_change_keep_stuck_count() -> None:
    story = stuck_story()
    story("criterion", criterion="A", met=False, _by="cli")
    story.blocks()
    story("criterion", criterion="A", met=False, _by="cli")
    story.task("T1", "running", _by="cli")
    story("note", text="hm", _by="cli")
    story("spend", usd=1, _by="cli")
    assert code(story) == "stuck"
    story.gap("G1", _by="cli")
    story.gap("G1", "closed", _by="cli")
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


def test_budget_is_used_up_when_reached() -> None:
    story = Story("goal", limits={**OFF, "budget_usd": 0.3})
    for reached in ("", "", "budget"):
        story("spend", usd=0.1)
        assert code(story) == reached


def test_minutes_limit_counts_active_time_but_not_waits_and_pauses() -> None:
    story = Story("goal", limits={**OFF, "max_minutes": 2})
    assert (code(story, 2 * MINUTE - 1), code(story, 2 * MINUTE)) == ("", "minutes")
    story("wait", for_="human", _after=MINUTE)
    assert active_minutes(story.loop, story.now + 90 * MINUTE) == 1
    story("answer", text="yes", _after=60 * MINUTE)
    story("pause", code="manual", _after=MINUTE // 2)
    story("resume", _after=60 * MINUTE)
    assert active_minutes(story.loop, story.now) == 1.5
    assert code(story, MINUTE // 2) == "minutes"


STEPS = st.lists(
    st.tuples(st.sampled_from(["iteration", "pause", "resume", "wait", "answer"]),
              st.integers(-90 * MINUTE, 90 * MINUTE)),
    max_size=30,
)  # fmt: skip


@given(STEPS, st.integers(-90 * MINUTE, 90 * MINUTE))
def test_active_time_is_sum_of_forward_steps_while_active(
    steps: list[tuple[str, int]], last: int
) -> None:
    data = {"pause": {"code": "manual"}, "wait": {"for": "human"}, "answer": {"text": "y"}}
    legal = {
        "running": {"iteration", "pause", "wait", "resume"},
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
        story(kind, **data.get(kind, {}), _after=step)
        expected += max(0, step) if was_active else 0
    if story.status in ACTIVE:
        expected += max(0, last)
    assert active_minutes(story.loop, story.now + last) == expected / MINUTE


@pytest.mark.parametrize("jump", [-MINUTE, -(10**9), -(NOW - 1000), 315_360_000_000])
def test_clock_jump_is_tolerated_and_backward_step_adds_no_time(jump: int) -> None:
    story = Story("goal", limits={**OFF, "max_minutes": 3})
    story("iteration", _after=2 * MINUTE)
    story("iteration", _after=jump)
    if jump > 0:
        assert code(story) == "minutes"
        return
    assert active_minutes(story.loop, story.now) >= 2
    assert active_minutes(story.loop, story.now - MINUTE) >= 2
    assert story.loops.backwards == 1
    assert code(story, MINUTE) == "minutes"


class Clock:
    """Runs commands in this process at a chosen time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.moment = datetime(2026, 3, 29, 0, 55, tzinfo=timezone.utc)

    def run(self, *arguments: str, after: float = 0) -> int:
        """Run a command this many minutes later; return its exit code."""
        self.moment += timedelta(minutes=after)
        with freeze_time(self.moment):
            return run(["--project", str(self.root), *arguments])

    @property
    def loop(self) -> Loop:
        (loop,) = Journal(str(self.root / ".gsd")).read().by_id.values()
        return loop


TEN_YEARS = 60 * 24 * 3653


def test_commands_count_active_minutes_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this zone the clocks jump from 02:00 to 03:00 local time at 01:00 UTC.
    monkeypatch.setenv("TZ", "Europe/Berlin")
    clock = Clock(tmp_path)
    assert clock.run("start", "goal", "g", "--max-minutes", "10") == 0
    assert clock.loop.started == "2026-03-29T00:55:00.000Z"
    assert clock.run("iterate", after=6) == 0
    assert clock.loop.last_event == "2026-03-29T01:01:00.000Z"
    assert clock.run("wait", "Which port?", after=1) == 0
    assert clock.run("answer", "80", after=600) == 0
    assert clock.run("wait", "--until", "2020-01-01T00:00:00+02:00", after=2) == 0
    assert (clock.loop.wait_for, clock.loop.until) == ("throttled", "2019-12-31T22:00:00.000Z")
    assert clock.run("iterate", after=30) == 4
    assert clock.run("resume", after=300) == 0
    assert (clock.loop.status, clock.loop.until) == ("running", None)
    assert clock.run("iterate", after=0.9) == 0
    assert clock.run("iterate", after=0.1) == 4
    assert (clock.loop.status, clock.loop.pause_code) == ("paused", "minutes")
    assert clock.run("resume", after=600) == 4
    assert clock.run("resume", "--add-minutes", "2", after=600) == 0
    assert clock.run("iterate", after=-60 * 24) == 0  # a backward step adds no time
    assert clock.run("iterate", after=1.5) == 0
    assert clock.run("iterate", after=0.5) == 4
    assert clock.run("resume", "--add-minutes", "10") == 0
    assert clock.run("iterate", after=TEN_YEARS) == 4
    assert (clock.loop.last_event[:10], clock.loop.pause_code) == ("2036-03-29", "minutes")
    assert clock.run("resume", "--add-minutes", "1") == 4
    assert clock.run("resume", "--add-minutes", "6000000") == 0
    assert clock.run("iterate", after=-TEN_YEARS) == 0
    assert clock.run("fsck") == clock.run("replay", "--json") == 0


def _tasks(count: int) -> list[dict[str, Any]]:
    return [{"id": f"T{number}"} for number in range(count)]


def _criteria(count: int) -> list[dict[str, Any]]:
    return [{"name": f"c{number}"} for number in range(count)]


def _depending(count: int, each: int) -> list[dict[str, Any]]:
    names = [f"T{number}" for number in range(each)]
    return [*_tasks(each), *({"id": f"D{number}", "depends": names} for number in range(count))]


# limit and way -> its value here, the start of a loop, the event that fills it (or None), the event
# beyond it, and its name in the message
Event = tuple[str, dict[str, Any]]
PENDING = {"task": "new", "status": "pending"}
TASKS = {"tasks": _tasks(3)}
FULL = {"tasks": _depending(2, 2)}
NEEDS_T0 = {"tasks": [{"id": "new", "depends": ["T0"]}]}
NEEDS_ALL = {"tasks": [{"id": "new", "depends": ["T0", "T1", "T2"]}]}
CASES: dict[str, tuple[int, dict[str, Any], Event | None, Event, str]] = {
    "MOST_TASKS": (3, TASKS, None, ("task", PENDING), "3 tasks"),
    "MOST_TASKS by a plan": (3, TASKS, None, ("plan", {"tasks": [{"id": "T1"}, {"id": "new"}]}), "3 tasks"),
    "MOST_TASKS by a failure": (3, TASKS, None, ("failure", {"task": "new", "error": "e", "class": "logic"}), "3 tasks"),
    "MOST_DEPENDENCIES": (2, {"tasks": _depending(1, 2)}, None, ("task", {**PENDING, "task": "D0", "depends": ["x"]}),
                          "2 dependencies of one task, and task D0 has more"),
    "MOST_DEPENDENCIES by a plan": (2, TASKS, None, ("plan", NEEDS_ALL),
                                    "2 dependencies of one task, and task new has more"),
    "MOST_DEPENDENCIES_IN_ALL": (4, FULL, None, ("task", {**PENDING, "depends": ["T0"]}), "4 dependencies in all"),
    "MOST_DEPENDENCIES_IN_ALL by a plan": (4, FULL, None, ("plan", NEEDS_T0), "4 dependencies in all"),
    "MOST_CRITERIA": (2, {"criteria": _criteria(2)}, None, ("plan", {"criteria": [{"name": "c0"}, {"name": "new"}]}), "2 criteria"),
    "MOST_MUST_NOTS": (1, {"must_not": ["a"]}, None, ("plan", {"must_not": ["a", "new"]}), "1 must-nots"),
    "MOST_GAPS": (1, {}, ("gap", {"action": "found", "gap": "G1"}), ("gap", {"action": "found", "gap": "new"}), "1 gaps"),
    "MOST_NOTES": (1, {}, ("note", {"text": "first"}), ("note", {"text": "second"}), "1 undelivered notes"),
    "MOST_REVIEWS": (1, {}, ("review", {"action": "light", "wave": 1}), ("review", {"action": "light", "wave": 2}), "1 reviews"),
    "MOST_CHECKPOINTS": (1, {}, ("checkpoint", {"name": "a"}), ("checkpoint", {"name": "b"}), "1 checkpoints"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_append_beyond_capacity_is_refused_but_journal_is_read(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, start, filling, (kind, data), named = CASES[case]
    monkeypatch.setattr(capacity, case.split(" ", 1)[0], most)
    story = Story("goal", **start).then(*([filling] if filling else []))
    refusal = story.refused(kind, **data)
    assert str(refusal) == f"loop lp-1 may have at most {named}"
    assert refusal.hint.endswith(".")
    story.obeys_rules = False
    story(kind, **data)


def test_capacity_ignores_known_names_and_delivered_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TASKS", "CRITERIA", "GAPS", "REVIEWS", "CHECKPOINTS", "NOTES"):
        monkeypatch.setattr(capacity, "MOST_" + name, 1)
    story = Story("goal", tasks=_tasks(1), criteria=_criteria(1))
    story("plan", tasks=_tasks(1), criteria=_criteria(1))
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
    refusal = story.refused("start", **start, tasks=_tasks(3))
    assert str(refusal) == "loop lp-1 may have at most 2 tasks"
    story("start", **start, tasks=_tasks(2))
    refusal = story.refused("start", **start, _loop="lp-2", _session="other")
    assert str(refusal) == "the journal already has 1 live loops"

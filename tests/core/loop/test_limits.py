"""Guards: each limit, counted by the fold alone, ends in its own code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.clock import to_iso, to_ms
from gsd_fsm.core.loop.limits import active_minutes, reached_limit
from gsd_fsm.core.loop.state import ACTIVE
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
def test_iteration_limit_allows_exactly_n(most: int) -> None:
    story = Story("goal", limits={**OFF, "max_iterations": most})
    assert story.blocks() == (most, "iterations")


def test_zero_iterations_are_unlimited() -> None:
    assert Story("goal", limits=OFF).blocks(most=150) == (150, "")


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_idle_limit_allows_exactly_n_blocks(most: int) -> None:
    story = Story("goal", limits={**OFF, "idle_limit": most})
    assert story.blocks() == (most, "idle")
    assert code(story, activity=True) == ""


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_activity_resets_idle_count(most: int) -> None:
    story = Story("goal", limits={**OFF, "idle_limit": most})
    for _ in range(3):
        assert story.block(activity=True) is None
    assert story.blocks() == (most - 1, "idle")


@pytest.mark.parametrize("by", ["agent", "human"])
def test_event_by_agent_or_human_is_activity(by: str) -> None:
    story = Story("goal", limits={**OFF, "idle_limit": 3})
    assert story.blocks() == (3, "idle")
    story("spend", usd=0, _by=by)
    assert story.blocks() == (3, "idle")


def test_prompt_is_activity_but_engine_events_are_not() -> None:
    story = Story("goal", limits={**OFF, "idle_limit": 3})
    story.blocks()
    for by in ("hook", "cli"):
        story("stop", code="background", _by=by)
    assert code(story) == "idle"
    story("session", action="prompt", _by="hook", _session="s-1")
    assert story.blocks() == (3, "idle")


@pytest.mark.parametrize("most", [1, 2, 5, 9])
def test_stuck_limit_allows_exactly_n_iterations(most: int) -> None:
    story = Story("goal", limits={**OFF, "stuck_limit": most})
    assert story.blocks() == (most, "stuck")


PROGRESS = {
    "criterion": lambda s: s("criterion", criterion="A", met=True, _by="cli"),
    "gap": lambda s: s.gap("G1", _by="cli"),
    "task": lambda s: s.task("T1", "skipped", _by="cli"),
    "evidence": lambda s: s(
        "criterion",
        criterion="A",
        met=False,
        evidence={"command": "c", "exit_code": 1, "likeness": "other"},
        _by="cli",
    ),
}


def stuck_story(most: int = 3) -> Story:
    return Story(
        "goal",
        criteria=[{"name": "A"}],
        tasks=[{"id": "T1"}],
        limits={**OFF, "stuck_limit": most},
    )


@pytest.mark.parametrize("what", PROGRESS)
def test_any_progress_resets_stuck_count(what: str) -> None:
    story = stuck_story()
    assert story.blocks() == (3, "stuck")
    PROGRESS[what](story)
    assert code(story) == ""
    story.block()
    for _ in range(3):
        assert code(story) == ""
        story.block()
    assert code(story) == "stuck"


@pytest.mark.parametrize("what", ["nothing", *PROGRESS])
def test_stuck_count_is_equal_in_limit_and_views(what: str) -> None:
    story = stuck_story()
    story.blocks()
    PROGRESS.get(what, lambda _: None)(story)
    count = 3 if what == "nothing" else 0
    assert code(story) == ("stuck" if count else "")
    assert status_view(story.loop, "")["stuck"] == count
    assert state(story.loop)["circuitBreaker"]["stuckCount"] == count
    assert f"Stuck count: {count}" in progress(story.loop)
    assert f"Stuck: {count}/3" in status_block(story.loop)
    assert f"stuck {count}/3" in counts(story.loop)


def test_event_without_change_keeps_stuck_count() -> None:
    story = stuck_story()
    story("criterion", criterion="A", met=False, _by="cli")
    story.blocks()
    story("criterion", criterion="A", met=False, _by="cli")
    story.task("T1", "running", _by="cli")
    story("note", text="hm", _by="cli")
    story("spend", usd=1, _by="cli")
    assert code(story) == "stuck"


def test_gap_opened_and_closed_within_iteration_is_not_progress() -> None:
    story = stuck_story()
    story.blocks()
    story.gap("G1", _by="cli")
    story.gap("G1", "closed", _by="cli")
    assert code(story) == "stuck"


@pytest.mark.parametrize("most", [1, 3])
def test_round_limit_allows_exactly_n_verifications(most: int) -> None:
    story = Story("verify", limits={**OFF, "max_rounds": most})
    for _ in range(most):
        assert code(story) == ""
        story("verified", passed=False)
    assert code(story) == "rounds"


def test_rounds_bind_only_verify_loops() -> None:
    story = Story("goal", limits={**OFF, "max_rounds": 1})
    story("verified", passed=False)
    assert code(story) == ""


def test_repeated_limit_pauses_after_three_equal_errors() -> None:
    story = Story("goal", limits=OFF, tasks=[{"id": "T1"}])
    for _ in range(2):
        story.fail(None, error="same")
    assert code(story) == ""
    story.fail(None, error="other")
    for _ in range(2):
        story.fail(None, error="same")
    assert code(story) == ""
    story.fail(None, error="same")
    assert code(story) == "repeated"


def test_completed_task_resets_repeated_errors() -> None:
    story = Story("goal", limits=OFF, tasks=[{"id": "T1"}])
    for _ in range(3):
        story.fail(None, error="same")
    story.task("T1", "skipped")
    assert code(story) == ""


def test_repeated_limit_ignores_errors_of_tasks() -> None:
    story = Story("goal", limits={**OFF, "max_retries": 9}, tasks=[{"id": "T1"}])
    for _ in range(6):
        story.fail("T1", error="same")
    assert code(story) == ""


def test_budget_is_used_up_when_reached() -> None:
    story = Story("goal", limits={**OFF, "budget_usd": 0.3})
    for _ in range(2):
        story("spend", usd=0.1)
    assert code(story) == ""
    story("spend", usd=0.1)
    assert code(story) == "budget"


def test_minutes_limit_counts_active_time_until_now() -> None:
    story = Story("goal", limits={**OFF, "max_minutes": 2})
    assert code(story, 2 * MINUTE - 1) == ""
    assert code(story, 2 * MINUTE) == "minutes"


def test_waiting_and_paused_time_is_not_active() -> None:
    story = Story("goal", limits={**OFF, "max_minutes": 2})
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
        "running": {
            "iteration": "running",
            "pause": "paused",
            "wait": "waiting",
            "resume": "running",
        },
        "waiting": {"answer": "running", "resume": "running", "pause": "paused"},
        "paused": {"resume": None},
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


def test_time_in_far_future_is_clamped_to_year_9999() -> None:
    story = Story("goal")
    story("iteration", _after=10**15)
    assert story.loop.last_event == to_iso(10**18) == "9999-12-31T23:59:59.999Z"

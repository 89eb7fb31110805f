"""Start, wait, pause and resume: restored statuses, and limits that a resume must raise."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.events.lifecycle import COMPLETE, PAUSE_CODES
from gsd_fsm.core.loop.limits import reached_limit
from gsd_fsm.core.loop.records import Limits
from gsd_fsm.core.loop.state import ACTIVE
from tests.support.story import MINUTE, Story, in_status

RESUME = "gsd-fsm resume --loop lp-1"
SPENT: list[Any] = [
    ("iterations", "max_iterations", [("iteration", {})] * 2, " --add-iterations 10"),
    ("rounds", "max_rounds", [("verified", {"passed": False})] * 2, " --add-rounds 10"),
    ("budget", "budget_usd", [("spend", {"usd": 2})], " --add-budget 1"),
    ("minutes", "max_minutes", [("iteration", {"_after": 2 * MINUTE})], " --add-minutes 30"),
]


@pytest.mark.parametrize("manual", [False, True])
@pytest.mark.parametrize(("code", "limit", "events", "option"), SPENT)
def test_resume_of_reached_limit_needs_addition(
    code: str, limit: str, events: Any, option: str, manual: bool
) -> None:
    story = Story("verify", limits={limit: 2}).then(*events)
    spent = reached_limit(story.loop, story.now)
    assert (spent.code, spent.remedy) == (code, RESUME + option)
    story("pause", code="manual" if manual else spent.code, reason=spent.reason, _by="cli")
    refusal = story.refused("resume")
    assert refusal.hint == "Run: " + RESUME + option
    assert spent.reason.split(" of ")[0] in refusal.message
    story.refused("resume", add={"max_retries": 5})
    story.refused("resume", add={limit: 0})
    assert story("resume", add={limit: 1}).status == "running"
    assert getattr(story.loop.limits, limit) == 3
    assert reached_limit(story.loop, story.now) is None


def test_spent_retries_need_more_retries_unless_the_error_was_transient() -> None:
    story = Story("execute", tasks=[{"id": "T1"}], limits={"max_retries": 1})
    story.fail("T1")
    story.fail("T1")
    assert story.refused("resume").hint == "Run: " + RESUME + " --add-retries 1"
    assert story("resume", add={"max_retries": 1}).status == "retrying"
    story = Story("execute", tasks=[{"id": "T1"}])
    story.fail("T1", "transient")
    story.fail("T1", "transient")
    assert story("resume").status == "retrying"


def test_resume_needs_addition_to_every_reached_limit() -> None:
    story = Story("goal", limits={"max_iterations": 2, "budget_usd": 2})
    story.then(("iteration", {}), ("iteration", {}), ("spend", {"usd": 2}))
    story("pause", code="iterations")
    assert story.refused("resume").hint.endswith(f"{RESUME} --add-iterations 10 --add-budget 1")
    assert story.refused("resume", add={"max_iterations": 1}).hint.endswith("--add-budget 1")
    story("resume", add={"max_iterations": 1, "budget_usd": 0.5})


def test_limits_of_start_override_defaults_and_addition_keeps_unlimited_and_unknown_ones() -> None:
    before = {"max_iterations": 0, "max_retries": 0, "max_minutes": 0, "budget_usd": 0}
    more = Limits(before).plus(dict.fromkeys(before, 5))
    assert more == Limits({**before, "max_retries": 5})
    assert Limits().plus({"budget_usd": 5, "max_minutes": 5}) == Limits()
    limits = Story("goal", limits={"stuck_limit": 9}).loop.limits
    assert (limits.stuck_limit, limits.max_iterations, limits.max_retries) == (9, 20, 3)
    story = Story("goal", limits={"foo": "abc", "bar": [1]})  # as a later version writes them
    assert story("resume", add={"foo": 1, "bar": [2]}).status == "running"
    assert story.loop.limits == Limits()


def test_resume_resets_stuck_idle_and_repeated() -> None:
    story = Story("goal")
    for _ in range(3):
        story.fail(None, error="same")
        story("iteration", _by="hook")
    loop = story.loop
    assert (loop.stuck, loop.idle, loop.repeated_errors) == (3, 1, 3)
    story("resume", _by="cli")
    assert (loop.stuck, loop.idle, loop.repeated_errors, loop.transient) == (0, 0, 0, 0)
    assert loop.iteration == 3


@pytest.mark.parametrize("status", ACTIVE)
def test_answer_and_resume_restore_the_status_before_wait_pause_or_failure(status: str) -> None:
    story = in_status(status)
    loop = story.loop
    assert story("resume", _session="s-1").status == status
    assert loop.owner == "s-1"
    for paused in (False, True):
        story("wait", for_="human", question="Which?")
        if paused:
            story("pause", code="manual", reason="tea")
            assert (loop.status, loop.pause_code, loop.pause_reason) == ("paused", "manual", "tea")
            story("resume")
            assert (loop.status, loop.pause_code, loop.pause_reason) == ("waiting", None, None)
        assert (loop.wait_for, loop.question) == ("human", "Which?")
        assert story("answer", text="This one.").status == status
        assert (loop.answer, loop.wait_for, loop.question) == ("This one.", None, None)
    story("pause", code="manual")
    assert story("resume").status == status
    assert story.fail(None, "blocking").status == "paused"
    assert story("resume").status == status


def test_throttled_wait_keeps_its_end_and_is_resumed() -> None:
    story = in_status("running")
    story("wait", for_="throttled", until="2026-11-16T00:00:00.000Z", reason="rate limit")
    assert story.loop.until == "2026-11-16T00:00:00.000Z"
    story("resume", _by="agent")
    assert (story.status, story.loop.until) == ("running", None)


def test_imported_failed_tasks_are_failed() -> None:
    tasks = [{"id": "A", "status": "failed", "retries": 2}, {"id": "B", "status": "complete"}]
    story = Story("goal", tasks=tasks, carried={"iteration": 4, "stuck": 2, "last_unmet": "x"})
    assert (list(story.loop.failed), story.loop.tasks["A"].retries) == (["A"], 2)
    assert (story.loop.iteration, story.loop.stuck, story.loop.last_unmet) == (4, 2, "x")
    story.task("A", "running")
    assert not story.loop.failed


# The pauses by a limit of effort, and the one that only a human's decision about a check ends.
COMPLETABLE = {
    "iterations", "rounds", "stuck", "idle", "repeated", "budget", "minutes", "altered",
}  # fmt: skip


@pytest.mark.parametrize("rules", [{"rules": {}}, {}], ids=["rules", "no rules"])
@pytest.mark.parametrize("code", PAUSE_CODES)
def test_met_loop_completes_from_a_pause_only_by_a_limit_and_with_rules(
    code: str, rules: dict[str, Any]
) -> None:
    story = Story("execute", tasks=[{"id": "T1"}], **rules)
    story.task("T1", "skipped")
    assert COMPLETE.version_of(story.loop, {}) == 1
    story("pause", code=code)
    if not rules or code not in COMPLETABLE:
        assert story.refused("complete").hint == "Run: gsd-fsm resume"
        return
    assert COMPLETE.version_of(story.loop, {}) == 2
    loop = story("complete")
    assert (loop.status, loop.pause_code, loop.pause_reason) == ("completed", None, None)
    assert loop.history[-1][2:] == ["paused", "completed", "complete", ""]


def test_unmet_loop_does_not_complete_from_a_pause() -> None:
    story = Story("goal", criteria=[{"name": "A"}], rules={})
    story("pause", code="stuck")
    assert "criterion not met: A; no exit signal" in story.refused("complete").message
    story("criterion", criterion="A", met=True)
    assert "no exit signal" in story.refused("complete").message  # the fold infers nothing
    story("exit")
    assert story("complete").status == "completed"

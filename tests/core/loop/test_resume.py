"""Going on: what a resume sets back, which limits it must raise, and who may do that."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.loop.limits import reached_limit
from gsd_fsm.core.loop.records import Limits
from tests.support.story import MINUTE, SECOND, Story, in_status

RESUME = "gsd-fsm --loop lp-1 resume"


def spend_iterations(story: Story) -> None:
    for _ in range(2):
        story("iteration")


def spend_rounds(story: Story) -> None:
    for _ in range(2):
        story("verified", passed=False)


def spend_budget(story: Story) -> None:
    story("spend", usd=2)


def spend_minutes(story: Story) -> None:
    story("iteration", _after=2 * MINUTE)


SPENT: list[Any] = [
    ("iterations", "max_iterations", spend_iterations, " --add-iterations 10"),
    ("rounds", "max_rounds", spend_rounds, " --add-rounds 10"),
    ("budget", "budget_usd", spend_budget, " --add-budget 10"),
    ("minutes", "max_minutes", spend_minutes, " --add-minutes 30"),
]


@pytest.mark.parametrize(("code", "limit", "spend", "option"), SPENT)
def test_resume_of_reached_limit_needs_addition(
    code: str, limit: str, spend: Any, option: str
) -> None:
    story = Story("verify", limits={limit: 2})
    spend(story)
    spent = reached_limit(story.loop, story.now)
    assert spent is not None
    assert (spent.code, spent.remedy) == (code, RESUME + option)
    story("pause", code=spent.code, reason=spent.reason, _by="cli")
    refusal = story.refused("resume")
    assert refusal.hint == "Run: " + RESUME + option
    assert spent.reason.split(" of ")[0] in refusal.message
    story.refused("resume", add={"max_retries": 5})
    story.refused("resume", add={limit: 0})
    assert story("resume", add={limit: 1}).status == "running"
    assert getattr(story.loop.limits, limit) == 3
    assert reached_limit(story.loop, story.now) is None


@pytest.mark.parametrize(("code", "limit", "spend", "option"), SPENT)
def test_resume_needs_addition_whatever_the_pause_code(
    code: str, limit: str, spend: Any, option: str
) -> None:
    story = Story("verify", limits={limit: 2})
    spend(story)
    story("pause", code="manual")
    assert story.refused("resume").hint == "Run: " + RESUME + option
    assert story("resume", add={limit: 1}).status == "running"
    assert reached_limit(story.loop, story.now) is None


def test_spent_retries_need_more_retries() -> None:
    story = Story("execute", tasks=[{"id": "T1"}], limits={"max_retries": 1})
    story.fail("T1")
    story.fail("T1")
    assert story.refused("resume").hint == "Run: " + RESUME + " --add-retries 1"
    assert story("resume", add={"max_retries": 1}).status == "retrying"
    assert story.fail("T1").status == "retrying"
    assert story.fail("T1").status == "paused"


def test_resume_after_transient_pause_needs_no_retries() -> None:
    story = Story("execute", tasks=[{"id": "T1"}])
    story.fail("T1", "transient")
    story.fail("T1", "transient")
    assert story("resume").status == "retrying"


def test_resume_needs_addition_to_every_reached_limit() -> None:
    story = Story("goal", limits={"max_iterations": 2, "budget_usd": 2})
    spend_iterations(story)
    spend_budget(story)
    story("pause", code="iterations")
    assert story.refused("resume").hint.endswith("resume --add-iterations 10 --add-budget 10")
    assert story.refused("resume", add={"max_iterations": 1}).hint.endswith("--add-budget 10")
    story("resume", add={"max_iterations": 1, "budget_usd": 0.5})


def test_resume_keeps_unlimited_limits() -> None:
    before = {"max_iterations": 0, "max_retries": 0, "max_minutes": 0, "budget_usd": 0}
    more = Limits(before).plus(dict.fromkeys(before, 5))
    assert more == Limits({**before, "max_retries": 5})
    assert Limits().plus({"budget_usd": 5, "max_minutes": 5}) == Limits()


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


@pytest.mark.parametrize("status", ["running", "retrying", "fixing", "reviewing"])
def test_resume_of_active_loop_keeps_status(status: str) -> None:
    story = in_status(status)
    assert story("resume", _session="s-1").status == status
    assert story.loop.owner == "s-1"


def prompt(story: Story) -> None:
    story("session", action="prompt", _by="hook", _session="s-1")


NEEDS_A_HUMAN: list[Any] = [
    ("waiting", "answer", {"text": "yes"}),
    ("waiting", "resume", {}),
    ("waiting", "cancel", {}),
    ("paused", "cancel", {}),
    ("paused", "resume", {"add": {"max_iterations": 5}}),
    ("iterated", "cancel", {}),
    ("iterated", "resume", {"add": {"max_iterations": 5}}),
]


@pytest.mark.parametrize(("where", "kind", "data"), NEEDS_A_HUMAN)
def test_agent_cannot_resume_before_human_prompt(
    where: str, kind: str, data: dict[str, Any]
) -> None:
    story = in_status("running" if where == "iterated" else where)
    if where == "iterated":
        story("iteration", _by="hook")
    refusal = story.refused(kind, **data, _by="agent", _session="s-1")
    assert "until the user sends a message" in refusal.message
    prompt(story)
    story(kind, **data, _by="agent", _session="s-1")


@pytest.mark.parametrize(("where", "kind", "data"), NEEDS_A_HUMAN)
def test_human_can_resume_without_prompt(where: str, kind: str, data: dict[str, Any]) -> None:
    story = in_status("running" if where == "iterated" else where)
    if where == "iterated":
        story("iteration", _by="hook")
    story(kind, **data)


@pytest.mark.parametrize("later", ["iteration", "wait", "pause"])
def test_prompt_before_wait_pause_or_iteration_does_not_permit(later: str) -> None:
    story = in_status("running")
    story("iteration", _by="hook")
    prompt(story)
    data = {"wait": {"for": "human"}, "pause": {"code": "manual"}, "iteration": {}}[later]
    story(later, **data, _by="hook")
    story.refused("cancel", _by="agent")


def test_pausing_failure_needs_new_prompt() -> None:
    story = in_status("running")
    story.fail("T1", "blocking", _by="agent")
    story.refused("resume", add={"max_retries": 1}, _by="agent")


def test_agent_can_resume_pause_without_reached_limit() -> None:
    story = in_status("paused")
    assert story("resume", _by="agent", _session="s-1").status == "running"


def test_minutes_pause_is_not_active_time() -> None:
    story = Story("goal", limits={"max_minutes": 2})
    spend_minutes(story)
    story("pause", code="minutes")
    story("resume", add={"max_minutes": 1}, _after=600 * MINUTE)
    assert reached_limit(story.loop, story.now) is None
    spent = reached_limit(story.loop, story.now + MINUTE - SECOND)
    assert spent is not None
    assert spent.code == "minutes"


def test_resume_keeps_limits_of_later_version() -> None:
    story = Story("goal", limits={"foo": "abc", "bar": [1]})
    assert story("resume", add={"foo": 1, "bar": [2]}).status == "running"
    assert story.loop.limits == Limits()

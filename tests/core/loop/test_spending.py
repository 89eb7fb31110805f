"""What a loop has spent: of each session the larger of two figures, and never less than before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.limits import COUNTED
from gsd_fsm.core.loop.spending import MOST_SOURCES, missing_source, money, spent, spent_of_budget
from tests.support.story import Story

sessions = st.sampled_from(["s-1", "s-2"])
cents = st.integers(0, 500).map(lambda number: number / 100)
spendings = st.lists(
    st.one_of(
        st.tuples(st.just("replies"), sessions, cents),
        st.tuples(st.just("total"), sessions, cents),
        st.tuples(st.just("whole"), sessions, cents),
        st.tuples(st.just("by hand"), sessions, cents),
        st.tuples(st.just("take over"), sessions, cents),
    ),
    max_size=30,
)


def data_of(what: str, session: str, usd: float) -> dict[str, Any]:
    if what == "replies":
        return {"replies_usd": usd, "source": session, "counted": 1, "estimated": True}
    if what == "by hand":
        return {"usd": usd}
    total = {"meter": session, "total_usd": usd}
    return {**total, "whole": True} if what == "whole" else total


@given(spendings)
def test_spending_never_decreases_and_is_at_least_either_figure(steps: list[Any]) -> None:
    story = Story("goal")
    replies, by_hand, before = {"s-1": 0.0, "s-2": 0.0}, 0.0, 0.0
    for what, session, usd in steps:
        if what == "take over":
            story("resume", anew=True, _session=session)
            continue
        story("spend", _session=session, **data_of(what, session, usd))
        replies[session] += usd if what == "replies" else 0
        by_hand += usd if what == "by hand" else 0
        usage = story.loop.usage
        counted = sum(max(usage.reported_usd.get(it, 0), replies[it]) for it in replies)
        assert story.loop.spent_usd == pytest.approx(counted + by_hand)
        assert story.loop.spent_usd >= before
        before = story.loop.spent_usd


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        ([("replies", 2.0)], "~$2.00"),
        ([("replies", 2.0), ("whole", 1.5)], "~$2.00"),
        ([("replies", 2.0), ("whole", 3.25)], "$3.25"),
        (
            [("replies", 2.0), ("total", 50.0), ("total", 50.5)],
            "$2.50",
        ),  # a session older than the loop
        ([("whole", 3.0), ("whole", 1.0)], "$4.00"),  # the client began anew
        ([("by hand", 0.0123)], "$0.0123"),
        ([], "$0.00"),
    ],
)
def test_larger_of_total_and_estimate_counts_and_only_an_estimate_has_a_tilde(
    steps: list[Any], shown: str
) -> None:
    story = Story("goal", limits={"budget_usd": 9})
    for what, usd in steps:
        story("spend", _session="s-1", **data_of(what, "s-1", usd))
    assert spent(story.loop) == shown
    assert spent_of_budget(story.loop) == f"{shown} of $9.00"


@pytest.mark.parametrize(
    ("code", "amount", "most", "more"),
    [("budget", 2.5, 2.0, 1.5), ("budget", 2.0, 2.0, 1.0), ("budget", 2.001, 2.0, 1.01),
     ("budget", 0.0024, 0.002, 0.0014), ("tokens", 1_200, 1_001, 700), ("iterations", 7, 5, 12)],
)  # fmt: skip
def test_suggested_extension_is_the_overshoot_and_half_the_budget(
    code: str, amount: float, most: float, more: float
) -> None:
    assert COUNTED[code].more(amount, most) == more


def test_limit_without_a_source_is_missing_from_the_second_stop_on() -> None:
    story = Story("goal", rules={}, limits={"budget_usd": 1, "max_tokens": 9}, _session="s-1")
    block = {"signal": "x", "_by": "hook", "_session": "s-1"}
    assert missing_source(story.loop) == ""
    story("iteration", **block)
    assert missing_source(story.loop) == "the budget"
    story("spend", usd=0.1)
    assert missing_source(story.loop) == "the token limit"
    story("spend", tokens=0)
    assert missing_source(story.loop) == ""
    story("session", action="bind", _by="hook", _session="s-2")  # another client, perhaps
    story("iteration", **{**block, "_session": "s-2"})
    assert missing_source(story.loop) == "the budget"
    story("resume", _session="s-2")
    assert missing_source(story.loop) == ""


def test_latest_transcripts_are_remembered() -> None:
    story = Story("goal", _session="s-1")
    for source in ("s-1", *(f"agent-{number}" for number in range(MOST_SOURCES + 9))):
        story("spend", tokens=1, source=source, counted=10, messages=["m"])
    assert story.loop.spent_tokens == MOST_SOURCES + 10
    offsets = list(story.loop.usage.offsets)
    assert (len(offsets), offsets[:2]) == (MOST_SOURCES, ["s-1", "agent-10"])


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "$0.00"), (0.0006, "$0.0006"), (0.1, "$0.10"), (1234.5, "$1234.50")]
)
def test_small_amounts_keep_their_digits(amount: float, shown: str) -> None:
    assert money(amount) == shown

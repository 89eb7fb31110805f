"""What a loop has spent: of each session the larger of two figures, and never less than before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.loop.limits import COUNTED
from gsd_fsm.core.loop.spending import MOST_SOURCES, missing_source, money, spent, spent_of_budget
from tests.support.story import Story

PRICES = [{"model": "m", "input": 1, "output": 2}]
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


class Model:
    """What the sessions of a loop have spent, computed from the list of all reports."""

    def __init__(self) -> None:
        self.replies = {"s-1": 0.0, "s-2": 0.0}
        self.growth = {"s-1": 0.0, "s-2": 0.0}
        self.highest: dict[str, float] = {}
        self.fresh: set[str] = set()  # the next total is only a starting point
        self.by_hand = 0.0

    def add(self, what: str, session: str, usd: float) -> None:
        if what == "take over":
            self.fresh |= {session} & self.highest.keys()
        elif what == "by hand":
            self.by_hand += usd
        elif what == "replies":
            self.replies[session] += usd
        elif session in self.fresh or (session not in self.highest and what == "total"):
            self.fresh.discard(session)
            self.growth[session] = max(self.growth[session], self.replies[session])
            self.highest[session] = usd
        else:
            highest = max(self.highest.get(session, 0), usd)
            self.growth[session] += highest - self.highest.get(session, 0)
            self.highest[session] = highest

    @property
    def usd(self) -> float:
        return self.by_hand + sum(max(self.growth[it], self.replies[it]) for it in self.replies)


@given(spendings)
def test_spending_never_decreases_and_is_the_larger_figure_of_each_session(
    steps: list[Any],
) -> None:
    story, model, before = Story("goal", prices=PRICES), Model(), 0.0
    for what, session, usd in steps:
        model.add(what, session, usd)
        if what == "take over":
            story("session", action="bind", anew=True, _by="hook", _session=session)
        else:
            story("spend", _session=session, **data_of(what, session, usd))
        assert story.loop.spent_usd == pytest.approx(model.usd)
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
        ([("whole", 3.0), ("whole", 1.0), ("whole", 3.5)], "$3.50"),  # the second one is late
        ([("by hand", 0.0123)], "$0.0123"),
        ([], "$0.00"),
    ],
)
def test_larger_of_total_and_estimate_counts_and_only_an_estimate_has_a_tilde(
    steps: list[Any], shown: str
) -> None:
    story = Story("goal", limits={"budget_usd": 9}, prices=PRICES)
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
    limits = {"budget_usd": 1, "max_tokens": 9}
    story = Story("goal", rules={}, limits=limits, prices=PRICES, _session="s-1")
    block = {"signal": "x", "_by": "hook", "_session": "s-1"}
    assert missing_source(story.loop) == ""
    story("iteration", **block)
    assert missing_source(story.loop) == "the budget"
    story("spend", usd=0.1, _by="agent")
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

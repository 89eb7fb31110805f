"""Events grouped by iteration."""

from __future__ import annotations

from itertools import chain

import pytest

from gsd_fsm.history import iterations
from gsd_fsm.history.iterations import Iteration
from tests.support.story import MINUTE, SECOND, Story, grouped


def seqs(found: list[Iteration]) -> list[list[int]]:
    return [[row.seq for row in it.rows] for it in found]


def test_iteration_lasts_until_the_next_one_and_counts_events_without_a_row() -> None:
    story = Story("goal", goal="g", limits={"max_iterations": 5})
    story("session", action="bind", _by="hook", _session="s")
    story("session", action="prompt", _by="hook", _session="s")
    story("iteration", _by="hook", _after=MINUTE)
    story("spend", usd=0.4, tokens=12_000)
    story("note", text="n")
    story("spend", usd=0.02, tokens=1, estimated=True)
    story("iteration", _by="hook", _after=3 * MINUTE)
    story("exit")
    story("complete")
    journal, start, first, second = grouped(story)
    assert seqs([journal, start, first, second]) == [[1], [2], [7], [10, 11]]
    assert (journal.loop, start.loop, start.kind) == (None, "lp-1", "goal")
    assert [(it.number, it.most, it.seq) for it in (start, first, second)] == [
        (0, 5, None), (1, 5, 5), (2, 5, 9),
    ]  # fmt: skip
    assert [it.active_ms for it in (start, first, second)] == [
        MINUTE + 2 * SECOND, 3 * MINUTE + 3 * SECOND, 2 * SECOND,
    ]  # fmt: skip
    assert start.sessions == {"bind": 1, "prompt": 1}
    assert (round(first.usd, 6), first.tokens, first.is_estimate) == (0.42, 12_001, True)
    assert (second.usd, second.tokens) == (0, 0)
    assert second.rows[1].source == "running"
    assert second.rows[1].dest == "completed"
    assert [*chain(*seqs(grouped(story, every=True)))] == list(range(1, 12))


def test_halted_iteration_is_continued_by_another_and_idle_time_is_not_active() -> None:
    story = Story("goal", goal="g")
    story("iteration", _by="hook")
    story("pause", code="manual", _after=MINUTE)
    story("session", action="end", _by="hook", _after=SECOND)
    story("note", text="look here", _after=9 * MINUTE)
    story("resume", _after=51 * MINUTE)
    story("note", text="n", _after=2 * SECOND)
    story("wait", for_="human", question="Which?")
    story("answer", text="this", _after=MINUTE)
    _, _, halted, resumed, answered = grouped(story)
    assert seqs([halted, resumed, answered]) == [[4, 6], [7, 8, 9], [10]]
    assert [(it.number, it.is_continued, it.active_ms, it.idle_ms) for it in (halted, resumed)] == [
        (1, False, MINUTE, 0), (1, True, 3 * SECOND, 51 * MINUTE),
    ]  # fmt: skip
    assert (answered.is_continued, answered.idle_ms) == (True, MINUTE)
    assert halted.sessions == {"end": 1}


def test_interleaved_loops_have_separate_iterations() -> None:
    story = Story("goal", goal="one")
    story("start", kind="goal", mode="yolo", limits={}, goal="two", _loop="lp-2", _session="s2")
    story("note", text="one")
    story("note", text="two", _loop="lp-2")
    story("pause", code="manual")
    story("note", text="two", _loop="lp-2")
    story("resume", _session="s1")
    story("iteration", _loop="lp-2", _by="hook")
    found = grouped(story)
    assert [it.loop for it in found] == [None, "lp-1", "lp-2", "lp-1", "lp-2"]
    assert seqs(found) == [[1], [2, 4, 6], [3, 5, 7], [8], []]


@pytest.mark.parametrize("most", [1, 10])
def test_long_iteration_is_given_in_parts(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(iterations, "MOST_HELD", most)
    story = Story("goal", goal="g")
    for number in range(40):
        story("note", text=f"note {number}")
    _, start, *parts = grouped(story)
    assert max(map(len, seqs([start, *parts]))) <= most
    assert [*chain(*seqs([start, *parts]))] == list(range(2, 43))
    assert not start.is_continued
    assert all(it.is_continued and not it.idle_ms for it in parts)
    assert sum(it.active_ms for it in (start, *parts)) == 40 * SECOND


def test_iteration_has_no_negative_time_after_the_clock_was_set_back() -> None:
    story = Story("goal", goal="g")
    story("note", text="n", _after=-MINUTE)
    story("iteration", _by="hook")
    assert [it.active_ms for it in grouped(story)] == [0, SECOND, 0]

"""Durations and times for people."""

from __future__ import annotations

import pytest

from gsd_fsm.cli.display import people
from gsd_fsm.core.clock import ms_of

NOON = "2026-11-19T12:00:00.000Z"


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "less than 1 s"),
        (999, "less than 1 s"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (119_000, "1 min"),
        (3_600_000, "1 h"),
        (3 * 3_600_000 + 5 * 60_000, "3 h 5 min"),
        (86_400_000, "1 d"),
        (2 * 86_400_000 + 23 * 3_600_000, "2 d 23 h"),
    ],
)
def test_duration_has_at_most_two_units(ms: int, words: str) -> None:
    assert people.duration(ms) == words


def test_ago_after_the_clock_was_set_back_is_just_now() -> None:
    assert people.ago(NOON, ms_of(NOON) + 61_000) == "1 min ago"
    assert people.ago(NOON, ms_of(NOON)) == "just now"
    assert people.ago(NOON, ms_of(NOON) - 86_400_000) == "just now"


def test_local_time_is_the_same_moment() -> None:
    assert people.local(NOON).timestamp() * 1000 == ms_of(NOON)

"""Times: written and read to the letter, equal to what the standard library says."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gsd_fsm.core.clock import to_iso, to_ms

LAST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@given(st.integers(0, LAST))
@example(0)
@example(LAST)
@example(951_782_400_000)  # 2000-02-29
@example(4_107_542_400_000)  # 2100-03-01, no leap year
def test_a_moment_is_written_as_datetime_writes_it_and_read_back(ms: int) -> None:
    moment = EPOCH + timedelta(milliseconds=ms)
    text = to_iso(ms)
    assert text == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert to_ms(text) == ms


@pytest.mark.parametrize("year", [1970, 1972, 2000, 2024, 2026, 2100, 2400, 9999])
def test_every_day_of_a_year_is_right(year: int) -> None:
    day = datetime(year, 1, 1, 23, 59, 59, 999_000, tzinfo=timezone.utc)
    while day.year == year:
        ms = (day - EPOCH) // timedelta(milliseconds=1)
        assert to_iso(ms)[:10] == day.date().isoformat()
        assert to_ms(to_iso(ms)) == ms
        if (day.month, day.day) == (12, 31):
            break
        day += timedelta(days=1)


@given(st.integers(0, LAST), st.integers(0, LAST))
def test_times_sort_as_text(one: int, other: int) -> None:
    assert (to_iso(one) < to_iso(other)) == (one < other)


@given(st.integers())
def test_a_wrong_clock_is_clamped_into_the_years_that_can_be_written(ms: int) -> None:
    assert to_ms(to_iso(ms)) == min(max(ms, 0), LAST)


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-11-15", "2026-11-15T23:00:07Z", "2026-11-15T23:00:07.123",
        "2026-11-15t23:00:07.123Z", "2026-11-15 23:00:07.123Z", "2026-11-15T23:00:07.123z",
        "2026-11-15T23:00:07.123+00:00", "2026-11-15T23:00:07,123Z", "2026-02-29T00:00:00.000Z",
        "2026-13-01T00:00:00.000Z", "2026-00-01T00:00:00.000Z", "2026-11-31T00:00:00.000Z",
        "2026-11-15T24:00:00.000Z", "2026-11-15T23:60:00.000Z", "2016-12-31T23:59:60.000Z",
        "1969-12-31T23:59:59.999Z", "10000-01-01T00:00:00.000Z", "+026-11-15T23:00:07.123Z",
        "2026-11-15T23:00:07.123Z\n", " 2026-11-15T23:00:07.123Z", "２０２６-11-15T23:00:07.123Z",
        "2026-11-15T23:00:07.1_3Z", "2026- 1-15T23:00:07.123Z",
    ],
)  # fmt: skip
def test_what_is_not_a_time_to_the_letter_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        to_ms(text)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    try:
        ms = to_ms(text)
    except ValueError:
        return
    assert to_iso(ms) == text

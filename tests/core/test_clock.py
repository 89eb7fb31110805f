"""Times: written and read to the letter, as the standard library writes them."""

from __future__ import annotations

from calendar import isleap
from datetime import datetime, timedelta, timezone

import pytest
from freezegun import freeze_time
from hypothesis import example, given
from hypothesis import strategies as st

from gsd_fsm.core.clock import now_ms, to_iso, to_ms

LAST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@given(st.integers())
@example(0)
@example(LAST)
@example(951_782_400_000)  # 2000-02-29
@example(4_107_542_400_000)  # 2100-03-01, not a leap year
def test_to_iso_writes_what_datetime_writes_and_clamps_other_years(ms: int) -> None:
    written = min(max(ms, 0), LAST)
    moment = EPOCH + timedelta(milliseconds=written)
    assert to_iso(ms) == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert to_ms(to_iso(ms)) == written


@pytest.mark.parametrize("year", [1970, 1972, 2000, 2024, 2026, 2100, 2400, 9999])
def test_to_iso_and_to_ms_are_right_on_every_day_of_a_year(year: int) -> None:
    first = datetime(year, 1, 1, 23, 59, 59, 999_000, tzinfo=timezone.utc)
    for number in range(365 + isleap(year)):
        day = first + timedelta(days=number)
        ms = (day - EPOCH) // timedelta(milliseconds=1)
        assert to_iso(ms)[:10] == day.date().isoformat()
        assert to_ms(to_iso(ms)) == ms


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-11-15", "2026-11-15T23:00:07Z", "2026-11-15 23:00:07.123Z", "2026-02-29T00:00:00.000Z",
        "2026-11-15T23:00:07.123+00:00", "2026-13-01T00:00:00.000Z", "2026-11-31T00:00:00.000Z",
        "2026-11-15T24:00:00.000Z", "2026-11-15T23:60:00.000Z", "2016-12-31T23:59:60.000Z",
        "1969-12-31T23:59:59.999Z", "10000-01-01T00:00:00.000Z", "+026-11-15T23:00:07.123Z",
        "2026-11-15T23:00:07.123Z\n", "２０２６-11-15T23:00:07.123Z", "2026-11-15T23:00:07.1_3Z",
    ],
)  # fmt: skip
def test_to_ms_refuses_text_that_is_not_exactly_a_time(text: str) -> None:
    with pytest.raises(ValueError):
        to_ms(text)


@given(st.text(max_size=30))
def test_to_ms_of_any_text_is_its_time_or_a_value_error(text: str) -> None:
    try:
        ms = to_ms(text)
    except ValueError:
        return
    assert to_iso(ms) == text


@pytest.mark.parametrize("moment", ["2028-02-29T23:59:59.999", "1970-01-01T00:00:00"])
def test_now_ms_is_the_time_of_the_system(moment: str) -> None:
    with freeze_time(moment):
        # A float of seconds may lose the last millisecond.
        assert abs(now_ms() - round(datetime.now(timezone.utc).timestamp() * 1000)) <= 1
        assert to_iso(now_ms())[:19] == moment[:19]

"""Times in the files of other programs."""

from __future__ import annotations

import pytest

from gsd_fsm.documents.times import parse_time


def test_parse_time_reads_every_form_of_iso_8601_and_cuts_to_milliseconds() -> None:
    for text in (
        *("2026-02-05T10:00:00Z", "2026-02-05T10:00:00.000Z", "2026-02-05t10:00z"),
        *("2026-02-05T10Z", "2026-02-05 10:00:00", "20260205T100000Z", "20260205T1000+0000"),
        *("2026-02-05T11:00:00+01:00", "2026-02-05T05:30:00 -0430", " 2026-02-05T09:00-01 "),
        *("2026-02-05T10:00:00,000000Z", "2026-02-05T10:00:00.0004999Z"),
    ):
        assert parse_time(text) == "2026-02-05T10:00:00.000Z"
    assert parse_time("2026-02-05") == "2026-02-05T00:00:00.000Z"
    assert parse_time("2026-02-05T10:00:00.1Z") == "2026-02-05T10:00:00.100Z"
    assert parse_time("2026-02-05T10:00:00." + "9" * 5000 + "Z") == "2026-02-05T10:00:00.999Z"


@pytest.mark.parametrize(
    "text",
    ["", "now", "10:00", "2026-02-30", "2026-13-01T00:00:00Z", "2026-02-05T25:00:00Z", "2026-02",
     "1969-12-31T23:59:59Z", "2026-02-05T10:00:00+99:99Zulu", "1738749600", "0001-01-01T00:00+23:59",
     "9999-12-31T23:59:59-23:59", "2026-02-05T10:00:00Z and more", "٢٠٢٦-02-05T10:00:00Z"],
)  # fmt: skip
def test_parse_time_returns_none_for_other_text(text: str) -> None:
    assert parse_time(text) is None

"""Times as the journal writes them: UTC, ISO 8601, milliseconds, Z.

Computed here, because the functions of the C library end with the year 3000 on Windows.
"""

from __future__ import annotations

from time import time

_DAY_MS = 86_400_000


def now_ms() -> int:
    return int(time() * 1000)


def to_iso(ms: int) -> str:
    """Return a time as text; one before 1970 or beyond year 9999 is clamped: the clock is wrong."""
    days, rest = divmod(min(max(ms, 0), 253_402_300_799_999), _DAY_MS)
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    index = (5 * of_year + 2) // 153
    day = of_year - (153 * index + 2) // 5 + 1
    month = index + (3 if index < 10 else -9)
    year += era * 400 + (month <= 2)
    clock = (rest // 3_600_000, rest // 60_000 % 60, rest // 1000 % 60, rest % 1000)
    return "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ" % (year, month, day, *clock)


def ms_of(iso: str) -> int:
    """Return the milliseconds since 1970 of a time that is known to be valid."""
    year, month, day = int(iso[0:4]), int(iso[5:7]), int(iso[8:10])
    hour, minute = int(iso[11:13]), int(iso[14:16])
    second, milli = int(iso[17:19]), int(iso[20:23])
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days * _DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1000 + milli


def to_ms(iso: str) -> int:
    """Return the milliseconds since 1970; raise ValueError if this is not exactly a journal time."""
    ms = ms_of(iso)
    if to_iso(ms) != iso:
        raise ValueError("not a time: %.40r" % iso)
    return ms

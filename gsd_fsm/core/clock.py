"""Times as the journal writes them: UTC, ISO 8601, milliseconds, Z."""

from __future__ import annotations

from time import time

_DAY_MS = 86_400_000


def now_ms() -> int:
    return int(time() * 1000)


def _days_from_civil(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _civil_from_seconds(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    index = (5 * of_year + 2) // 153
    day = of_year - (153 * index + 2) // 5 + 1
    month = index + (3 if index < 10 else -9)
    return "%04d-%02d-%02dT%02d:%02d:%02d" % (
        year + era * 400 + (month <= 2),
        month,
        day,
        rest // 3600,
        rest // 60 % 60,
        rest % 60,
    )


# The last second that was written out: many moments share theirs with the one before.
_last = [(-1, "")]


def to_iso(ms: int) -> str:
    """The moment as text; beyond year 9999 or before 1970 the clock is wrong and is clamped."""
    seconds, milli = divmod(min(max(ms, 0), 253_402_300_799_999), 1000)
    known, text = _last[0]
    if known != seconds:
        text = _civil_from_seconds(seconds)
        _last[0] = (seconds, text)
    return "%s.%03dZ" % (text, milli)


def ms_of(iso: str) -> int:
    """The moment of a journal time that is known to be one."""
    year, month, day = int(iso[0:4]), int(iso[5:7]), int(iso[8:10])
    hour, minute = int(iso[11:13]), int(iso[14:16])
    second, milli = int(iso[17:19]), int(iso[20:23])
    days = _days_from_civil(year, month, day)
    return days * _DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1000 + milli


def to_ms(iso: str) -> int:
    """The moment of a journal time; ValueError if it is not one to the letter."""
    ms = ms_of(iso)
    if to_iso(ms) != iso:
        raise ValueError("not a time: %.40r" % iso)
    return ms

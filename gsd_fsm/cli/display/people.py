"""Format durations and times for people."""

from __future__ import annotations

from datetime import datetime, timezone

from gsd_fsm.core.clock import ms_of

_SECOND = 1000
MINUTE = 60 * _SECOND
_HOUR = 60 * MINUTE
_DAY = 24 * _HOUR


def duration(ms: float) -> str:
    """Return a duration in at most two units, such as `48 s`, `12 min` or `3 h 5 min`."""
    for unit, name, part, part_name in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", 0, ""),
    ):
        if ms >= unit:
            rest = int(ms % unit // part) if part else 0
            return f"{int(ms // unit)} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{int(ms // _SECOND)} s" if ms >= _SECOND else "less than 1 s"


def ago(ts: str, now: int) -> str:
    """Return how long ago a time of the journal was; `just now` if the clock was set back."""
    past = now - ms_of(ts)
    return f"{duration(past)} ago" if past >= _SECOND else "just now"


def local(ts: str) -> datetime:
    """Return a time of the journal in the time zone of this machine."""
    moment = datetime.fromtimestamp(0, timezone.utc)
    try:
        moment = datetime.fromtimestamp(ms_of(ts) / _SECOND, timezone.utc)
        return moment.astimezone()
    except (OverflowError, OSError, ValueError):
        return moment  # a time that this platform cannot show

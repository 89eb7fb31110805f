"""Read times as people and other programs write them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from gsd_fsm.core.clock import to_iso

_ISO = re.compile(
    r"""
    (\d{4})-?(\d\d)-?(\d\d)
    (?: [Tt ] (\d\d) (?: :?(\d\d) (?: :?(\d\d) (?:[.,](\d+))? )? )?
        [ ]? (?: [Zz] | ([+-])(\d\d):?(\d\d)? )?
    )?
    """,
    re.ASCII | re.VERBOSE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def parse_time(text: str) -> str | None:
    """Return an ISO 8601 time as the journal writes it, in UTC if it has no zone; None if invalid."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction, sign, hours, minutes = found.groups()[6:]
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
        since = (local + offset if sign == "-" else local - offset) - _EPOCH
    except (ValueError, OverflowError):
        return None
    ms = since // timedelta(milliseconds=1) + int(((fraction or "") + "000")[:3])
    return to_iso(ms) if ms >= 0 else None

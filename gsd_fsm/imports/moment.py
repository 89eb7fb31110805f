"""Times as other tools write them: any form of ISO 8601 that has a calendar date."""

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


def moment(text: str) -> str | None:
    """The time as the journal writes it, None if it is none; without a zone it is UTC."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction, sign, hours, minutes = found.groups()[6:]
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
        since = (local + ahead if sign == "-" else local - ahead) - _EPOCH
    except (ValueError, OverflowError):
        return None
    ms = since // timedelta(milliseconds=1) + int(((fraction or "") + "000")[:3])
    return to_iso(ms) if ms >= 0 else None

"""The members of somebody else's object: each is taken with what it must be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from gsd_fsm.core.clock import to_iso
from gsd_fsm.imports.findings import Findings, named, shown

MOST = 10**9
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


class Members:
    """An object that is read member by member; what is wrong with one becomes a finding.

    A member that is absent or null is its default, unless it is needed.
    """

    def __init__(self, values: dict[str, Any], findings: Findings, within: str = "") -> None:
        self._values = values
        self._findings = findings
        self._within = within
        self._left = dict.fromkeys(values)

    def name_of(self, name: str) -> str:
        """Where the member stands, as messages say it."""
        return f"{self._within}.{named(name)}" if self._within else named(name)

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def take(self, name: str, *, needed: bool = False) -> Any:
        """The value, whatever it is."""
        self._left.pop(name, None)
        value = self._values.get(name)
        if value is None and needed:
            self._findings.wrong(self.name_of(name), "it is missing")
        return value

    def flag(self, name: str, default: bool = False, *, needed: bool = False) -> bool:
        value = self.take(name, needed=needed)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self._refuse(name, "true or false", value)
        return default

    def count(self, name: str, *, most: int = MOST, needed: bool = False) -> int | None:
        """A whole number that can be counted on from."""
        value = self.take(name, needed=needed)
        if value is None or (type(value) is int and 0 <= value <= most):
            return value
        self._refuse(name, f"a whole number from 0 to {most}", value)
        return None

    def amount(self, name: str) -> float | None:
        value: float | None = self.take(name)
        if value is None or (type(value) in (int, float) and 0 <= value <= MOST):
            return value
        self._refuse(name, f"a number from 0 to {MOST}", value)
        return None

    def text(self, name: str, *, needed: bool = False) -> str | None:
        """The text as it stands there; it has still to be made fit for the journal."""
        value = self.take(name, needed=needed)
        if value is None or isinstance(value, str):
            return value
        self._refuse(name, "a text", value)
        return None

    def texts(self, name: str, *, needed: bool = False) -> list[str]:
        value = self.take(name, needed=needed)
        if value is None:
            return []
        if not isinstance(value, list):
            self._refuse(name, "a list of texts", value)
            return []
        for item in value:
            if not isinstance(item, str):
                self._refuse(name, "a list of texts", item, "a list with ")
                return []
        return value

    def choice(self, name: str, words: Sequence[str], *, needed: bool = False) -> str | None:
        value = self.take(name, needed=needed)
        if value is None or (isinstance(value, str) and value in words):
            return value
        self._refuse(name, f"one of {', '.join(words)}", value)
        return None

    def time(self, name: str) -> str | None:
        value = self.take(name)
        if value is None:
            return None
        found = moment(value) if isinstance(value, str) else None
        if found is None:
            self._refuse(name, "a time such as 2026-11-15T23:00:07Z", value)
        return found

    def inner(self, name: str, *, needed: bool = False) -> Members:
        """The object in this member; an empty one if there is none."""
        value = self.take(name, needed=needed)
        if value is not None and not isinstance(value, dict):
            self._refuse(name, "an object", value)
        inside = value if isinstance(value, dict) else {}
        return Members(inside, self._findings, self.name_of(name))

    def names(self) -> list[str]:
        return list(self._values)

    def pass_over_rest(self) -> None:
        """What says something and was not taken is not carried, and told."""
        for name in self._left:
            if self.has(name):
                self._findings.unknown(self.name_of(name))

    def _refuse(self, name: str, words: str, value: Any, before: str = "") -> None:
        self._findings.wrong(self.name_of(name), f"it must be {words}, not {before}{shown(value)}")


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

"""Read the members of an object of another tool, and report those that are missing or invalid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gsd_fsm.documents.front_matter import shown_key
from gsd_fsm.documents.times import parse_time
from gsd_fsm.imports.findings import Findings

MOST = 10**9


class Members:
    """An object that is read member by member; null counts as absent.

    Methods return None, or an empty value, for an absent or invalid member, and report it if it is
    invalid or required.
    """

    def __init__(self, values: dict[str, Any], findings: Findings, within: str = "") -> None:
        self._values = values
        self._findings = findings
        self._within = within
        self._unread = dict.fromkeys(values)

    def path(self, name: str) -> str:
        """Return the dotted path of a member, for messages."""
        return f"{self._within}.{shown_key(name)}" if self._within else shown_key(name)

    def names(self) -> list[str]:
        return list(self._values)

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def take(self, name: str, *, required: bool = False) -> Any:
        """Return the value, whatever it is."""
        self._unread.pop(name, None)
        value = self._values.get(name)
        if value is None and required:
            self._findings.problem(f"{self.path(name)} is missing")
        return value

    def flag(self, name: str, default: bool = False, *, required: bool = False) -> bool:
        value = self._valid(name, "true or false", lambda it: isinstance(it, bool), required)
        return default if value is None else bool(value)

    def count(self, name: str, *, most: int = MOST, required: bool = False) -> int | None:
        words = f"a whole number from 0 to {most}"
        value = self._valid(name, words, lambda it: type(it) is int and 0 <= it <= most, required)
        return None if value is None else int(value)

    def amount(self, name: str) -> float | None:
        def accepts(value: Any) -> bool:
            return type(value) in (int, float) and 0 <= value <= MOST

        value: float | None = self._valid(name, f"a number from 0 to {MOST}", accepts)
        return value

    def choice(self, name: str, words: Sequence[str], *, required: bool = False) -> str | None:
        value = self._valid(name, f"one of {', '.join(words)}", words.__contains__, required)
        return None if value is None else str(value)

    def time(self, name: str) -> str | None:
        words = "a time such as 2026-11-15T23:00:07Z"
        value = self._valid(name, words, lambda it: isinstance(it, str) and bool(parse_time(it)))
        return value and parse_time(value)

    def text(
        self, name: str, limit: int, *, required: bool = False, shorten: bool = False
    ) -> str | None:
        """Return a text without secrets; report or shorten one of more than `limit` bytes."""
        value = self._valid(name, "a text", lambda it: isinstance(it, str), required)
        if value is None or (not value and not required):
            return None
        prepare = self._findings.shortened if shorten else self._findings.whole
        return prepare(self.path(name), value, limit)

    def time_if_valid(self, name: str) -> str | None:
        """Return a time; of any other text, note that it is not imported."""
        value = self.take(name)
        found = parse_time(value) if isinstance(value, str) else None
        if found is None and value is not None:
            self._findings.note(f"{self.path(name)}: not imported, {shown(value)} is not a time.")
        return found

    def texts(self, name: str, *, required: bool = False) -> list[str]:
        """Return the texts of a list as they are."""
        value = self._valid(name, "a list of strings", lambda it: isinstance(it, list), required)
        for item in value or ():
            if not isinstance(item, str):
                self._invalid(name, "a list of strings", f"a list with {shown(item)}")
                return []
        return value or []

    def inner(self, name: str, *, required: bool = False) -> Members:
        """Return the object in this member, an empty one if there is none."""
        value = self._valid(name, "an object", lambda it: isinstance(it, dict), required)
        return Members(value or {}, self._findings, self.path(name))

    def items(self, name: str) -> list[Any]:
        """Return the items of a list as they are."""
        return self._valid(name, "a list", lambda it: isinstance(it, list)) or []

    def objects(self, name: str) -> list[Members]:
        """Return the objects in a list."""
        value = self._valid(name, "a list of objects", lambda it: isinstance(it, list))
        for item in value or ():
            if not isinstance(item, dict):
                self._invalid(name, "a list of objects", f"a list with {shown(item)}")
                return []
        within = self.path(name)
        found = enumerate(value or ())
        return [Members(it, self._findings, f"{within}[{number}]") for number, it in found]

    def ignore_rest(self) -> None:
        """Note that the members that were not read are not imported."""
        for name in filter(self.has, self._unread):
            self._findings.ignored(self.path(name))

    def _valid(
        self, name: str, words: str, accepts: Callable[[Any], bool], required: bool = False
    ) -> Any:
        value = self.take(name, required=required)
        if value is None or accepts(value):
            return value
        self._invalid(name, words, shown(value))
        return None

    def _invalid(self, name: str, words: str, found: str) -> None:
        self._findings.problem(f"{self.path(name)} must be {words}, not {found}")


def shown(value: Any) -> str:
    """Return a value as a message quotes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return f"'{shown_key(value)}'" if isinstance(value, str) else str(value)[:60]

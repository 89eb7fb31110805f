"""What reading a file brings to light: what is wrong with it, and what is not carried as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import clean, display
from gsd_fsm.documents.journal_text import redact_and_truncate, redact_or_reject

_SHOWN = 20
_LONGEST = 60
EventData = tuple[str, dict[str, Any]]


class Findings:
    """Every problem of one file, told at once; and what its new owner should know."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.notes: list[str] = []
        self._problems: list[str] = []
        self._unknown: list[str] = []
        self._ended = ""

    def wrong(self, member: str, what: str) -> None:
        self._problems.append(f"{self.file}: {member}: {what}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def unknown(self, member: str) -> None:
        self._unknown.append(member)

    def ended(self, what: str) -> None:
        """The loop is over: that is told before whatever else is wrong with it."""
        self._ended = f"{self.file}: {what}: there is nothing to import"

    def whole(self, member: str, text: str, longest: int) -> str:
        """A text that must be carried as it is."""
        try:
            kept = redact_or_reject(text, "it", longest)
        except UsageError as error:
            self.wrong(member, error.message)
            return ""
        if kept != clean(text).strip():
            self.note(f"{member}: what looked like a secret is not carried.")
        return kept

    def kept(self, member: str, text: str, longest: int) -> str:
        """A text that may be shortened."""
        kept = redact_and_truncate(text, longest)
        if kept != clean(text):
            self.note(f"{member}: shortened, or without what looked like a secret.")
        return kept

    def settle(self) -> list[str]:
        """The notes; UsageError if there is nothing to import, or something is wrong."""
        told = self._problems[:_SHOWN]
        if len(self._problems) > _SHOWN:
            told.append(f"and {len(self._problems) - _SHOWN} more")
        if self._ended:
            raise UsageError("\n".join([self._ended, *told]), "a new loop: gsd-fsm start --help")
        if told:
            raise UsageError(
                "\n".join(told), "mend the file; 'gsd-fsm import FILE --dry-run' tells what is left"
            )
        if self._unknown:
            names = ", ".join(self._unknown[:_SHOWN])
            more = len(self._unknown) - _SHOWN
            self.note(f"Not carried: {names}{f' and {more} more' if more > 0 else ''}.")
        return self.notes


def shown(value: Any) -> str:
    """A value of somebody else's file, as a message may quote it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return f"'{named(value)}'" if isinstance(value, str) else str(value)[:_LONGEST]


def named(text: str) -> str:
    """A name or text of somebody else's file: one line, short, and harmless."""
    return display(clean(text[:_LONGEST])) + ("…" if len(text) > _LONGEST else "")


class OldLoop(NamedTuple):
    """What a file says of a running loop: its start, the limits it names, and what came since."""

    format: str
    start: dict[str, Any]
    limits: dict[str, int]
    later: list[EventData]
    notes: list[str]

    def events(self, frozen: dict[str, Any]) -> list[EventData]:
        """Type and data of each event; `frozen` is what settings decide where the file is silent."""
        start = {**self.start, **frozen, "limits": {**frozen["limits"], **self.limits}}
        if not start["auto_loop"] and any(kind == "gap" for kind, _ in self.later):
            # Else the first gap would pause a loop that was not paused.
            start["auto_loop"] = True
        return [("start", start), *self.later]

"""Collect the problems of a file that is imported, and what its new owner should know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.journal_text import redact_and_truncate, redact_or_reject
from gsd_fsm.documents.read import Mistakes

if TYPE_CHECKING:
    from gsd_fsm.imports.position import Position

_SHOWN = 20
EventData = tuple[str, dict[str, Any]]


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


class OldLoop(NamedTuple):
    """A running loop of another tool: its start, the limits it sets, and the events since."""

    format: str
    start: dict[str, Any]
    limits: dict[str, float]
    later: list[EventData]
    notes: list[str]
    position: Position | None = None  # in the plan of its phase

    def events(self, frozen: dict[str, Any]) -> list[EventData]:
        """Return type and data of each event; `frozen` has the settings the file does not give."""
        start = {**self.start, **frozen, "limits": {**frozen["limits"], **self.limits}}
        if not start["auto_loop"] and any(kind == "gap" for kind, _ in self.later):
            # Otherwise the first gap would pause a loop that was not paused.
            start["auto_loop"] = True
        return [("start", start), *self.later]


class Findings:
    """All problems of one file, to report them at once, and notes for the user."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.notes: list[str] = []
        self._problems: list[str] = []
        self._ignored: list[str] = []
        self._ended = ""

    def problem(self, text: str) -> None:
        self._problems.append(f"{self.file}: {text}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def ignored(self, member: str) -> None:
        """Note that a member is not imported."""
        self._ignored.append(member)

    def ended(self, why: str) -> None:
        """Report that the loop has ended, before all problems."""
        self._ended = f"{self.file}: nothing to import: {why}"

    def whole(self, member: str, text: str, limit: int) -> str:
        """Return the text without secrets; if it is empty or too long, report that."""
        try:
            kept = redact_or_reject(text, member, limit)
        except UsageError as error:
            self.problem(error.message)
            return ""
        if kept != clean(text).strip():
            self.note(f"{member}: a possible secret was removed.")
        return kept

    def shortened(self, member: str, text: str, limit: int) -> str:
        """Return the text without secrets, shortened to fit."""
        kept = redact_and_truncate(text, limit)
        if kept != clean(text):
            self.note(f"{member}: shortened, or a possible secret was removed.")
        return kept

    def finish(self) -> None:
        """Raise Mistakes if the loop has ended or there are problems; else complete the notes."""
        listed = self._problems[:_SHOWN]
        if len(self._problems) > _SHOWN:
            listed.append(f"and {len(self._problems) - _SHOWN} more")
        if self._ended:
            hint = "To start a new loop, run: gsd-fsm start --help"
            raise Mistakes([self._ended, *listed], hint)
        if listed:
            hint = "Fix the file, then run: gsd-fsm import FILE --dry-run"
            raise Mistakes(listed, hint)
        if self._ignored:
            more = len(self._ignored) - _SHOWN
            names = ", ".join(self._ignored[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
            self.note(f"Not imported: {names}.")

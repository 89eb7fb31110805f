"""A loop as another tool left it, in the words of our journal."""

from __future__ import annotations

from typing import Any, NamedTuple

EventData = tuple[str, dict[str, Any]]


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

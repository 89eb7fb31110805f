"""A trusted journal with one loop, for use cases without the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context
from tests.support.events import append, draft, new_journal, start_draft

AGENT = Author("agent", "s-1")


class EngineProject:
    """A project with the loop `lp-1`, and the context of its agent."""

    def __init__(self, root: Path, kind: str = "execute", **start: Any) -> None:
        new_journal(root / ".gsd")
        self.context = Context(root, author=AGENT)
        self.first = len(self.events())
        self._append({**start_draft("lp-1", kind, **start), "session": "s-1"})

    def append(self, kind: str, by: str = "human", **data: Any) -> None:
        self._append(draft(kind, "lp-1", by, data, session="s-1"))

    def _append(self, event: dict[str, Any]) -> None:
        append(Journal(self.context.gsd), event)

    @property
    def loop(self) -> Loop:
        """Return the loop as a new reader of the journal sees it."""
        return Journal(self.context.gsd).read().by_id["lp-1"]

    def events(self) -> list[Any]:
        path = Path(self.context.gsd) / "journal.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()]

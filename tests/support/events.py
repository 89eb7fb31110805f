"""Events for tests below the command line: drafts, and journals they are appended to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gsd_fsm.core.journal.journal import Author
from gsd_fsm.core.loop.fold import EVENTS
from gsd_fsm.core.loop.schema import check_event

if TYPE_CHECKING:
    from gsd_fsm.core.journal.journal import Journal
    from gsd_fsm.core.loop.fold import Loops


def draft(
    kind: str, loop: str | None, by: str, data: dict[str, Any], **more: str
) -> dict[str, Any]:
    """Return an event without its place in a journal: `more` may hold session and client."""
    return {"loop": loop, "type": kind, "by": by, **more, "data": data}


def apply_new(loops: Loops, event: Any) -> None:
    """Fold an event as a transaction does: payload, table and rules are checked first."""
    check_event(event, EVENTS)
    loops.check_rules(event)
    loops.apply(event)


def append(journal: Journal, *drafts: dict[str, Any]) -> list[Any]:
    """Append these drafts in one transaction; return the acknowledged events."""
    with journal.transaction(Author("human")) as tx:
        for it in drafts:
            author = Author(it["by"], it.get("session"), it.get("client"))
            tx._append(it["loop"], it["type"], it["data"], author)
    return tx.events[len(tx.events) - len(drafts) :]  # without a repair

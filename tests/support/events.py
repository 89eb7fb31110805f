"""Events and journals for tests below the command line: drafts, projects, records, prefixes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gsd_fsm.core.journal.journal import Author, Journal, create_journal
from gsd_fsm.core.loop.fold import EVENTS
from gsd_fsm.core.loop.schema import check_event
from gsd_fsm.core.project import make_gsd, register
from gsd_fsm.engine.context import Context

if TYPE_CHECKING:
    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.records import Record
    from gsd_fsm.core.loop.state import Loop

NOW = 1_794_783_600_000  # 2026-11-15T23:00:00.000Z
R = TypeVar("R", bound="Record")


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


def new_journal(gsd: Path) -> Journal:
    """Return an empty, registered journal in this new directory."""
    gsd.parent.mkdir(parents=True, exist_ok=True)
    make_gsd(str(gsd))
    register("j-test", str(gsd), NOW)
    create_journal(str(gsd), "j-test", NOW)
    return Journal(str(gsd))


def start_draft(loop: str = "lp-1", kind: str = "execute", **data: Any) -> dict[str, Any]:
    """Return a start event with the default limits."""
    base = {"kind": kind, "mode": "yolo", "limits": {}}
    if kind == "execute":
        base["tasks"] = [{"id": "T1"}, {"id": "T2"}]
    return draft("start", loop, "human", {**base, **data})


def build(record_type: type[R], /, **values: Any) -> R:
    """Return a record of this kind with these values, the others as in a new one."""
    record = record_type()
    for name, value in values.items():
        getattr(record, name)  # only attributes that exist
        setattr(record, name, value)
    return record


def require_legal_prefixes(gsd: Path, data: bytes, step: int = 1) -> None:
    """Read every `step`th prefix of these lines in the new directory `gsd`, and append to it."""
    gsd.mkdir(mode=0o700, parents=True)
    lines = data.splitlines(keepends=True)
    for count in {*range(1, len(lines) + 1, step), len(lines)}:
        (gsd / "journal.jsonl").write_bytes(b"".join(lines[:count]))
        journal = Journal(str(gsd))
        assert journal.read().seq == count
        with journal.transaction(Author("human")) as tx:
            for loop in tx.loops.live():
                tx.append(loop, "note", {"text": "continued"})
        journal.close()


AGENT = Author("agent", "s-1")


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class EngineProject:
    """A project with the loop `lp-1` of session `s-1`, and the context of its agent."""

    def __init__(self, root: Path, kind: str = "execute", **start: Any) -> None:
        self.root, self.gsd = root, root / ".gsd"
        self.file = self.gsd / "journal.jsonl"
        append(new_journal(self.gsd), {**start_draft("lp-1", kind, **start), "session": "s-1"})
        self.context = Context(root, author=AGENT)

    def append(self, kind: str, by: str = "human", **data: Any) -> None:
        append(Journal(self.context.gsd), draft(kind, "lp-1", by, data, session="s-1"))

    @property
    def loop(self) -> Loop:
        """Return the loop as a new reader of the journal sees it."""
        return Journal(self.context.gsd).read().by_id["lp-1"]

    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.file.read_bytes().splitlines()]

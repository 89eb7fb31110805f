"""Append events as one unit of work."""

from __future__ import annotations

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.envelope import VERSION, check_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from gsd_fsm.core.journal.journal import Journal
    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.state import Loop


class Author:
    """Who appends: a human, an agent, the hook, or the engine on its own account (`cli`)."""

    __slots__ = ("by", "client", "session")

    def __init__(self, by: str, session: str | None = None, client: str | None = None) -> None:
        self.by = by
        self.session = session
        self.client = client


class Transaction:
    """A locked journal to which events can be appended.

        with journal.transaction(author) as tx:
            loop = tx.loops.by_id["lp-1"]
            tx.append(loop, "gap", {"action": "closed", "gap": "G1"})
            # `loop` already shows the closed gap; nothing is on disk yet

    When the block ends, every event is durable. If it raises, none is written. A crash while the
    block ends may keep the first few, so every prefix must be a legal history. A dry run takes no
    lock and writes nothing.
    """

    def __init__(
        self,
        journal: Journal,
        author: Author,
        require: Callable[[Loops], None] | None = None,
        dry_run: bool = False,
        empty: bool = False,
    ) -> None:
        self._journal = journal
        self._author = author
        self._require = require
        self._dry_run = dry_run
        self._empty = empty
        self._lines: list[bytes] = []
        self._sum = ""
        self._ts = ""
        self.now = 0
        # The last event of the journal when the block ends, also if more are appended later.
        self.seq = 0
        self.events: list[Event[Any]] = []

    def __enter__(self) -> Transaction:
        if self._dry_run:
            if not self._empty:
                self._journal.read_cached()
            self._begin()
        else:
            self._journal.begin(self)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None and not self._dry_run:
            self._journal.commit(self)
        else:
            self._journal.close()  # it may have folded events that will never be written

    @property
    def loops(self) -> Loops:
        return self._journal.loops

    @property
    def path(self) -> str:
        return self._journal.path

    @property
    def head(self) -> str:
        """Return `seq:sum` of the last event, which names the whole history up to it."""
        return "%d:%s" % (self.seq, self._sum)

    def append(
        self, loop: Loop | None, kind: str, data: Mapping[str, object], by: str = ""
    ) -> None:
        """Check one event and fold it; raise Refused, and change nothing, if it may not happen now.

        `loop` is None for events about the journal itself. `by` overrides the author's.
        """
        self._append(loop.id if loop else None, kind, data, self._author, by)

    def start(self, loop_id: str, data: Mapping[str, object]) -> Loop:
        """Append a `start` event; return the new loop."""
        self._append(loop_id, "start", data, self._author)
        return self.loops.by_id[loop_id]

    def _append(
        self,
        loop_id: str | None,
        kind: str,
        data: Mapping[str, object],
        author: Author,
        by: str = "",
    ) -> None:
        loops = self.loops
        event = stamp(loops, self._ts, loop_id, kind, data, author, by)
        try:
            check_event(event)
            loops.check_rules(event)
            line, line_sum = encode_event(event, self._sum)
        except ValueError as problem:
            raise UsageError("cannot append %s: %s" % (kind, problem)) from problem
        loops.fold(event)
        self.seq = loops.seq
        self._sum = event["sum"] = line_sum
        self._lines.append(line)
        self.events.append(event)

    # for Journal

    def prepare(self) -> None:
        """Check what the caller requires of the journal, before the first byte is changed."""
        if self._require is not None:
            self._require(self.loops)
        self._begin()

    def record_repair(self, data: Mapping[str, object]) -> None:
        self._append(None, "repair", data, Author("cli"))

    def take_lines(self) -> list[tuple[bytes, str]]:
        """Return the lines that are not written yet, each with its sum."""
        events = self.events[len(self.events) - len(self._lines) :]
        lines = [(line, event["sum"]) for line, event in zip(self._lines, events)]  # noqa: B905 - strict came with Python 3.10
        self._lines = []
        return lines

    def _begin(self) -> None:
        self.seq = self.loops.seq
        self._sum = self._journal.at.sum
        self.now = self._journal.now()
        self._ts = to_iso(self.now)


def stamp(
    loops: Loops,
    ts: str,
    loop_id: str | None,
    kind: str,
    data: Mapping[str, object],
    author: Author,
    by: str = "",
) -> Event[Any]:
    """Return the event that follows those in `loops`."""
    event: Event[Any] = {
        "v": VERSION,
        "seq": loops.seq + 1,
        "ts": ts,
        "loop": loop_id,
        "type": kind,
        "by": by or author.by,
    }  # type: ignore[typeddict-item] # `data` is the last member
    if author.session:
        event["session"] = author.session
    if author.client:
        event["client"] = author.client
    event["data"] = data
    return event

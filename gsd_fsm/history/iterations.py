"""Group the events of a journal by iteration, as they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import ACTIVE, FINAL, Loop
from gsd_fsm.history.evidence import Evidence, evidence_against
from gsd_fsm.history.timeline import what_changed

Event = dict[str, Any]

# Events that are counted instead of shown.
FOLDED = ("session", "spend")
# Rows and iterations in memory; a longer iteration is given in parts.
MOST_HELD = 1_000


class Row(NamedTuple):
    """An event in words, the status of its loop before and after it, and the evidence of a failure."""

    seq: int
    ts: str
    by: str
    type: str
    text: str
    source: str
    dest: str
    evidence: Evidence | None


class Iteration:
    """What happened in one iteration of a loop, or from its start to the first one (number 0).

    If the loop waits or pauses, the iteration ends; `is_continued` marks the one that follows.
    Events of the journal itself belong to no loop.
    """

    def __init__(self, loop: Loop | None, event: Event) -> None:
        self.loop = loop.id if loop else None
        self.kind = loop.kind if loop else ""
        self.number = loop.iteration if loop else 0
        self.most = loop.limits.max_iterations if loop else 0
        is_begun = event["type"] == "iteration"
        self.seq: int | None = event["seq"] if is_begun else None
        self.is_continued = not is_begun and event["type"] != "start"
        self.ts: str = event["ts"]
        self.rows: list[Row] = []
        self.sessions: Counter[str] = Counter()
        self.usd = 0.0
        self.tokens = 0
        self.is_estimate = False
        self.active_ms = 0
        self.idle_ms = 0  # before it is continued


class _Spent(NamedTuple):
    usd: float
    tokens: int


class Iterations:
    """Pass each iteration to `give` when it ends.

    Unless `every`, events that are FOLDED, and those that begin an iteration, have no row.
    """

    def __init__(self, give: Callable[[Iteration], None], *, every: bool = False) -> None:
        self.give = give
        self.every = every
        self._open: dict[str, Iteration] = {}
        self._halted: list[str] = []
        self._last: dict[str, int] = {}
        self._spent: dict[str, _Spent] = {}
        self._held = 0

    def see(self, event: Event, source: str, loops: Loops) -> None:
        """Take the next event, the status of its loop before it, and the loops after it."""
        loop = loops.by_id.get(event["loop"])
        if loop is None:
            alone = Iteration(None, event)
            alone.rows.append(_row(event, "", ""))
            self.give(alone)
            return
        for other in [it for it in self._halted if it != loop.id]:
            self._close(other)
        current = self._iteration(loop, event, source)
        self._count(current, loop, event)
        if self.every or event["type"] not in (*FOLDED, "iteration"):
            before = source or "idle"
            current.rows.append(_row(event, before, loop.status))
            self._held += 1
        if loop.status in FINAL:
            self._close(loop.id)
            del self._last[loop.id], self._spent[loop.id]
        elif loop.status not in ACTIVE and loop.id not in self._halted:
            self._halted.append(loop.id)
        if self._held > MOST_HELD:
            self._close(next(iter(self._open)))

    def finish(self) -> None:
        """Give the iterations that have not ended."""
        for loop_id in list(self._open):
            self._close(loop_id)

    def _iteration(self, loop: Loop, event: Event, source: str) -> Iteration:
        """Return the iteration of this event, after the time since the one before was counted."""
        current = self._open.get(loop.id)
        now = ms_of(event["ts"])
        passed = max(0, now - self._last.get(loop.id, now))
        self._last[loop.id] = now
        was_active = source in ACTIVE
        if current is not None:
            current.active_ms += passed if was_active else 0
            continues = not was_active and loop.status in ACTIVE
            if event["type"] != "iteration" and not continues:
                return current
            self._close(loop.id)
        begun = self._open[loop.id] = Iteration(loop, event)
        self._held += 1
        if not was_active:
            begun.idle_ms = passed
        elif current is None and begun.is_continued:
            begun.active_ms = passed
        return begun

    def _count(self, current: Iteration, loop: Loop, event: Event) -> None:
        kind = event["type"]
        if kind == "session":
            current.sessions[event["data"]["action"]] += 1
        if kind in ("start", "spend"):
            spent = _Spent(loop.spent_usd, loop.spent_tokens)
            before = self._spent.get(loop.id, spent)  # an imported loop starts with its costs
            current.usd += spent.usd - before.usd
            current.tokens += spent.tokens - before.tokens
            current.is_estimate |= event["data"].get("estimated", False)
            self._spent[loop.id] = spent

    def _close(self, loop_id: str) -> None:
        done = self._open.pop(loop_id)
        if loop_id in self._halted:
            self._halted.remove(loop_id)
        self._held -= len(done.rows) + 1
        self.give(done)


def _row(event: Event, source: str, dest: str) -> Row:
    facts = (event["seq"], event["ts"], event["by"], event["type"])
    return Row(*facts, what_changed(event), source, dest, evidence_against(event))

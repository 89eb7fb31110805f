"""List the loops that have ended."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.completion import proof_counts
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context
from gsd_fsm.history.replay import Advance, in_bulk, last_seq, reporting


class PastLoop(NamedTuple):
    """An ended loop with its outcome, times and costs; durations are in milliseconds."""

    loop: str
    kind: str
    status: str
    goal: str | None
    started: str
    ended: str
    duration_ms: int
    active_ms: int
    iterations: int
    rounds: int
    spent_usd: float
    is_estimate: bool
    spent_tokens: int
    proven: dict[str, int]
    claimed: dict[str, int]


class History(NamedTuple):
    """The last loops that ended, the latest first, and the number of all."""

    loops: list[PastLoop]
    total: int


def event_count(context: Context) -> int:
    """Return how many events `history` will read; 0 if unknown."""
    return last_seq(Journal(context.gsd))


def history(context: Context, limit: int = 0, advance: Advance = None) -> History:
    """Return at most `limit` ended loops (0: all), from the whole journal.

    The state holds only the loop that ended last. `advance` is called with the number of events
    that have been read.
    """
    journal = Journal(context.gsd)
    kept: deque[PastLoop] = deque(maxlen=limit or None)
    total = 0

    def reader(loops: Loops) -> Callable[[bytes], None]:
        fold = in_bulk(loops)
        seen: Loop | None = None

        def take(line: bytes) -> None:
            nonlocal seen, total
            fold(line)
            last = loops.last_ended()
            if last is not seen and last is not None:
                seen = last
                total += 1
                kept.append(_past(last))

        return take

    journal.read(reporting(reader, advance), hashlib.sha256)
    return History(list(reversed(kept)), total)


def _past(loop: Loop) -> PastLoop:
    started = loop.started or loop.first_ts
    proven, claimed = proof_counts(loop)
    return PastLoop(
        loop=loop.id,
        kind=loop.kind,
        status=loop.status,
        goal=loop.goal or loop.plan.title or None,
        started=started,
        ended=loop.last_event,
        duration_ms=max(0, ms_of(loop.last_event) - ms_of(started)),
        active_ms=loop.active_ms,
        iterations=loop.iteration,
        rounds=loop.round,
        spent_usd=loop.spent_usd,
        is_estimate=loop.usage.is_estimate,
        spent_tokens=loop.spent_tokens,
        proven=proven,
        claimed=claimed,
    )

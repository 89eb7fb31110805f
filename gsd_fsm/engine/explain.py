"""Explain why a stop was allowed or blocked."""

from __future__ import annotations

from typing import Any, NamedTuple

from gsd_fsm.core.errors import GsdError, NotFound, UsageError
from gsd_fsm.core.hook.hook_log import LOG_NAME
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.syscalls import READ, close_directory, open_directory, open_regular
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.effects import unfinished
from gsd_fsm.history.replay import Replay
from gsd_fsm.history.timeline import DECISIONS, aftermath, explain_decision, follows, undecided


class Explanation(NamedTuple):
    """A decision (block, allow or none) with its code and its reason."""

    loop: str
    seq: int
    ts: str
    type: str
    decision: str
    code: str
    why: str


def explain(context: Context, seq: int | None = None) -> Explanation:
    """Return why the last stop, or that of event `seq`, was decided as it was."""
    replay = Replay(context.journal())
    search = _Search(seq)
    replay.run(search.see)
    search.settle(replay.loops)
    if seq is not None and seq > replay.loops.seq:
        raise UsageError(f"the journal ends at event {replay.loops.seq}", "Run: gsd-fsm replay")
    found = search.found.get(context.loop_or_last(replay.loops).id if seq is None else None)
    log = _hook_log(replay.journal.path)
    if found is None:
        hint = undecided(log, "").strip() or "Run: gsd-fsm status"
        raise NotFound("no stop of this loop was decided yet", hint)
    context.notices += unfinished(context, replay.loops)
    event = found.event
    replay.run(at=event["seq"])
    if event["loop"] not in replay.loops.by_id:
        raise UsageError(f"event {seq} belongs to no loop", "Run: gsd-fsm replay")
    loop = replay.loops.by_id[event["loop"]]
    decision, code, why = explain_decision(event, loop, found.source)
    why += aftermath(event, found.later)
    if seq is None:
        why += undecided(log, event["ts"])
    return Explanation(loop.id, event["seq"], event["ts"], event["type"], decision, code, why)


class _Found:
    """An event, the status of its loop before it, and the event that shows its aftermath."""

    def __init__(self, event: Any, source: str) -> None:
        self.event = event
        self.source = source
        self.later: Any = None


class _Search:
    """Find the last decision about each loop, or the event with a number (under None)."""

    def __init__(self, seq: int | None) -> None:
        self.found: dict[str | None, _Found] = {}
        self._seq = seq
        self._pending: _Found | None = None

    def see(self, event: Any, loops: Loops) -> None:
        self.settle(loops)
        known = self.found.get(event["loop"] if self._seq is None else None)
        if known is not None and known.later is None and follows(known.event, event):
            known.later = event
        if self._seq in (None, event["seq"]):
            before = loops.by_id.get(event["loop"])
            self._pending = _Found(event, before.status if before else "idle")

    def settle(self, loops: Loops) -> None:
        """Judge the pending event: whether it paused its loop is seen only after it was folded."""
        found, self._pending = self._pending, None
        if found is None:
            return
        loop = loops.by_id.get(found.event["loop"])
        paused = loop is not None and loop.status == "paused" and found.source != "paused"
        if self._seq is not None:
            self.found[None] = found
        elif found.event["type"] in DECISIONS or paused:
            self.found[found.event["loop"]] = found


def _hook_log(gsd: str) -> str:
    """Return the hook log, or "" if it cannot be read."""
    try:
        directory = open_directory(gsd)
        try:
            with open(open_regular(directory, LOG_NAME, READ), "rb") as file:
                return file.read(1 << 20).decode("ascii", "replace")
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return ""

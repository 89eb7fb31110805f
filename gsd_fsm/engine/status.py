"""Read the state of a loop, and explain why a stop was allowed or blocked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from gsd_fsm.core.errors import GsdError, NotFound, UsageError
from gsd_fsm.core.hook.hook_log import LOG_NAME
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import ACTIVE, Loop
from gsd_fsm.core.syscalls import READ, close_directory, open_directory, open_regular
from gsd_fsm.core.trust import is_registered
from gsd_fsm.engine.context import Context
from gsd_fsm.projections import status_view

# The exit code of `status --check`, by status.
CHECK_CODES = {
    "completed": 0,
    **dict.fromkeys(ACTIVE, 10),
    "waiting": 11,
    "paused": 12,
    "cancelled": 13,
}


@dataclass(frozen=True)
class Status:
    """A loop with its view for scripts; whether its journal is trusted and the hook enabled."""

    loop: Loop
    view: dict[str, Any]
    is_trusted: bool
    is_stopped: bool


def status(context: Context) -> Status:
    """Return the state of the selected loop, or else of the one that ended last."""
    journal, loops = context.read()
    loop = context.loop_or_last(loops)
    return Status(
        loop,
        status_view(loop, f"{loops.seq}:{journal.at.sum}"),
        is_registered(loops.journal_id, journal.path),
        os.path.lexists(os.path.join(journal.path, "STOP")),
    )


@dataclass(frozen=True)
class Explanation:
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
    from gsd_fsm.replay import Replay
    from gsd_fsm.timeline import aftermath, explain_decision, follows, undecided

    replay = Replay(context.journal())
    replay.run()
    if seq is not None and seq > replay.loops.seq:
        raise UsageError(f"the journal ends at event {replay.loops.seq}", "Run: gsd-fsm replay")
    loop_id = context.loop_or_last(replay.loops).id if seq is None else None
    search = _Search(seq, loop_id)
    replay.run(search.see)
    search.settle(replay.loops)
    log = _hook_log(replay.journal.path)
    if search.found is None:
        hint = undecided(log, "").strip() or "Run: gsd-fsm status"
        raise NotFound("no stop of this loop was decided yet", hint)
    event, source = search.found
    later: list[Any] = []
    replay.run(lambda other, _loops: later.append(other) if follows(event, other) else None)
    replay.run(at=event["seq"])
    if event["loop"] not in replay.loops.by_id:
        raise UsageError(f"event {seq} belongs to no loop", "Run: gsd-fsm replay")
    decision, code, why = explain_decision(event, replay.loops.by_id[event["loop"]], source)
    why += aftermath(event, later[0] if later else None)
    if seq is None:
        why += undecided(log, event["ts"])
    return Explanation(event["loop"], event["seq"], event["ts"], event["type"], decision, code, why)


class _Search:
    """Find the last decision about a loop, or the event with a number."""

    def __init__(self, seq: int | None, loop_id: str | None) -> None:
        self.found: tuple[Any, str] | None = None
        self._seq = seq
        self._loop_id = loop_id
        self._pending: tuple[Any, str] | None = None

    def see(self, event: Any, loops: Loops) -> None:
        self.settle(loops)
        before = loops.by_id.get(event["loop"])
        if event["seq"] == self._seq or (self._seq is None and event["loop"] == self._loop_id):
            self._pending = (event, before.status if before else "idle")

    def settle(self, loops: Loops) -> None:
        """Judge the pending event: whether it paused its loop is seen only after it was folded."""
        from gsd_fsm.timeline import DECISIONS

        if self._pending is None:
            return
        event, source = self._pending
        self._pending = None
        loop = loops.by_id.get(event["loop"])
        paused = loop is not None and loop.status == "paused" and source != "paused"
        if event["type"] in DECISIONS or paused or event["seq"] == self._seq:
            self.found = (event, source)


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

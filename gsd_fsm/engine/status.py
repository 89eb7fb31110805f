"""Read the state of a loop, and explain why a stop was allowed or blocked."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from gsd_fsm.core.errors import GsdError, NotFound, UsageError
from gsd_fsm.core.hook.hook_log import LOG_NAME
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.records import Criterion, Gap, Task
from gsd_fsm.core.loop.state import ACTIVE, Loop, open_gaps
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.syscalls import READ, close_directory, open_directory, open_regular
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.trust import is_registered
from gsd_fsm.core.views.state_md import history_line
from gsd_fsm.engine.context import Context, head_of
from gsd_fsm.engine.effects import unfinished

# The exit code of `status --check`, by status.
CHECK_CODES = {
    "completed": 0,
    **dict.fromkeys(ACTIVE, 10),
    "waiting": 11,
    "paused": 12,
    "cancelled": 13,
}


class Status(NamedTuple):
    """A loop with its view for scripts; whether its journal is trusted and the hook enabled."""

    loop: Loop
    view: dict[str, Any]
    is_trusted: bool
    is_stopped: bool


def status(context: Context) -> Status:
    """Return the state of the selected loop, or else of the one that ended last."""
    journal, loops = context.read()
    loop = context.loop_or_last(loops)
    context.notices += unfinished(context, loops, superseded=True)
    return Status(
        loop,
        status_view(loop, head_of(journal)),
        is_registered(loops.journal_id, journal.path),
        os.path.lexists(os.path.join(journal.path, "STOP")),
    )


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
    from gsd_fsm.replay import Replay
    from gsd_fsm.timeline import aftermath, explain_decision, undecided

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
        from gsd_fsm.timeline import follows

        self.settle(loops)
        known = self.found.get(event["loop"] if self._seq is None else None)
        if known is not None and known.later is None and follows(known.event, event):
            known.later = event
        if self._seq in (None, event["seq"]):
            before = loops.by_id.get(event["loop"])
            self._pending = _Found(event, before.status if before else "idle")

    def settle(self, loops: Loops) -> None:
        """Judge the pending event: whether it paused its loop is seen only after it was folded."""
        from gsd_fsm.timeline import DECISIONS

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


def status_view(loop: Loop, head: str) -> dict[str, Any]:
    """Everything a script may ask about a loop; absent things are null or empty, never missing."""
    sentence, command = next_step(loop)
    tasks = [_task(task) for task in loop.tasks.values()]
    return {
        "loop": loop.id,
        "kind": loop.kind,
        "status": loop.status,
        "mode": loop.mode,
        "goal": loop.goal,
        "phase": loop.phase,
        "wave": current_wave(loop),
        "round": loop.round,
        "iteration": loop.iteration,
        "max_iterations": loop.limits.max_iterations,
        "last_iteration": loop.last_iteration,
        "task_retries": {name: task.retries for name, task in loop.tasks.items()},
        "tasks": tasks,
        "background_tasks": [
            {"task_id": task.ref, "task_num": task.id, "status": "running"}
            for task in loop.tasks.values()
            if task.ref and task.status == "running"
        ],
        "steps": [
            {"step": task.title, "id": task.id, "status": task.status}
            for task in loop.tasks.values()
            if task.step
        ],
        "gaps": [_gap(gap) for gap in loop.gaps.values()],
        "gaps_remaining": len(open_gaps(loop)),
        "criteria": [_criterion(criterion) for criterion in loop.criteria.values()],
        "last_unmet": loop.last_unmet,
        "exit_signal": loop.exit_signal,
        "stuck": loop.stuck,
        "idle": loop.idle,
        "last_error": loop.last_error,
        "started": loop.started,
        "last_event": loop.last_event,
        "pause_code": loop.pause_code,
        "pause_reason": loop.pause_reason,
        "owner": loop.owner,
        "stage": loop.stage,
        "spec_score": loop.spec_score,
        "fit_score": loop.fit_score,
        "shape": loop.shape,
        "reviews": {name: review.facts() for name, review in loop.reviews.items()},
        "spent_usd": loop.spent_usd,
        "budget_usd": loop.limits.budget_usd,
        "history": [history_line(change) for change in loop.history],
        "head": head,
        "next": f"{sentence} Run: {command}",
    }


def _criterion(criterion: Criterion) -> dict[str, Any]:
    shown = ("name", "check", "met", "stale", "evidence")
    return {name: getattr(criterion, name) for name in shown}


def _gap(gap: Gap) -> dict[str, Any]:
    shown = ("id", "kind", "file", "description", "evidence", "reopened", "round", "status")
    return {name: getattr(gap, name) for name in shown}


def _task(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "title": task.title,
        "status": task.status,
        "wave": task.wave,
        "depends": list(task.depends),
        "retries": task.retries,
        "phase": task.phase,
        "attempts": task.attempts,
        "ref": task.ref,
        "commit": task.commit,
        "errors": [error.text for error in task.errors],
    }

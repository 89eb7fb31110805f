"""Read the state of a loop."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from gsd_fsm.core.loop.records import Criterion, Gap, Task
from gsd_fsm.core.loop.state import ACTIVE, Loop, open_gaps
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.project import is_registered
from gsd_fsm.core.text.next_step import next_step
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

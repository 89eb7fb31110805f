"""Limit what a loop may hold, so that the hook can decide every stop in time.

These are rules: they are checked when an event is appended, never when a journal is read.
"""

from __future__ import annotations

from gsd_fsm.core.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import (
        CheckpointData,
        Event,
        GapData,
        NoteData,
        ReviewData,
        StartData,
        TaskData,
    )
    from gsd_fsm.core.loop.state import Loop

MOST_TASKS = 25_000
MOST_DEPENDENCIES = 1_000  # of one task
MOST_DEPENDENCIES_IN_ALL = 100_000
MOST_CRITERIA = 1_000
MOST_MUST_NOTS = 1_000
MOST_GAPS = 10_000
MOST_NOTES = 1_000  # not delivered yet
MOST_REVIEWS = 25_000
MOST_CHECKPOINTS = 10_000
MOST_LIVE_LOOPS = 1_000

_SPLIT = "Start another loop for the rest."


def _require(loop: Loop, what: str, count: int, most: int, hint: str = _SPLIT) -> None:
    if count > most:
        raise Refused("loop %s may have at most %s %s" % (loop.id, _digits(most), what), hint)


def _digits(number: int) -> str:
    return "{:,}".format(number)


def require_room_for_loop(loop: Loop, event: Event[StartData], loops: Loops) -> None:
    """Refuse another live loop beyond what a journal may hold."""
    if len(loops.live()) >= MOST_LIVE_LOOPS:
        raise Refused(
            "the journal already has %s live loops" % _digits(MOST_LIVE_LOOPS),
            "Cancel those that are no longer needed: gsd-fsm --loop ID cancel",
        )


def require_room_for_plan(loop: Loop, event: Event[Any], loops: Loops) -> None:
    """Refuse tasks, dependencies, criteria and must-nots beyond what a loop may hold."""
    data = event["data"]
    new_tasks, dependencies = 0, loop.dependency_count
    for spec in data.get("tasks", ()):
        task = loop.tasks.get(spec["id"])
        new_tasks += task is None
        if task is None or task.status == "pending":  # others keep what they have
            count = len(spec.get("depends", ()))
            _require_dependencies(loop, spec["id"], count)
            dependencies += count - (len(task.depends) if task is not None else 0)
    _require(loop, "tasks", len(loop.tasks) + new_tasks, MOST_TASKS)
    _require(loop, "dependencies in all", dependencies, MOST_DEPENDENCIES_IN_ALL)
    names = {spec["name"] for spec in data.get("criteria", ())}
    _require(loop, "criteria", len(names.union(loop.criteria)), MOST_CRITERIA)
    must_nots = len(loop.must_not.keys() | data.get("must_not", ()))
    _require(loop, "must-nots", must_nots, MOST_MUST_NOTS)


def require_room_for_task(loop: Loop, event: Event[TaskData], loops: Loops) -> None:
    """Refuse a new task, or new dependencies, beyond what a loop may hold."""
    data = event["data"]
    task = loop.tasks.get(data["task"])
    if task is None:
        _require(loop, "tasks", len(loop.tasks) + 1, MOST_TASKS)
    if "depends" in data:
        known = task.depends if task is not None else {}
        count = len(known.keys() | data["depends"])
        _require_dependencies(loop, data["task"], count)
        total = loop.dependency_count + count - len(known)
        _require(loop, "dependencies in all", total, MOST_DEPENDENCIES_IN_ALL)


def require_room_for_failed_task(loop: Loop, event: Event[Any], loops: Loops) -> None:
    """Refuse a failure of a new task beyond what a loop may hold."""
    if "task" in event["data"] and event["data"]["task"] not in loop.tasks:
        _require(loop, "tasks", len(loop.tasks) + 1, MOST_TASKS)


def _require_dependencies(loop: Loop, task_id: str, count: int) -> None:
    what = "dependencies of one task, and task %s has more" % task_id
    hint = "Remove some of its dependencies."
    _require(loop, what, count, MOST_DEPENDENCIES, hint)


def require_room_for_gap(loop: Loop, event: Event[GapData], loops: Loops) -> None:
    """Refuse a new gap beyond what a loop may hold."""
    if event["data"]["gap"] not in loop.gaps:
        hint = "Fix the recorded gaps, then verify in another loop."
        _require(loop, "gaps", len(loop.gaps) + 1, MOST_GAPS, hint)


def require_room_for_note(loop: Loop, event: Event[NoteData], loops: Loops) -> None:
    """Refuse a note while too many others wait for the agent."""
    if event["data"].get("kind") != "recall":
        hint = "Wait until the agent has read some of them: each block delivers the oldest."
        _require(loop, "undelivered notes", len(loop.notes) + 1, MOST_NOTES, hint)


def require_room_for_review(loop: Loop, event: Event[ReviewData], loops: Loops) -> None:
    """Refuse the review of another wave beyond what a loop may hold."""
    if "wave_%d" % event["data"].get("wave", 0) not in loop.reviews:
        _require(loop, "reviews", len(loop.reviews) + 1, MOST_REVIEWS)


def require_room_for_checkpoint(loop: Loop, event: Event[CheckpointData], loops: Loops) -> None:
    """Refuse a new checkpoint beyond what a loop may hold."""
    if event["data"]["name"] not in loop.checkpoints:
        _require(loop, "checkpoints", len(loop.checkpoints) + 1, MOST_CHECKPOINTS)

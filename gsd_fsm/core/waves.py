"""Waves: which tasks of a plan can start now, and which are under way."""

from __future__ import annotations

from gsd_fsm.core.loop import current_wave, open_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop import Loop


def running_tasks(loop: Loop) -> list[str]:
    return [task_id for task_id in open_tasks(loop) if loop.tasks[task_id]["status"] == "running"]


def ready_tasks(loop: Loop) -> list[str]:
    """The tasks of the current wave that can start now; of a sequential wave at most one."""
    wave = current_wave(loop)
    unfinished = open_tasks(loop)
    left = set(unfinished)
    ready = []
    for task_id in unfinished:
        task = loop.tasks[task_id]
        if task["wave"] != wave and task["wave"]:
            continue
        undecided = task["status"] == "checkpoint" and task["answer"] is None
        can_start = task["status"] != "running" and not undecided
        if can_start and not left.intersection(task["depends"]):
            ready.append(task_id)
        if wave in (loop.plan or {}).get("sequential", ()):
            break  # one at a time: the first that is not done
    return ready

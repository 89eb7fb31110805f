"""Waves: which tasks of a plan can start now, and which are under way."""

from __future__ import annotations

from gsd_fsm.core.loop import current_wave, open_gaps, open_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop


def find_circle(depends: dict[str, Any]) -> list[str]:
    """The tasks that can never start because they wait for each other."""
    left = {
        task_id: {name for name in names if name in depends} for task_id, names in depends.items()
    }
    while True:
        free = [task_id for task_id, names in left.items() if not names & left.keys()]
        if not free:
            return list(left)
        for task_id in free:
            del left[task_id]


def lay_waves(tasks: dict[str, dict[str, Any]]) -> None:
    """Give each task the wave after those that it depends on, where any task depends on another."""
    if not any(task["depends"] for task in tasks.values()):
        return
    left = dict(tasks)
    wave = 0
    while left:
        wave += 1
        free = [name for name, task in left.items() if not left.keys() & set(task["depends"])]
        for name in free or list(left):
            left.pop(name)["wave"] = wave


def running_tasks(loop: Loop) -> list[str]:
    return [task_id for task_id in open_tasks(loop) if loop.tasks[task_id]["status"] == "running"]


def retry_key(task: dict[str, Any]) -> str:
    """The name of the question whether this failed task is to be tried again."""
    return "retry:%s:%d" % (task["id"], task["errors"][-1]["seq"])


def is_undecided(loop: Loop, task: dict[str, Any]) -> bool:
    """Whether a human has a word to say before this task goes on."""
    if task["status"] == "checkpoint":
        return task["answer"] is None
    asks = loop.mode == "interactive" and task["status"] == "failed" and bool(task["errors"])
    return asks and retry_key(task) not in loop.decided


def ready_tasks(loop: Loop) -> list[str]:
    """The tasks of the current wave that can start now; of a sequential wave at most one."""
    wave = current_wave(loop)
    unfinished = open_tasks(loop)
    left = set(unfinished)
    ready = []
    busy = False
    for task_id in unfinished:
        task = loop.tasks[task_id]
        if task["wave"] != wave and task["wave"]:
            continue
        if task["status"] == "running" or is_undecided(loop, task):
            busy = True
        elif not left.intersection(task["depends"]):
            ready.append(task_id)
    if wave in (loop.plan or {}).get("sequential", ()):
        return [] if busy else ready[:1]
    return ready


def ready_gaps(loop: Loop) -> list[str]:
    """The open gaps whose fix can start now."""
    free = []
    for gap_id in open_gaps(loop):
        task = loop.tasks.get(gap_id)
        if task is None or not (task["status"] == "running" or is_undecided(loop, task)):
            free.append(gap_id)
    return free

"""Order tasks by their dependencies: cycles, waves, and the tasks that can start now."""

from __future__ import annotations

from gsd_fsm.core.loop.records import DONE
from gsd_fsm.core.loop.state import MAX_KEPT, current_wave, open_gaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping

    from gsd_fsm.core.loop.records import Task
    from gsd_fsm.core.loop.state import Loop


def find_cycle(depends: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the tasks that can never start because they wait for each other, in their order."""
    left = set(depends) - set(_in_order(depends))
    return [task_id for task_id in depends if task_id in left]


def _in_order(depends: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Return each task that can start once others are done, with its wave."""
    waiting: dict[str, int] = {}
    dependents: dict[str, list[str]] = {}
    for task_id, names in depends.items():
        known = [name for name in dict.fromkeys(names) if name in depends]
        waiting[task_id] = len(known)
        for name in known:
            dependents.setdefault(name, []).append(task_id)
    waves: dict[str, int] = {}
    wave = 1
    free = [task_id for task_id, count in waiting.items() if not count]
    while free:
        following = []
        for task_id in free:
            waves[task_id] = wave
            for name in dependents.get(task_id, ()):
                waiting[name] -= 1
                if not waiting[name]:
                    following.append(name)
        free = following
        wave += 1
    return waves


def lay_waves(loop: Loop) -> None:
    """Give each due task the wave after those that it depends on, if any depends on another.

    This is done late, because laying the waves at every new task would cost the square of their
    number. Tasks that were added after the waves became due do not take part.
    """
    due = list(loop.tasks.items())[: loop.waves_due]
    loop.waves_due = 0
    tasks = {name: task for name, task in due if task.condition is None}
    if not any(task.depends for task in tasks.values()):
        return
    waves = _in_order({name: task.depends for name, task in tasks.items()})
    last = max(waves.values(), default=0) + 1
    for name, task in tasks.items():
        task.wave = waves.get(name, last)  # only journals of other writers have cycles


class Dependencies:
    """The dependencies of a loop's tasks in both directions; more can be added."""

    __slots__ = ("dependents", "depends")

    def __init__(self, loop: Loop) -> None:
        self.depends = {name: task.depends for name, task in loop.tasks.items()}
        self.dependents: dict[str, list[str]] = {}
        for name, names in self.depends.items():
            for other in names:
                self.dependents.setdefault(other, []).append(name)

    def add(self, task_id: str, names: list[str]) -> None:
        """Let a task depend on these, too; the loop stays as it is."""
        self.depends[task_id] = {**self.depends.get(task_id, {}), **dict.fromkeys(names)}
        for name in names:
            self.dependents.setdefault(name, []).append(task_id)

    def waiting_for(self, task_id: str) -> set[str]:
        """Return the task and every other that waits for it, directly or through others."""
        found = {task_id}
        left = [task_id]
        while left:
            for name in self.dependents.get(left.pop(), ()):
                if name not in found:
                    found.add(name)
                    left.append(name)
        return found


def dependencies_of(loop: Loop, names: Iterable[str]) -> set[str]:
    """Return these tasks and all that they depend on, directly or through others."""
    found = set(names)
    left = list(found)
    while left:
        task = loop.tasks.get(left.pop())
        new = [name for name in task.depends if name not in found] if task is not None else ()
        found.update(new)
        left += new
    return found


def running_tasks(loop: Loop) -> list[str]:
    return [task_id for task_id, task in loop.tasks.items() if task.status == "running"]


def busy_tasks(loop: Loop) -> list[str]:
    """Return the tasks under way whose results are still due; a fix only while its gap is open."""
    running = running_tasks(loop)
    if loop.kind != "verify":
        return running
    return [name for name in running if name in loop.gaps and loop.gaps[name].is_open]


def can_start(loop: Loop, task: Task) -> bool:
    """Return whether everything that a task depends on is done; unknown tasks do not count."""
    return not task.depends or not any(
        name in loop.tasks and not loop.tasks[name].is_done for name in task.depends
    )


def retry_key(task: Task) -> str:
    """Return the key of the question whether to retry this failed task."""
    return "retry:%s:%d" % (task.id, task.errors[-1].seq)


def retry_keys(loop: Loop) -> list[str]:
    """Return the keys of the questions whether to retry what failed: the tasks, else the loop.

    Of many tasks only those that failed last: a loop remembers no more.
    """
    if not loop.failed and loop.errors:
        return [loop_retry_key(loop)]
    keys: list[str] = []
    for task_id in reversed(loop.failed):
        task = loop.tasks[task_id]
        if task.errors:
            keys.append(retry_key(task))
        if len(keys) == MAX_KEPT:
            break
    return keys[::-1]


def loop_retry_key(loop: Loop) -> str:
    return "retry:%d" % loop.errors[-1].seq


def is_undecided(loop: Loop, task: Task) -> bool:
    """Return whether the user must decide before this task continues."""
    if task.status == "checkpoint":
        return task.answer is None
    asks = loop.mode == "interactive" and task.status == "failed" and bool(task.errors)
    return asks and retry_key(task) not in loop.answered


def ready_tasks(loop: Loop) -> list[str]:
    """Return the tasks of the current wave that can start now; of a sequential wave at most one."""
    wave = current_wave(loop)
    ready = []
    busy = False
    for task_id, task in loop.tasks.items():
        status = task.status
        if status in DONE or (task.wave != wave and task.wave):
            continue
        if status == "running" or (status != "pending" and is_undecided(loop, task)):
            busy = True
        elif can_start(loop, task):
            ready.append(task_id)
    if wave in loop.plan.sequential:
        return [] if busy else ready[:1]
    return ready


def ready_gaps(loop: Loop) -> list[str]:
    """Return the open gaps whose fix can start now."""
    free = []
    for gap_id in open_gaps(loop):
        task = loop.tasks.get(gap_id)
        if task is None or not (task.status == "running" or is_undecided(loop, task)):
            free.append(gap_id)
    return free

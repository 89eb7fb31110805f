"""Order tasks by their dependencies: cycles, waves, and the tasks that can start now."""

from __future__ import annotations

from gsd_fsm.core.loop.records import DONE
from gsd_fsm.core.loop.state import MAX_KEPT, open_gaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping

    from gsd_fsm.core.loop.records import Task
    from gsd_fsm.core.loop.state import Loop


_UNDER_WAY = ("running", "reported")
_DUE = ("pending", "running", "checkpoint", "failed")


def find_cycle(depends: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a dependency cycle, each task before one that it depends on; [] if there is none."""
    left = set(depends) - set(start_order(depends))
    if not left:
        return []
    task_id = next(name for name in depends if name in left)
    path: dict[str, None] = {}
    while task_id not in path:
        path[task_id] = None
        task_id = next(name for name in depends[task_id] if name in left)
    cycle = list(path)[list(path).index(task_id) :]
    members = set(cycle)
    first = cycle.index(next(name for name in depends if name in members))
    return cycle[first:] + cycle[:first]


def start_order(depends: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Return each task that can start once others are done, with its wave, in that order."""
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
    waves = start_order({name: task.depends for name, task in tasks.items()})
    last = max(waves.values(), default=0) + 1
    for name, task in tasks.items():
        task.wave = waves.get(name, last)  # only journals of other writers have cycles


def current_wave(loop: Loop) -> int | None:
    """Return the first wave with an open task, else the last wave; None without waves."""
    if loop.waves_due:
        lay_waves(loop)
    first: int | None = None
    last: int | None = None
    for task in loop.tasks.values():
        wave = task.wave
        if not wave:
            continue
        if last is None or wave > last:
            last = wave
        if (first is None or wave < first) and task.status not in DONE:
            first = wave
    return last if first is None else first


class Dependencies:
    """The dependencies of a loop's tasks in both directions; more can be added."""

    __slots__ = ("_patience", "dependents", "depends")

    def __init__(self, loop: Loop) -> None:
        self.depends = {name: task.depends for name, task in loop.tasks.items()}
        self.dependents: dict[str, list[str]] = {}
        for name, names in self.depends.items():
            for other in names:
                self.dependents.setdefault(other, []).append(name)
        # How many dependencies may be followed to find out which new ones close a cycle.
        self._patience = 10_000 + 20 * (len(self.depends) + loop.dependency_count)

    def add(self, named: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
        """Add the dependencies that are new and close no cycle; return them by task.

        The loop stays as it is. If finding cycles takes too long, some are left for another time.
        """
        known: dict[str, Iterable[str]] = {**dict.fromkeys(named, ()), **self.depends}
        new = {
            task_id: [name for name in dict.fromkeys(names) if name not in known[task_id]]
            for task_id, names in named.items()
        }
        # Tasks that can start once others are done are in no cycle, and wait for none.
        free = start_order({name: (*names, *new.get(name, ())) for name, names in known.items()})
        for task_id, names in new.items():
            if names and task_id not in free:
                new[task_id] = self._without_cycles(task_id, names)
            self.depends[task_id] = dict.fromkeys((*known[task_id], *new[task_id]))
            for name in new[task_id]:
                self.dependents.setdefault(name, []).append(task_id)
        return new

    def _without_cycles(self, task_id: str, names: list[str]) -> list[str]:
        """Return those of `names` that do not wait for this task, directly or through others."""
        waiting = {task_id}
        left = [task_id]
        while left:
            dependents = self.dependents.get(left.pop(), ())
            self._patience -= len(dependents)
            if self._patience < 0:
                return []
            new = [name for name in dependents if name not in waiting]
            waiting.update(new)
            left += new
        return [name for name in names if name not in waiting]


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
    """Return the key of the question of whether to retry this failed task."""
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
        if status in _UNDER_WAY or task.skip or (status != "pending" and is_undecided(loop, task)):
            busy = True
        elif can_start(loop, task):
            ready.append(task_id)
    if wave in loop.plan.sequential:
        return [] if busy else ready[:1]
    return ready


def reported_tasks(loop: Loop) -> list[str]:
    """Return the tasks that are reported as complete and not settled yet."""
    return [name for name, task in loop.tasks.items() if task.status == "reported"]


def defers_commands(loop: Loop) -> list[str]:
    """Return the tasks whose results may still decide about the commands of reported ones.

    A command of a task in a parallel wave may depend on the work of the others.
    """
    wave = current_wave(loop)
    if wave in loop.plan.sequential:
        return []
    return [
        name
        for name, task in loop.tasks.items()
        if task.status in _DUE and (not task.wave or task.wave == wave) and can_start(loop, task)
    ]


def ready_gaps(loop: Loop) -> list[str]:
    """Return the open gaps whose fix can start now."""
    free = []
    for gap_id in open_gaps(loop):
        task = loop.tasks.get(gap_id)
        if task is None or not (task.status == "running" or is_undecided(loop, task)):
            free.append(gap_id)
    return free

"""Check that a plan is consistent, and order its tasks: every problem at once, with its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath, PureWindowsPath

from gsd_fsm.core.loop.limits import MOST_DEPENDENCIES, MOST_DEPENDENCIES_IN_ALL, MOST_TASKS
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.plans.plan import PlanDraft, Problem, TaskDraft, is_phase, task_name

_SHOWN = 10
MOST_CIRCLES = 20


def problems_of(draft: PlanDraft) -> list[Problem]:
    """Everything that keeps a loop from following this plan, in the order of the lines.

    Tasks that name no wave have one afterwards.
    """
    found = list(draft.problems)
    if draft.is_full:
        return [Problem(draft.tasks[-1].line, f"a plan has at most {MOST_TASKS:,} tasks")]
    if sum(len(task.depends) for task in draft.tasks) > MOST_DEPENDENCIES_IN_ALL:
        what = f"the tasks of a plan have at most {MOST_DEPENDENCIES_IN_ALL:,} dependencies in all"
        return [Problem(1, what)]
    if not draft.tasks and not found:
        what = "there is no task in this plan: neither a JSON object with tasks, nor a <task id=…>"
        found.append(Problem(1, what))
    if draft.phase is not None and not is_phase(draft.phase):
        found.append(Problem(1, f"{str(draft.phase)[:80]!r} is not a phase"))
    known: dict[str, TaskDraft] = {}
    for task in draft.tasks:
        found += _of_one(task)
        first = known.setdefault(task_name(task.number), task)
        if first is not task:
            what = f"task {task.number[:80]} stands at line {first.line} already"
            found.append(Problem(task.line, what))
    order, circles = in_order(
        {
            name: [other for other in map(task_name, task.depends) if other != name]
            for name, task in known.items()
        }
    )
    _give_waves([known[name] for name in order], known)
    circular = {
        pair for circle in circles for pair in zip(circle, circle[1:] + circle[:1], strict=True)
    }
    for task in draft.tasks:
        found += _of_dependencies(task, known, draft, circular)
    found += [_of_circle([known[name] for name in circle]) for circle in circles]
    return sorted(set(found))


def warnings_of(draft: PlanDraft) -> tuple[str, ...]:
    """What is odd about the plan, but keeps nobody from following it."""
    waves = {task.wave for task in draft.tasks if task.wave}
    real = {"task_count": len(draft.tasks), "wave_count": len(waves)}
    found = [
        f"{name} says {str(draft.counts[name])[:80]}, but there are {number}"
        for name, number in real.items()
        if draft.counts.get(name) not in (None, number, str(number))
    ]
    last = max((*waves, *draft.waves), default=0)
    empty = (str(number) for number in range(1, last + 1) if number not in waves)
    missing = ", ".join(islice(empty, _SHOWN))
    if missing:
        found.append(f"no task belongs to wave {missing}")
    return (*found, *_shared_files(draft))


def _shared_files(draft: PlanDraft) -> list[str]:
    """The files that tasks of one wave would change at the same time."""
    users: dict[tuple[int, str], list[str]] = {}
    for task in draft.tasks:
        if task.wave and not _is_sequential(task.wave, draft):
            for path in dict.fromkeys(file.path for file in task.files):
                users.setdefault((task.wave, path), []).append(task.number)
    return [
        f"tasks {', '.join(tasks[:_SHOWN])} of wave {wave} run at once, and all change {path}"
        for (wave, path), tasks in users.items()
        if len(tasks) > 1
    ]


def _of_one(task: TaskDraft) -> list[Problem]:
    called = f"task {task.number[:80]}" if task.number else "a task"
    found = []
    if not task.number:
        found.append("a task has no id")
    elif not is_id(task_name(task.number)):
        found.append(f"{task.number[:80]!r} is not the id of a task")
    if task.wave == 0:
        found.append(f"{called}: its wave is not a number above zero")
    for name, value in (("action", task.action), ("done", task.done)):
        if not value.strip():
            found.append(f"{called} has no <{name}>")
    if not task.checks:
        found.append(f"{called} has no check in <verify>")
    if len(task.depends) > MOST_DEPENDENCIES:
        found.append(f"{called} has more than {MOST_DEPENDENCIES:,} dependencies")
    found += [
        f"{called}: {path[:80]!r} is not a path inside the project"
        for path in (*(file.path for file in task.files), *task.test_files)
        if not _is_inside(path)
    ]
    return [Problem(task.line, what) for what in found]


def _is_inside(path: str) -> bool:
    if not path.isprintable() or not path or path.startswith("~"):
        return False
    kinds = (PurePosixPath(path), PureWindowsPath(path))
    return not any(kind.is_absolute() or kind.anchor or ".." in kind.parts for kind in kinds)


def _give_waves(order: list[TaskDraft], known: dict[str, TaskDraft]) -> None:
    """A task that names no wave comes after everything it depends on."""
    for task in order:
        if task.wave is None:
            before = [known.get(task_name(other)) for other in task.depends]
            task.wave = 1 + max((other.wave or 0 for other in before if other), default=0)


def _of_circle(circle: list[TaskDraft]) -> Problem:
    numbers = [task.number[:80] for task in circle]
    named = " → ".join([*numbers[:_SHOWN], *(["…"] if len(numbers) > _SHOWN else []), numbers[0]])
    return Problem(circle[0].line, f"tasks {named} wait for each other in a circle")


def _of_dependencies(
    task: TaskDraft,
    known: dict[str, TaskDraft],
    draft: PlanDraft,
    circular: set[tuple[str, str]],
) -> list[Problem]:
    called = task.number[:80]
    unknown = []
    found = []
    for number in task.depends:
        other = known.get(task_name(number))
        if other is None:
            unknown.append(number[:80])
        elif other is task:
            found.append(f"task {called} depends on itself")
        elif (task_name(task.number), task_name(number)) in circular or not task.wave:
            continue
        elif (other.wave or 0) > task.wave:
            found.append(
                f"task {called} of wave {task.wave} depends on "
                f"task {other.number[:80]} of wave {other.wave}"
            )
        elif other.wave == task.wave and not _is_sequential(task.wave, draft):
            found.append(
                f"tasks {called} and {other.number[:80]} are both in wave {task.wave}, "
                "which runs them at once, but one depends on the other"
            )
    if unknown:
        which = "which is" if len(unknown) == 1 else "which are"
        named = ", ".join(unknown[:_SHOWN])
        found.append(f"task {called} depends on {named}, {which} not in the plan")
    return [Problem(task.line, what) for what in found]


def _is_sequential(wave: int, draft: PlanDraft) -> bool:
    return wave in draft.waves and draft.waves[wave].sequential


def in_order(depends: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The tasks, each after all it depends on; and circles, each task before what it depends on.

    In a circle there is no such order; the first of them are named. Each circle begins with that
    one of its tasks that comes first.
    """
    place = {name: number for number, name in enumerate(depends)}
    done: dict[str, None] = {}
    circles: list[list[str]] = []
    for root in depends:
        if root in done:
            continue
        path: dict[str, Iterator[str]] = {root: iter(depends[root])}
        while path:
            name = next(reversed(path))
            for other in path[name]:
                if other in path:
                    if len(circles) < MOST_CIRCLES:
                        circles.append(_circle(list(path), other, place))
                elif other in depends and other not in done:
                    path[other] = iter(depends[other])
                    break
            else:
                del path[name]
                done[name] = None
    return list(done), circles


def _circle(path: list[str], start: str, place: dict[str, int]) -> list[str]:
    circle = path[path.index(start) :]
    first = circle.index(min(circle, key=place.__getitem__))
    return circle[first:] + circle[:first]

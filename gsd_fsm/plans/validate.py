"""Check that a loop can follow a plan, and give every task a wave."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath, PureWindowsPath

from gsd_fsm.core.loop.limits import MOST_DEPENDENCIES, MOST_DEPENDENCIES_IN_ALL, MOST_TASKS
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.loop.waves import find_cycle, start_order
from gsd_fsm.documents.shell import masking_part
from gsd_fsm.plans.phase_name import is_phase
from gsd_fsm.plans.plan import INVALID_WAVE, NO_WAVE, PlanDraft, PlanTask, Problem

_SHOWN = 10
_MOST_CYCLES = 20


def problems_of(draft: PlanDraft) -> list[Problem]:
    """Return everything that keeps a loop from following this plan, by line; call `give_waves` first."""
    found = list(draft.problems)
    if draft.is_full:
        return [Problem(draft.tasks[-1].line, f"a plan has at most {MOST_TASKS:,} tasks")]
    if sum(len(task.depends) for task in draft.tasks) > MOST_DEPENDENCIES_IN_ALL:
        return [Problem(1, f"a plan has at most {MOST_DEPENDENCIES_IN_ALL:,} dependencies")]
    if not draft.tasks and not found:
        found.append(Problem(1, "the plan has no tasks: neither JSON tasks nor <task id=…>"))
    if draft.phase is not None and not is_phase(draft.phase):
        found.append(Problem(1, f"{str(draft.phase)[:80]!r} is not a phase"))
    known: dict[str, PlanTask] = {}
    for task in draft.tasks:
        found += [Problem(task.line, what) for what in _problems_of_task(task)]
        first = known.setdefault(task.id, task)
        if first is not task:
            what = f"duplicate task {_name(task)}: first in line {first.line}"
            found.append(Problem(task.line, what))
    cycles = list(_cycles(known))
    edges = {edge for cycle in cycles for edge in zip(cycle, cycle[1:] + cycle[:1], strict=True)}
    for task in draft.tasks:
        problems = _problems_of_dependencies(task, known, draft, edges)
        found += [Problem(task.line, what) for what in problems]
    for cycle in cycles:
        shown = [*cycle[:_SHOWN], *(["…"] if len(cycle) > _SHOWN else []), cycle[0]]
        what = f"dependency cycle: {' → '.join(name[:80] for name in shown)}"
        found.append(Problem(known[cycle[0]].line, what))
    return sorted(set(found))


def give_waves(draft: PlanDraft) -> None:
    """Put each task without a wave after the tasks that it depends on."""
    depends = {task.id: task.depends for task in reversed(draft.tasks)}
    waves = {task.id: task.wave for task in reversed(draft.tasks)}
    for name in dict.fromkeys((*start_order(depends), *depends)):
        if waves[name] == NO_WAVE:
            waves[name] = 1 + max((0, *(waves.get(other, 0) for other in depends[name])))
    for at, task in enumerate(draft.tasks):
        if task.wave == NO_WAVE:
            draft.tasks[at] = task._replace(wave=waves[task.id])


def warnings_of(draft: PlanDraft) -> tuple[str, ...]:
    """Return what is odd about a plan that a loop can follow."""
    waves = {task.wave for task in draft.tasks}
    real = {"task_count": len(draft.tasks), "wave_count": len(waves)}
    found = [
        f"{name} is {str(draft.counts[name])[:80]}, but the plan has {number}"
        for name, number in real.items()
        if draft.counts.get(name) not in (None, number, str(number))
    ]
    last = max((*waves, *draft.waves), default=0)
    empty = (str(number) for number in range(1, last + 1) if number not in waves)
    missing = ", ".join(islice(empty, _SHOWN))
    if missing:
        found.append(f"no task belongs to wave {missing}")
    return (*found, *_shared_files(draft), *_masked_checks(draft))


def _masked_checks(draft: PlanDraft) -> Iterator[str]:
    """Yield a warning for each command that exits with 0 whatever happens."""
    for task in draft.tasks:
        for key, check in task.keyed_checks():
            part = masking_part(check.command) if check.command else None
            if part:
                yield f"check {key} (line {check.line}) cannot fail: {part!r} masks its exit code"


def _shared_files(draft: PlanDraft) -> list[str]:
    """Return a warning for each file that several tasks of a parallel wave change."""
    users: dict[tuple[int, str], list[str]] = {}
    for task in draft.tasks:
        if not _is_sequential(task.wave, draft):
            for path in dict.fromkeys(file.path for file in task.files):
                users.setdefault((task.wave, path), []).append(task.id)
    return [
        f"tasks {', '.join(tasks[:_SHOWN])} of wave {wave} run in parallel and change the same "
        f"file: {path}"
        for (wave, path), tasks in users.items()
        if len(tasks) > 1
    ]


def _name(task: PlanTask) -> str:
    return task.id[:80]


def _problems_of_task(task: PlanTask) -> Iterator[str]:
    name = f"task {_name(task)}" if task.id else "a task"
    if not task.id:
        yield "a task has no id"
    elif not is_id(task.id):
        yield f"{task.number[:80]!r} is not a task id"
    if task.wave == INVALID_WAVE:
        yield f"{name}: its wave is not a positive integer"
    for section, text in (("action", task.action), ("done", task.done)):
        if not text.strip():
            yield f"{name} has no <{section}>"
    if not task.checks:
        yield f"{name} has no check in <verify>"
    if len(task.depends) > MOST_DEPENDENCIES:
        yield f"{name} has more than {MOST_DEPENDENCIES:,} dependencies"
    for path in (*(file.path for file in task.files), *task.test_files):
        if not _is_inside(path):
            yield f"{name}: {path[:80]!r} is not a path inside the project"


def _is_inside(path: str) -> bool:
    if not path.isprintable() or not path or path.startswith("~"):
        return False
    kinds = (PurePosixPath(path), PureWindowsPath(path))
    return not any(kind.is_absolute() or kind.anchor or ".." in kind.parts for kind in kinds)


def _cycles(known: dict[str, PlanTask]) -> Iterator[list[str]]:
    """Yield cycles without common tasks; a task that depends on itself is not one."""
    depends = {
        name: [other for other in task.depends if other != name] for name, task in known.items()
    }
    for _ in range(_MOST_CYCLES):
        cycle = find_cycle(depends)
        if not cycle:
            return
        yield cycle
        for name in cycle:
            del depends[name]


def _problems_of_dependencies(
    task: PlanTask, known: dict[str, PlanTask], draft: PlanDraft, cyclic: set[tuple[str, str]]
) -> Iterator[str]:
    unknown = [name[:80] for name in task.depends if name not in known]
    if unknown:
        which = "which is" if len(unknown) == 1 else "which are"
        named = ", ".join(unknown[:_SHOWN])
        yield f"task {_name(task)} depends on {named}, {which} not in the plan"
    for name in task.depends:
        other = known.get(name)
        if name == task.id:
            yield f"task {_name(task)} depends on itself"
        elif other is None or (task.id, name) in cyclic or task.wave == INVALID_WAVE:
            continue
        elif other.wave > task.wave:
            yield (
                f"task {_name(task)} of wave {task.wave} depends on "
                f"task {_name(other)} of wave {other.wave}"
            )
        elif other.wave == task.wave and not _is_sequential(task.wave, draft):
            yield (
                f"task {_name(task)} depends on {_name(other)}, but both are in wave {task.wave}, "
                "which runs in parallel"
            )


def _is_sequential(wave: int, draft: PlanDraft) -> bool:
    return wave in draft.waves and draft.waves[wave].sequential

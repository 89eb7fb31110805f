"""How far another tool has come with the tasks of a phase, and which of that can be taken over.

A counter is a claim. A task that it counts is reported, not complete, if its commit is on the
branch, so that its checks decide; without the commit it is pending.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.git.messages import task_message, task_of
from gsd_fsm.imports.findings import Findings
from gsd_fsm.imports.members import shown
from gsd_fsm.plans.plan import task_numbers

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Repository
    from gsd_fsm.plans.phase_name import Phase
    from gsd_fsm.plans.plan import Plan

Facts = dict[str, dict[str, Any]]  # members of the specification of a task, by its id
_RECENT = "--max-count=1000"
_DIGITS = re.compile("T?0*([0-9]{1,9})", re.ASCII)
_LISTED = 10


class BackgroundTask(NamedTuple):
    """A task whose subagent was started; `path` is the member of the file that names the task."""

    path: str
    number: int | str
    reference: str
    status: str


class Position(NamedTuple):
    """The last task that is done, tasks under way, retries by task, and the wave."""

    counter: int
    background: list[BackgroundTask]
    retries: dict[str, int]
    wave: int | None


def task_facts(
    position: Position,
    phase: Phase | None,
    plan: Plan | None,
    repository: Repository | None,
    findings: Findings,
) -> Facts:
    """Return what an execute loop takes over of each task; without a plan, of those that are named.

    Report tasks that the plan does not have to `findings`, and note what is only claimed.
    """
    names = _Names(plan, position.retries)
    counted = list(filter(None, map(names.id_of, range(1, position.counter + 1))))
    facts: Facts = {} if plan else {task_id: {} for task_id in counted}
    running = _running(position, names, findings)
    for task_id, fact in running.items():
        wave = {} if plan or position.wave is None else {"wave": position.wave}
        facts[task_id] = {**fact, **wave}
    for key, count in position.retries.items():
        task_id = names.id_of(key)
        if not task_id:
            findings.problem(f"loop.task_retries.{key}: the plan has no such task")
        elif count or not plan:
            facts[task_id] = {**facts.get(task_id, {}), "retries": count}
    if plan and position.counter > len(plan.tasks):
        findings.problem(f"task must be at most {len(plan.tasks)}, the tasks of the plan")
    commits = _commits(phase, names, repository)
    done = [task_id for task_id in counted if task_id not in running]
    for task_id in done:
        if task_id in commits:
            found = {"status": "reported", "commit": commits[task_id]}
            if names.is_tested(task_id):
                found["phase"] = "refactor"  # the other tool has seen its tests fail first
            facts[task_id] = {**facts.get(task_id, {}), **found}
    missing = [task_id for task_id in done if task_id not in commits]
    if missing:
        form = task_message("feat", phase, missing[0].removeprefix("T"), "…")
        where = "is on this branch" if repository else "can be found without a git repository"
        findings.note(
            f"No commit such as '{form}' {where}, so these tasks are pending, although the file "
            f"counts them: {_listed(missing)}."
        )
    if len(missing) < len(done):
        reported = _listed([task_id for task_id in done if task_id in commits])
        findings.note(f"Reported with their commits: {reported}. To prove them, run: gsd-fsm check")
    known = {*done, *running}
    ahead = [task_id for task_id in commits if plan and task_id not in known]
    if ahead:
        findings.note(f"Not counted by the file, so pending despite a commit: {_listed(ahead)}.")
    return facts


class _Names:
    """The ids of tasks by their numbers; without a plan, numbers become ids such as T01."""

    def __init__(self, plan: Plan | None, named: dict[str, int]) -> None:
        self.plan = plan
        numbers = {name: int(it[1]) for name in named if (it := _DIGITS.fullmatch(name))}
        if plan is not None:
            numbers = task_numbers(task.id for task in plan.tasks)
        self._by_number = {number: name for name, number in numbers.items()}

    def id_of(self, name: int | str) -> str:
        """Return the id of the task with this name or number, "" if there is none."""
        if isinstance(name, str):
            task = self.plan.task(name) if self.plan else None
            digits = _DIGITS.fullmatch(name)
            if task is not None or digits is None:
                return task.id if task else name if not self.plan and is_id(name) else ""
            name = int(digits[1])
        found = self._by_number.get(name, "")
        return found if found or self.plan else f"T{name:02}"

    def is_tested(self, task_id: str) -> bool:
        """Return whether the plan wants the tests of this task to be written first."""
        task = self.plan.task(task_id) if self.plan else None
        return task is not None and task.test_required != "false"


def _running(position: Position, names: _Names, findings: Findings) -> Facts:
    """Return the tasks whose subagents were started, with the reference to poll."""
    facts: Facts = {}
    for task in position.background:
        task_id = names.id_of(task.number)
        if not task_id:
            findings.problem(f"{task.path}: the plan has no task {shown(task.number)}")
            continue
        facts[task_id] = {"status": "running", "ref": task.reference}
        has_ended = "" if task.status == "running" else f" ({task.status})"
        findings.note(
            f"{task_id} is under way as {task.reference}{has_ended}. Get its result (TaskOutput), "
            f"then run: gsd-fsm report {task_id}"
        )
    return facts


def _commits(phase: Phase | None, names: _Names, repository: Repository | None) -> dict[str, str]:
    """Return the latest commit of each task, by the form of its message."""
    head = repository.head() if repository else None
    found: dict[str, str] = {}
    for commit in repository.commits(_RECENT, head) if repository and head else ():
        number = task_of(commit.subject, phase)
        task_id = names.id_of(number) if number else ""
        if task_id:
            found.setdefault(task_id, commit.id)
    return found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more

"""A plan: waves of tasks, each with its checks; and the draft that a reader fills."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.loop.limits import MOST_TASKS
from gsd_fsm.plans.phase_name import Phase

NO_WAVE = -1  # of a task that names none; validation gives it one
INVALID_WAVE = 0
_NUMBER = re.compile("T([0-9]{1,9})", re.ASCII)


class Check(NamedTuple):
    """One way to see that a task is done: file, content, command, or manual."""

    kind: str
    text: str
    command: str | None
    line: int


class PlanFile(NamedTuple):
    path: str
    action: str


class PlanTask(NamedTuple):
    id: str
    number: str  # as the plan writes the id
    title: str
    wave: int
    depends: tuple[str, ...]
    files: tuple[PlanFile, ...]
    action: str
    libraries: tuple[str, ...]
    checks: tuple[Check, ...]
    done: str
    skills: tuple[str, ...]
    reqs: str
    test_required: str
    test_files: tuple[str, ...]
    commit_type: str
    line: int

    def keyed_checks(self) -> list[tuple[str, Check]]:
        """Return the checks, each with the key that results and messages name it by."""
        return [(f"{self.id}#{number}", check) for number, check in enumerate(self.checks, 1)]


class Wave(NamedTuple):
    number: int
    title: str
    sequential: bool


class Plan(NamedTuple):
    path: Path
    digest: str
    format: str
    phase: Phase | None
    title: str
    must_haves: tuple[str, ...]
    waves: tuple[Wave, ...]
    tasks: tuple[PlanTask, ...]
    estimated_tokens: str | None
    warnings: tuple[str, ...]

    def task(self, task_id: str) -> PlanTask | None:
        """Return the task of this id, which may be written as in the plan; None if unknown."""
        wanted = (task_id, task_name(task_id))
        return next((task for task in self.tasks if task.id in wanted), None)

    def tasks_by_id(self) -> dict[str, PlanTask]:
        return {task.id: task for task in self.tasks}


class Problem(NamedTuple):
    """What is wrong with a plan, and in which line."""

    line: int
    what: str


def task_name(number: str) -> str:
    """Return the id of a task in a loop: T01 for "01"; a name that starts with a letter stays."""
    return f"T{number}" if number[:1].isdigit() else number


def task_numbers(ids: Iterable[str]) -> dict[str, int]:
    """Return the number of each of these tasks of a plan: 1 for T01.

    If one of them has no number of its own, they are numbered in their order.
    """
    names = list(ids)
    found = [_NUMBER.fullmatch(name) for name in names]
    numbers = [int(it[1]) for it in found if it is not None]
    if len(set(numbers)) < len(names):
        numbers = list(range(1, len(names) + 1))
    return dict(zip(names, numbers, strict=True))


@dataclass
class PlanDraft:
    """What a reader has found; `problems` says what is wrong with it."""

    format: str
    phase: Phase | None = None
    title: str = ""
    must_haves: tuple[str, ...] = ()
    waves: dict[int, Wave] = field(default_factory=dict)
    tasks: list[PlanTask] = field(default_factory=list)
    estimated_tokens: str | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unknown: list[Problem] = field(default_factory=list)  # words that were once ignored

    def report(self, line: int, what: str) -> None:
        self.problems.append(Problem(line, what))

    def report_unknown(self, line: int, what: str) -> None:
        self.unknown.append(Problem(line, what))

    @property
    def is_full(self) -> bool:
        """Return whether there are more tasks than a plan may have, so that reading can stop."""
        return len(self.tasks) > MOST_TASKS

"""A plan: waves of tasks, each with what proves it done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


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
    number: str
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


class Wave(NamedTuple):
    number: int
    title: str
    sequential: bool


class Plan(NamedTuple):
    path: Path
    digest: str
    format: str
    phase: int | str | None
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
    """What is wrong with a plan, and where."""

    line: int
    what: str


def task_name(number: str) -> str:
    """The id of a task in a loop: '01' is T01, a name that starts with a letter stays."""
    return f"T{number}" if number[:1].isdigit() else number


def is_phase(phase: int | str) -> bool:
    """Whether this can name a phase: a number, or a plain word or two; never a path."""
    name = str(phase)
    return len(name) <= 100 and re.fullmatch(r"\w[\w.\- ]*", name) is not None and ".." not in name

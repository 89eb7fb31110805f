"""A plan: waves of tasks, each with its proof of completion; and the draft that readers fill."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.loop.limits import MOST_TASKS


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


@dataclass
class TaskDraft:
    """A wave of None is not said, one of 0 is no wave."""

    number: str
    line: int
    wave: int | None = None
    title: str = ""
    depends: tuple[str, ...] = ()
    files: tuple[PlanFile, ...] = ()
    action: str = ""
    libraries: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    done: str = ""
    skills: tuple[str, ...] = ()
    reqs: str = ""
    test_required: str = "false"
    test_files: tuple[str, ...] = ()
    commit_type: str = "feat"


@dataclass
class PlanDraft:
    format: str
    phase: int | str | None = None
    title: str = ""
    must_haves: tuple[str, ...] = ()
    waves: dict[int, Wave] = field(default_factory=dict)
    tasks: list[TaskDraft] = field(default_factory=list)
    estimated_tokens: str | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, line: int, what: str) -> None:
        self.problems.append(Problem(line, what))

    @property
    def is_full(self) -> bool:
        """Whether there are more tasks than a plan may have: nobody needs to read on."""
        return len(self.tasks) > MOST_TASKS

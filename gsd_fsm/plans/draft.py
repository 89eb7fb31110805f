"""A task and a plan as they were read, before anybody knows whether they hold together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gsd_fsm.core.loop.capacity import MOST_TASKS
from gsd_fsm.plans.plan import Check, PlanFile, Problem, Wave


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

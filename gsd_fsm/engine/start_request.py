"""Describe a loop that is to be started: the options of the caller over the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.records import LIMITS
from gsd_fsm.engine.choose_plan import phase_of
from gsd_fsm.engine.work_specs import criterion_specs, task_specs
from gsd_fsm.texts import whole

# limits whose setting, or member of a request, has another name
_SETTING_OF = {"max_retries": "execute_max_retries", "max_rounds": "verify_max_iterations"}
_REQUEST_OF = {"budget_usd": "budget"}


@dataclass(frozen=True)
class StartRequest:
    """The loop that a caller wants. None means that the settings decide."""

    kind: str
    goal: str | None = None
    phase: str | None = None
    plan: str | None = None
    mode: str | None = None
    max_iterations: int | None = None
    max_retries: int | None = None
    stuck_limit: int | None = None
    idle_limit: int | None = None
    budget: float | None = None
    max_minutes: float | None = None
    max_tokens: int | None = None
    criteria: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    shape_file: str | None = None
    task_list: str | None = None
    session_only: bool = False
    fresh: bool = False

    @property
    def has_own_work(self) -> bool:
        """Return whether the request names its work itself, so that no plan is looked for."""
        return self.kind == "goal" or bool(self.tasks or self.steps)


def described(request: StartRequest) -> dict[str, Any]:
    """Return the part of the `start` event that depends on the request alone."""
    kind, goal = request.kind, (request.goal or "").strip()
    if kind != "goal" and (request.shape_file or request.task_list):
        raise UsageError(
            "--shape-file and --task-list are for goal loops", "Run: gsd-fsm start goal --help"
        )
    if kind == "goal" and not goal:
        raise UsageError("a goal loop needs a goal", 'Run: gsd-fsm start goal "All tests pass"')
    data: dict[str, Any] = {"kind": kind}
    if goal:
        data["goal"] = whole(goal, "the goal")
    criteria = criterion_specs(request.criteria, request.checks)
    if criteria:
        data["criteria"] = criteria
    tasks = task_specs(request.tasks, request.steps, request.blocked_by)
    if tasks:
        data["tasks"] = tasks
    phase = phase_of(request.phase)
    if phase is not None:
        data["phase"] = phase
    if request.must_not:
        data["must_not"] = [whole(text, "a must-not", 2_000) for text in request.must_not]
    if request.session_only:
        data["session_only"] = True
    return data


def frozen_limits(settings: Mapping[str, Any], request: StartRequest, tasks: int) -> dict[str, Any]:
    """Return mode, auto_loop and limits of a loop: the request over the settings.

    `tasks` is the number of tasks that the default number of iterations depends on.
    """
    limits: dict[str, Any] = {}
    for name in LIMITS.members or ():
        wanted = getattr(request, _REQUEST_OF.get(name, name), None)
        limits[name] = settings[_SETTING_OF.get(name, name)] if wanted is None else wanted
    if limits["max_iterations"] is None:
        limits["max_iterations"] = max(20, 3 * tasks)
    return {
        "mode": request.mode or settings["mode"],
        "auto_loop": settings["auto_loop"],
        "limits": {name: value for name, value in limits.items() if value is not None},
    }


def frozen_goal_settings(settings: Mapping[str, Any], task_list: str | None) -> dict[str, Any]:
    """Return counsel, views and task list of a goal loop, those of them that are set."""
    frozen: dict[str, Any] = {}
    if settings["counsel"]:
        frozen["counsel"] = settings["counsel"]
    if settings["views"]:
        frozen["views"] = list(settings["views"])
    mirrored = task_list or settings["task_list"]
    if mirrored:
        frozen["task_list"] = whole(mirrored, "the name of a task list", 200)
    return frozen

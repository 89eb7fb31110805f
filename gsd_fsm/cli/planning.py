"""How a loop begins with a plan: which one, whether everything is there for it, and what is frozen."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.texts import whole

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan, PlanTask

Phase = int | str | None
# A line of the journal has its limit: a long list of tasks is spread over several events.
MOST_BYTES = 40_000


def phase_of(text: str | None) -> Phase:
    if text is None:
        return None
    return int(text) if text.isdecimal() and len(text) < 16 else whole(text, "the phase", 100)


def plan_file(start: Path, name: str) -> dict[str, Any]:
    """A plan that is only named, for a loop whose tasks are given by hand."""
    path = start / name
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} cannot be read: not a file", "--plan names a file")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "--plan names a file"
        ) from error
    return {"file": name, "digest": hashlib.sha256(content).hexdigest()[:16]}


def wanted_plan(
    kind: str, start: Path, name: str | None, project: Path, phase: Phase
) -> Plan | None:
    """The plan this loop is to follow: the named one, that of the phase, or that of the current phase."""
    from gsd_fsm.plans.find import find_plan
    from gsd_fsm.plans.load import load_plan

    if name is not None:
        return load_plan(start / name)
    if kind == "verify":
        with contextlib.suppress(NotFound):
            phase = _current(project) if phase is None else phase
            return None if phase is None else load_plan(find_plan(project, phase))
        return None
    if phase is None:
        phase = _current(project)
        if phase is None:
            _require_no_plans(project)
        return None if phase is None else load_plan(find_plan(project, phase))
    try:
        return load_plan(find_plan(project, phase))
    except NotFound:
        _require_state(project)
        raise


def _current(project: Path) -> Phase:
    """The phase that the project's own state names; NotFound where that state should be and is not."""
    from gsd_fsm.plans.find import current_phase, project_state

    if (project / ".opti-gsd").is_dir():
        project_state(project)
    return current_phase(project)


def _require_no_plans(project: Path) -> None:
    """A project that has plans means one of them, and it must be said which."""
    from gsd_fsm.plans.find import planning_root

    if (project / ".opti-gsd").is_dir() or (planning_root(project) / "plans").is_dir():
        raise UsageError(
            f"which phase? nothing in {planning_root(project)} tells the current one",
            "gsd-fsm start execute --phase N, or with tasks of your own: --task ID:TITLE",
        )


def _require_state(project: Path) -> None:
    """What must be there before a phase can be found, told first."""
    from gsd_fsm.plans.find import project_state

    if (project / ".opti-gsd").is_dir():
        project_state(project)
    elif not (project / ".gsd").is_dir():
        raise NotFound(
            f"Not Initialized: no .opti-gsd/ or .gsd/ directory found in {project}",
            "gsd-fsm start execute --plan FILE begins with a plan of yours; gsd-fsm init adds the hook",
        )


def frozen(plan: Plan, project: Path) -> dict[str, Any]:
    """What a loop keeps of its plan."""
    real = os.path.realpath(plan.path)
    inside = os.path.relpath(real, os.path.realpath(project))
    return {
        "file": real if inside.startswith("..") else inside.replace(os.sep, "/"),
        "digest": plan.digest,
        "format": plan.format,
        "title": whole(plan.title or "untitled", "the title of the plan", 500),
        "tasks": len(plan.tasks),
        "waves": len(plan.waves),
        "sequential": [wave.number for wave in plan.waves if wave.sequential],
    }


def portions(plan: Plan) -> list[list[dict[str, Any]]]:
    """The tasks of the plan as the journal keeps them, in lists that fit into one event each."""
    lists: list[list[dict[str, Any]]] = [[]]
    size = 0
    for task in plan.tasks:
        spec = _spec(task)
        size += len(dumps(spec)) + 1
        if size > MOST_BYTES:
            lists.append([])
            size = len(dumps(spec)) + 1
        lists[-1].append(spec)
    return lists


def _spec(task: PlanTask) -> dict[str, Any]:
    spec: dict[str, Any] = {"id": task.id, "wave": task.wave}
    if task.title:
        spec["title"] = whole(task.title[:200], "a title", 500)
    if task.depends:
        spec["depends"] = list(task.depends)
    if task.test_required == "true":
        spec["tests"] = True
    return spec


def accepted(plan: Plan, project: Path) -> list[dict[str, Any]]:
    """The data of the `plan` events that put this plan in the place of the frozen one."""
    kept = {name: value for name, value in frozen(plan, project).items() if name != "format"}
    kept["count"] = kept.pop("tasks")
    first, *more = portions(plan)
    return [{**kept, "changed": False, "tasks": first}, *({"tasks": specs} for specs in more)]

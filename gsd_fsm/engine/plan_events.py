"""Freeze a plan into the events of a loop."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import UsageError
from gsd_fsm.texts import whole

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan, PlanTask

# A line of the journal has its limit: a long list of tasks is spread over several events.
MOST_BYTES = 40_000


def named_plan(directory: Path, name: str) -> dict[str, Any]:
    """Return name and digest of a plan, for a loop whose tasks do not come from it."""
    path = directory / name
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} cannot be read: not a file", "--plan needs a regular file.")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "--plan needs a regular file."
        ) from error
    return {"file": name, "digest": hashlib.sha256(content).hexdigest()[:16]}


def frozen(plan: Plan, project: Path) -> dict[str, Any]:
    """Return what a loop keeps of its plan."""
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
    """Return the tasks of the plan, in lists that fit into one event each."""
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


def accepted_plan(plan: Plan, project: Path) -> list[dict[str, Any]]:
    """Return the data of the `plan` events that replace the frozen plan by this one."""
    kept = {name: value for name, value in frozen(plan, project).items() if name != "format"}
    kept["count"] = kept.pop("tasks")
    first, *more = portions(plan)
    return [{**kept, "changed": False, "tasks": first}, *({"tasks": specs} for specs in more)]

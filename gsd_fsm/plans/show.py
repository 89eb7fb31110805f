"""Show a plan: as lines, as JSON, and as a Mermaid diagram."""

from __future__ import annotations

from typing import Any

from gsd_fsm.core.text.sanitize import display
from gsd_fsm.plans.plan import Plan, PlanTask


def tasks_by_wave(plan: Plan) -> dict[int, list[PlanTask]]:
    found: dict[int, list[PlanTask]] = {wave.number: [] for wave in plan.waves}
    for task in plan.tasks:
        found[task.wave].append(task)
    return found


def plan_view(plan: Plan) -> dict[str, Any]:
    """Return everything that the plan says, wave by wave."""
    tasks = tasks_by_wave(plan)
    return {
        "file": str(plan.path),
        "digest": plan.digest,
        "format": plan.format,
        "phase": plan.phase,
        "title": plan.title,
        "must_haves": list(plan.must_haves),
        "waves": [
            {
                "wave": wave.number,
                "title": wave.title,
                "sequential": wave.sequential,
                "tasks": [_task(task) for task in tasks[wave.number]],
            }
            for wave in plan.waves
        ],
        "task_count": len(plan.tasks),
        "wave_count": len(plan.waves),
        "estimated_tokens": plan.estimated_tokens,
        "warnings": list(plan.warnings),
    }


def _task(task: PlanTask) -> dict[str, Any]:
    view = task._asdict()
    view["files"] = [file._asdict() for file in task.files]
    view["checks"] = [check._asdict() for check in task.checks]
    return view


def plan_lines(plan: Plan) -> list[str]:
    """Return the plan as lines for a terminal."""
    phase = "" if plan.phase is None else f"Phase {plan.phase}: "
    lines = [f"{phase}{plan.title or 'untitled'}", f"{plan.path} ({plan.format}, {plan.digest})"]
    lines += [f"  must have: {text}" for text in plan.must_haves]
    tasks = tasks_by_wave(plan)
    for wave in plan.waves:
        how = "sequential" if wave.sequential else "parallel"
        lines.append(f"Wave {wave.number} ({how}){f': {wave.title}' if wave.title else ''}")
        for task in tasks[wave.number]:
            lines += _task_lines(task)
    return lines + [f"warning: {text}" for text in plan.warnings]


def _task_lines(task: PlanTask) -> list[str]:
    after = f" after {', '.join(task.depends)}" if task.depends else ""
    tests = "" if task.test_required == "false" else f", tests: {task.test_required}"
    lines = [f"  {task.id} {task.title}{after}{tests}"]
    lines += [f"      {file.action or 'file'} {file.path}" for file in task.files]
    lines += [f"      check ({check.kind}) {check.text}" for check in task.checks]
    return [*lines, f"      done when {task.done}"]


def mermaid_of(plan: Plan) -> str:
    """Return a flow chart with a box for each wave; no text of the plan can leave its label."""
    node = {task.id: f"t{number}" for number, task in enumerate(plan.tasks, 1)}
    tasks = tasks_by_wave(plan)
    lines = ["flowchart LR"]
    for wave in plan.waves:
        how = " (sequential)" if wave.sequential else ""
        title = f": {wave.title}" if wave.title else ""
        label = _label(f"Wave {wave.number}{how}{title}")
        lines.append(f'    subgraph w{wave.number}["{label}"]')
        lines += [
            f'        {node[task.id]}["{_label(f"{task.id} {task.title}")}"]'
            for task in tasks[wave.number]
        ]
        lines.append("    end")
    lines += [
        f"    {node[before]} --> {node[task.id]}" for task in plan.tasks for before in task.depends
    ]
    return "\n".join(lines)


def _label(text: str) -> str:
    flat = display(" ".join(text.split())[:60])
    return "".join(
        sign if sign.isalnum() or sign in " .,-_/():" else f"#{ord(sign)};" for sign in flat
    )

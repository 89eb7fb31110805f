"""A plan as a Mermaid diagram: its waves, its tasks, and what waits for what."""

from __future__ import annotations

from gsd_fsm.core.text.sanitize import display
from gsd_fsm.plans.plan import Plan
from gsd_fsm.plans.view import tasks_by_wave


def mermaid_of(plan: Plan) -> str:
    """A flow chart, one box for each wave; no word of the plan can break out of its label."""
    node = {task.id: f"t{number}" for number, task in enumerate(plan.tasks, 1)}
    tasks = tasks_by_wave(plan)
    lines = ["flowchart LR"]
    for wave in plan.waves:
        how = " (one at a time)" if wave.sequential else ""
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

"""A phase that was carried out: its plan, its loop, and the project around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gsd_fsm.core.loop.state import Loop
from gsd_fsm.documents.files import Change, write_change
from gsd_fsm.phase.ending import plan_ending
from gsd_fsm.plans.plan import Plan, PlanTask
from tests.support.story import MINUTE, Story

NOW = "2026-11-16T08:00:00.000Z"
TITLES = ("Create hooks.json", "Create stop-hook.sh", "Extend the settings")
COMMITS = {"T01": "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", "T02": None, "T03": None}


def task_of(number: int, title: str) -> PlanTask:
    name = f"{number:02}"
    return PlanTask(
        f"T{name}", name, title, 1 if number < 3 else 2, (), (), title, (), (), "", (), "", "false",
        (), "feat", number,
    )  # fmt: skip


def plan_of(path: Path, *titles: str, **other: Any) -> Plan:
    tasks = tuple(task_of(n, title) for n, title in enumerate(titles or TITLES, 1))
    facts = Plan(path, "0" * 16, "markdown", 1, "Loop Mechanism", (), (), tasks, "45k", ())
    return facts._replace(**other)


def told(*titles: str, phase: Any = 1) -> Story:
    """A loop whose first task was retried, whose second was fixed, and whose third was skipped."""
    tasks = [{"id": f"T{n:02}", "title": title} for n, title in enumerate(titles or TITLES, 1)]
    story = Story("execute", tasks=tasks, phase=phase)
    story.fail("T01")
    for task in tasks[:-1]:
        story.task(task["id"], "running", _after=5 * MINUTE)
        story.task(task["id"], "complete", fixes=["add the missing import"][: task["id"] == "T02"])
    story("issue", text="the old hook leaks", severity="minor", task="T02")
    story("spend", tokens=45_300)
    story.task(tasks[-1]["id"], "skipped")
    return story


class Phase:
    """A project at the end of its phase."""

    def __init__(self, root: Path, planning: str = ".opti-gsd") -> None:
        self.root = root
        self.planning = root / planning
        self.folder = self.planning / "plans" / "phase-1"
        self.folder.mkdir(parents=True)
        self.plan = plan_of(self.folder / "plan.md")
        self.plan.path.write_text("# plan\n")
        self.loop: Loop = told().loop
        self.summary = self.folder / "summary.md"
        self.state = self.planning / ("state.json" if planning == ".opti-gsd" else "STATE.md")
        self.roadmap = self.planning / "roadmap.md"

    def changes(self, now: str = NOW, phase: Any = 1) -> list[Change]:
        return plan_ending(self.root, self.plan, self.loop, phase, COMMITS, now)

    def end(self) -> list[str]:
        """End the phase; the names of the files that changed."""
        changes = self.changes()
        for change in changes:
            write_change(change)
        return [change.path.name for change in changes]

    def everything(self) -> dict[str, bytes]:
        found = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

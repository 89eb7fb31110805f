"""Planned loops through the command line: their plans, and the reports of their subagents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.command_line import Here
from tests.support.planned import task_text

YOLO = ("start", "execute", "--phase", "1", "--mode", "yolo")
INTERACTIVE = (*YOLO[:-1], "interactive")
PLAN = (
    "---\nphase: 1\ntitle: Parts\n---\n"
    + task_text("01")
    + task_text("02")
    + "## Wave 2 (Sequential)\n"
    + task_text("03", 2)
    + task_text("04", 2, "01")
)
# The question before the first wave of this plan.
START_QUESTION = "Ready to execute Phase 1: Parts (4 tasks in 2 waves). Proceed?"


def write_plan(here: Here, text: str = PLAN, where: str = ".gsd/plans/phase-1/plan.md") -> Path:
    path = here.root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def start_plan(here: Here, *command: str, plan: str = PLAN, settings: str = "") -> Here:
    """Start a loop that follows a plan, in yolo mode unless another command is given."""
    write_plan(here, plan)
    if settings:
        (here.gsd / "config.toml").write_text(settings)
    here.ok(*(command or YOLO))
    return here


def ready(here: Here) -> list[str]:
    """Return the tasks or gaps that `next` offers."""
    return [item["id"] for item in here.ok("next", "--json").json["tasks"]]


def report(here: Here, task: str, output: str, code: int = 0, **how: Any) -> Any:
    """Report the output of a subagent; return the JSON answer."""
    answer = here.run("report", task, "--json", stdin=output.encode(), **how)
    assert answer.code == code, answer
    return answer.json


def report_complete(here: Here, *tasks: str) -> None:
    for task in tasks:
        report(here, task, "TASK COMPLETE\n")


def questions(here: Here) -> list[str]:
    """Return every question that the loop has asked."""
    return [event["data"]["question"] for event in here.lines() if event["type"] == "wait"]


def open_question(here: Here) -> str | None:
    """Return the question that the loop is waiting for, or None."""
    return questions(here)[-1] if here.status()["status"] == "waiting" else None


def task_state(here: Here, name: str = "T01") -> dict[str, Any]:
    return next(task for task in here.status()["tasks"] if task["id"] == name)

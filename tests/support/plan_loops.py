"""Loops that follow a plan: their plans, their start, and the reports of their subagents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context
from tests.support.command_line import Here
from tests.support.events import AGENT, write
from tests.support.plan_texts import task as task_text
from tests.support.repositories import git

YOLO = ("start", "execute", "--phase", "1", "--mode", "yolo")
INTERACTIVE = (*YOLO[:-1], "interactive")
TITLE = "---\nphase: 1\ntitle: Parts\n---\n"
THREE_TASKS = TITLE + task_text("01") + task_text("02") + task_text("03", 2)
PLAN = (
    TITLE + task_text("01") + task_text("02") + "## Wave 2 (Sequential)\n" + task_text("03", 2)
    + task_text("04", 2, "01")
)  # fmt: skip
# The question before the first wave of this plan.
START_QUESTION = "Ready to execute Phase 1: Parts (4 tasks in 2 waves). Proceed?"


def write_plan(here: Here, text: str = PLAN, where: str = ".gsd/plans/phase-1/plan.md") -> Path:
    return write(here.root / where, text)


def start_plan(here: Here, *command: str, plan: str = PLAN, settings: str = "", **how: Any) -> Here:
    """Start a loop that follows a plan, in yolo mode unless another command is given."""
    write_plan(here, plan)
    if settings:
        (here.gsd / "config.toml").write_text(settings)
    here.ok(*(command or YOLO), **how)
    return here


def start_planned(
    here: Here, mode: str = "yolo", settings: str = "", plan: str = THREE_TASKS
) -> Context:
    """Start a loop with this plan; return the context of its agent."""
    session = {"CLAUDE_CODE_SESSION_ID": "s-1"}
    start_plan(here, *YOLO[:-1], mode, plan=plan, settings=settings, env=session)
    return Context(here.root, author=AGENT)


def start_committing(here: Here, settings: str = "") -> Context:
    """Start a loop with the plan in a repository, in which the engine commits."""
    git(here.root, "init", "-q", "--template=")
    git(here.root, "commit", "-q", "--allow-empty", "-m", "first")
    for number in ("01", "02", "03"):
        (here.root / f"{number}.py").write_text(f"{number}\n")
    return start_planned(here, settings=f"commit = true\n{settings}")


def loop_of(context: Context) -> Loop:
    """Return the loop as a new reader of the journal sees it."""
    return context.loop(Journal(context.gsd).read())


def commits(here: Here) -> list[str]:
    """Return the subjects of all commits, the last one first."""
    return git(here.root, "log", "--format=%s").splitlines()


def tags(here: Here) -> dict[str, str]:
    """Return the commits of the checkpoints, by the last part of their tags."""
    form = "--format=%(refname:lstrip=-1) %(objectname)"
    lines = git(here.root, "for-each-ref", form, "refs/tags/gsd/checkpoint").splitlines()
    return dict(line.split(" ") for line in lines)


def ready(here: Here) -> list[str]:
    """Return the tasks or gaps that `next` offers."""
    return [item["id"] for item in here.ok("next", "--json").json["tasks"]]


def deliver(here: Here, *tasks: str) -> None:
    """Write the files that these tasks of the plan are to create."""
    for task in tasks:
        file = here.root / f"{task.removeprefix('T')}.py"
        if not file.exists():
            file.write_text(f"{task}\n")


def report(here: Here, task: str, output: str, code: int = 0, **how: Any) -> Any:
    """Report the output of a subagent, which has done its work if it says so; return the answer."""
    if "TASK COMPLETE" in output and code == 0:
        deliver(here, task)
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


TDD_TASK = """<task id="{id}" wave="1">
  <files><file>a.py</file><file>b.py</file><file>sub/c.py</file></files>
  <test_files><file>test_a.py</file></test_files>
  <test_required>{tests}</test_required>
  <action>Write it.</action>
  <verify><check type="file">a.py exists</check></verify>
  <done>It adds.</done>
</task>
"""
TDD_PLAN = (
    "---\nphase: 1\ntitle: Tests first\n---\n"
    + TDD_TASK.format(id="01", tests="true")
    + TDD_TASK.format(id="02", tests="existing")
    + TDD_TASK.format(id="03", tests="false")
)


def start_tdd(here: Here, test_command: str | None, more: str = "") -> Here:
    """Start a loop with the plan and one test file; `test_command` runs the tests."""
    (here.root / "test_a.py").write_text("a test\n")
    command = "" if test_command is None else f"ci_test = '{test_command}'\n"
    return start_plan(here, plan=TDD_PLAN, settings=command + more)

"""Verify loops with small plans, and results of checks that nobody ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gsd_fsm.evidence.interruption import Output
from gsd_fsm.evidence.shell import UNIX_SHELL
from gsd_fsm.plans.load import load_plan
from gsd_fsm.plans.plan import Plan
from gsd_fsm.verify.gaps import Result
from gsd_fsm.verify.run import run_plan_checks
from tests.support.command_line import Here
from tests.support.events import write
from tests.support.plan_texts import LOOP_MECHANISM

DOCUMENT = LOOP_MECHANISM
# The files that the tasks of that document create.
DONE = {
    "hooks/hooks.json": '{"hooks": {"Stop": [{"command": "bash hooks/stop-hook.sh"}]}}',
    "hooks/stop-hook.sh": '#!/usr/bin/env bash\necho \'{"decision": "allow"}\'',
    ".gsd/config.md": "loop:\n  execute_max_retries: 3\n  verify_max_iterations: 20\n",
    "commands/execute.md": "Step 7a task_retries previous_attempt Loop State Reference",
    "commands/verify.md": "Step 7a Gap-to-Task gaps_remaining Loop State Reference",
    ".gsd/STATE.md": "loop:\n  task_retries: {}\n  history: []\n",
    ".gsd/ROADMAP.md": "**Status:** PLANNED\n1. hooks/hooks.json\n",
}


def sh() -> str:
    return UNIX_SHELL


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        write(root / name, text)


def task(number: str, checks: list[tuple[str, str]], *files: str) -> str:
    """Return a task of a plan with these checks (type, text) and files."""
    listed = "".join(f'<file action="create">{name}</file>\n' for name in files)
    wanted = "".join(f'<check type="{kind}">{text}</check>\n' for kind, text in checks)
    return (
        f'<task id="{number}" wave="1">\n<files>\n{listed}</files>\n<action>Do it.</action>\n'
        f"<verify>\n{wanted}</verify>\n<done>Done.</done>\n</task>\n"
    )


def document(*tasks: str) -> str:
    head = "---\nphase: 1\ntitle: Small\n---\n\n# Phase 1: Small\n\n## Wave 1\n\n"
    return head + "\n".join(tasks)


def plan_of(root: Path, *tasks: str) -> Plan:
    return load_plan(write(root / "plan.md", document(*tasks)))


def probed(plan: Plan | None, root: Path, ci: dict[str, str] | None = None) -> dict[str, Result]:
    """Run all checks; return the results by key."""
    results = run_plan_checks(plan, root, ci or {}, 60, Output(), find_shell=sh)
    return {result.key: result for result in results}


def result(key: str = "T01#1", *, passed: bool | None = False, **more: Any) -> Result:
    """Return a result: by default that of a file check, or of a command for a CI key."""
    about = {"task": None, "kind": "command", "text": "make test", "file": None}
    if not key.startswith("ci:"):
        task = key.partition("#")[0]
        about = {"task": task, "kind": "file", "text": "a.py exists", "file": "a.py"}
    facts = {"evidence": "" if passed else "missing file: a.py", "seconds": 0.1, **more}
    return Result(key=key, passed=passed, **{**about, **facts})


FILE = task("01", [("file", "a.txt exists"), ("content", 'It says "yes"')], "a.txt")
PLACE = Path(".gsd/plans/phase-1")


def start_verify(here: Here, *tasks: str, mode: str = "yolo", **settings: str | int) -> str:
    """Start a verify loop of phase 1 with this plan; return its id."""
    lay(here.root, {f"{PLACE}/plan.md": document(*tasks)})
    if settings:
        here.configure(**settings)
    return here.start("verify", "--phase", "1", "--mode", mode)


def failed_round(here: Here, *args: str) -> Any:
    """Run a round that does not pass; return its JSON answer."""
    answer = here.run("verify", "--json", *args)
    assert answer.code == 7, answer
    return answer.json

"""start to complete: the loop plan, a phase of seven tasks, is executed and then verified."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_fsm.plans.load import load_plan
from tests.support.command_line import Here, git
from tests.support.hook_agent import Agent
from tests.support.repositories import git as output_of
from tests.support.verification import DOCUMENT, lay

ACTIONS = {f"T{task.id.lstrip('T')}": task.action for task in load_plan(DOCUMENT).tasks}
BEFORE = {
    ".gsd/config.md": "# Settings\n",
    ".gsd/config.toml": "commit = true\n",
    ".gsd/plans/phase-1/plan.md": DOCUMENT.read_text("utf-8"),
    ".gsd/ROADMAP.md": "### Phase 1: Loop Mechanism\n**Status:** DISCUSSED\n- [ ] Complete\n",
    "commands/execute.md": "# execute\n",
    "commands/verify.md": "# verify\n",
}


def fenced(name: str) -> str:
    """Return the first example of an action, without its indentation."""
    found = re.search(r"^( *)```\w*\n(.*?)^ *```$", ACTIONS[name], re.MULTILINE | re.DOTALL)
    assert found is not None
    return re.sub(rf"^{found[1]}", "", found[2], flags=re.MULTILINE)


# What the tasks do to their file: its path, and its new content after the old one.
WORK: dict[str, tuple[str, Callable[[str], str]]] = {
    "T01": ("hooks/hooks.json", lambda _: fenced("T01")),
    "T02": ("hooks/stop-hook.sh", lambda _: fenced("T02")),
    "T03": (".gsd/config.md", lambda text: text + f"```yaml\n{fenced('T03')}```\n"),
    "T04": ("commands/execute.md", lambda text: text + ACTIONS["T04"]),
    "T05": ("commands/verify.md", lambda text: text + ACTIONS["T05"] + "gaps_remaining\n"),
    "T06": (".gsd/STATE.md", lambda text: text + "\n## Session Context\nReady for execution.\n"),
    "T07": (
        ".gsd/ROADMAP.md",
        lambda text: text.replace("DISCUSSED", "PLANNED") + "\n### Components\n1. hooks.json\n",
    ),
}


@pytest.fixture
def agent(repository: Here, tmp_path: Path) -> Agent:
    lay(repository.root, BEFORE)
    for name, value in (("name", "T"), ("email", "t@example.org")):
        git(repository.root, "config", f"user.{name}", value)
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "-qm", "plan")
    return Agent(repository, tmp_path)


def do_task(agent: Agent, name: str) -> None:
    """Do a task as a subagent does: read its prompt, write its file, report it."""
    path, change = WORK[name]
    file = agent.here.root / path
    assert f'<file action="{"modify" if file.exists() else "create"}">{path}</file>' in (
        agent.here.ok("next", name, env=agent.shell).out
    )
    lay(agent.here.root, {path: change(file.read_text() if file.exists() else "")})
    answer = agent.here.ok("report", name, "--json", env=agent.shell, stdin=b"TASK COMPLETE\n")
    assert answer.json["verdict"] == "complete"


def decision_of_script(here: Here) -> str:
    """Return what the stop hook that the plan asks for decides by STATE.md."""
    command = ["bash", "hooks/stop-hook.sh"]
    done = subprocess.run(command, cwd=here.root, capture_output=True, check=True)
    return str(json.loads(done.stdout)["decision"])


def test_loop_plan_is_executed_in_waves_and_verified_until_no_gap_is_left(agent: Agent) -> None:
    here = agent.here
    here.start("execute", "--phase", "1", "--mode", "yolo", env=agent.shell)
    offered = []
    while tasks := here.ok("next", "--json", env=agent.shell).json["tasks"]:
        offered.append([task["id"] for task in tasks])
        assert f"Run: gsd-fsm --loop {here.status()['loop']} next" in agent.blocked()
        for task in tasks:
            do_task(agent, task["id"])
    assert offered == [["T01", "T02", "T03"], ["T04"], ["T05"], ["T06"], ["T07"]]
    assert decision_of_script(here) == "block"
    assert "complete" in agent.blocked()

    assert "**Tasks:** 7/7 completed" in here.ok("complete", env=agent.shell).out
    assert decision_of_script(here) == "allow"
    subjects = output_of(here.root, "log", "--format=%s").splitlines()
    assert [subject.partition(":")[0] for subject in subjects[:-2]] == [
        "docs", *(f"feat(1-0{number})" for number in range(7, 0, -1)),
    ]  # fmt: skip

    # Completion marks the phase COMPLETE in the roadmap, where the plan wants PLANNED.
    here.start("verify", "--phase", "1", "--mode", "yolo", env=agent.shell)
    answer = here.run("verify", "--json", env=agent.shell)
    assert (answer.code, answer.json["gaps"]) == (7, ["G1"])
    assert 'ROADMAP.md contains "PLANNED"' in agent.blocked()
    roadmap = here.root / ".gsd" / "ROADMAP.md"
    assert roadmap.name in here.ok("next", "G1", env=agent.shell).out
    roadmap.write_text(roadmap.read_text() + "\nPLANNED with 7 tasks.\n")
    here.ok("report", "G1", env=agent.shell, stdin=b"TASK COMPLETE\n")
    assert "fix(1-G1)" in output_of(here.root, "log", "-1", "--format=%s")

    found = here.ok("verify", "--json", env=agent.shell).json
    assert (found["passed"], found["status"]) == (True, "completed")
    assert [check["key"] for check in found["manual"]] == ["T02#4"]
    passed = {check["key"]: check["passed"] for check in found["checks"]}
    assert passed == dict.fromkeys(passed, True) | {"T02#4": None}
    assert len(passed) == 23
    report = (here.gsd / "plans" / "phase-1" / "VERIFICATION.md").read_text().replace("\\", "")
    for must_have in load_plan(DOCUMENT).must_haves:
        assert must_have in report

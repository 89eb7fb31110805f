"""`.opti-gsd/state.json` shows the loop that follows a plan beside it; everything else in it stays."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import A, B, Here, Project
from tests.support.hook_agent import Agent
from tests.support.phases import kill_after
from tests.support.plan_loops import (
    THREE_TASKS,
    TITLE,
    YOLO,
    deliver,
    report,
    report_complete,
    write_plan,
)
from tests.support.repositories import git, posix_only

FILE = ".opti-gsd/state.json"
PLAN = ".opti-gsd/plans/phase-1/plan.md"
MUST_HAVE = TITLE + "# Must-Haves\n- [ ] It works\n" + THREE_TASKS.removeprefix(TITLE)
BEFORE = """\
{ "milestone": "v1", "phase": 1,
\t"note": "é … \\u00e9", "phases_pending": [1,2] }
"""


def planned(here: Here, text: str = BEFORE, *command: str, plan: str = THREE_TASKS) -> Path:
    """Start a loop whose plan is beside this state; return the path of the state."""
    write_plan(here, plan, PLAN)
    path = here.root / FILE
    path.write_text(text)
    here.ok(*(command or YOLO))
    return path


def shown(path: Path, *names: str) -> list[Any]:
    """Return the task counter, and these members of the loop."""
    document = json.loads(path.read_text())
    return [document.get("task"), *(document["loop"][name] for name in names)]


def test_state_shows_every_step_of_an_execute_loop(here: Here, agent: Agent) -> None:
    path = planned(here)
    head, tail = BEFORE.removesuffix(" }\n"), path.read_text().removeprefix(BEFORE[:-3])
    assert path.read_text().startswith(head)
    assert tail.startswith(', "loop": {"active": true, "type": "execute", "phase": 1, "wave": 1, ')
    here.ok("task", "T01", "running", "--ref", "abc123")
    here.ok("task", "T02", "running", "--ref", "def456")
    running = [
        {"task_id": name, "task_num": number, "status": "running"}
        for number, name in enumerate(("abc123", "def456"), 1)
    ]
    names = ("wave", "background_tasks", "task_retries")
    assert shown(path, *names) == [None, 1, running, {"T01": 0, "T02": 0}]
    report_complete(here, "T02")  # its number counts only after that of T01
    assert shown(path, *names) == [None, 1, running[:1], {"T01": 0, "T02": 0}]
    report(here, "T01", "TASK FAILED: E1\n")
    assert shown(path, "task_retries", "last_error") == [None, {"T01": 1, "T02": 0}, "E1"]
    report_complete(here, "T01")
    assert shown(path, *names) == [2, 2, [], {"T01": 1, "T02": 0}]
    agent.do("resume")
    assert "iteration 1/" in agent.blocked()
    assert shown(path, "iteration") == [2, 0]  # the hook does not write the file
    here.ok("pause", "--reason", "lunch")
    names = ("active", "paused", "pause_reason", "iteration", "last_iteration")
    *facts, last = shown(path, *names)
    assert facts == [2, False, True, "lunch", 1]
    assert last == here.status()["last_iteration"]
    here.ok("resume")
    assert shown(path, *names[:3]) == [2, True, False, None]
    report_complete(here, "T03")
    here.ok("complete")
    document = json.loads(path.read_text())
    assert (document["task"], document["phases_complete"]) == (None, [1])
    assert (document["loop"]["active"], document["loop"]["task_retries"]) == (False, {})
    assert path.read_text().startswith(head.replace("[1,2]", "[2]"))


def test_state_shows_the_rounds_of_a_verify_loop_until_it_ends(repository: Here) -> None:
    deliver(repository, "T01", "T02")
    command = ("start", "verify", "--phase", "1", "--mode", "yolo")
    path = planned(repository, '{"task": 3, "phase": 1}', *command, plan=MUST_HAVE)
    assert repository.run("verify").code == 7
    assert shown(path, "active", "type", "iteration", "gaps_remaining") == [3, True, "verify", 1, 1]
    deliver(repository, "T03")
    repository.ok("verify")
    assert shown(path, "iteration", "gaps_remaining") == [3, 2, 0]
    # The file is not content that the round is about.
    repository.ok("verify", "--verdict", "MH1", "pass", "--evidence", "seen")
    repository.ok("complete")
    assert shown(path, "active", "type", "started") == [3, False, None, None]


@pytest.mark.parametrize("text", [None, "{}", '{"loop": null}'])
def test_state_is_never_created_and_a_missing_loop_is_added(here: Here, text: str | None) -> None:
    path = planned(here, text or "{}")
    if text is None:
        path.unlink()
        here.ok("task", "T01", "running")
        assert not path.exists()
    else:
        assert shown(path, "active", "phase", "started")[1:3] == [True, 1]
        assert "task" not in json.loads(path.read_text())  # it would be that of no phase


def test_state_is_left_alone_by_loops_of_other_plans_and_goals(here: Here) -> None:
    path = here.root / FILE
    write_plan(here, THREE_TASKS, PLAN)
    path.write_text(BEFORE)
    write_plan(here, THREE_TASKS, "mine.md")
    for command in (("execute", "--plan", "mine.md"), ("goal", "g"), ("execute", "--task", "T1")):
        here.start(*command, "--fresh")
        here.ok("pause")
        assert path.read_text() == BEFORE


def test_state_of_a_cancelled_loop_is_reset_and_keeps_its_counter(here: Here) -> None:
    path = planned(here)
    report_complete(here, "T01")
    here.ok("cancel")
    assert shown(path, "active", "type", "started", "task_retries") == [1, False, None, None, {}]
    text = path.read_text()
    here.ok("start", "goal", "g")
    assert path.read_text() == text


def test_state_shows_the_loop_that_started_last_and_then_the_other(here: Here) -> None:
    path = planned(here)
    first = here.status()["loop"]
    here.ok("resume", env=A)
    second = here.start("verify", "--phase", "1", env=B)
    for name in ("T01", "T02", "T03"):
        report(here, name, "TASK COMPLETE\n", env=A)
        assert shown(path, "type") == [None, "verify"]
    here.ok("--loop", first, "complete")
    assert json.loads(path.read_text())["phases_complete"] == [1]
    assert shown(path, "type", "active")[1:] == ["verify", True]
    assert "unfinished" not in here.ok("status", env=B).err
    here.ok("--loop", second, "cancel")
    assert shown(path, "active")[1:] == [False]


@posix_only
@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda path: path.chmod(0o444), "is read-only"),
        (lambda path: path.write_text("{"), "line 1, column 2"),
        (lambda path: path.write_text("[]"), "not a JSON object"),
        (lambda path: path.write_text('{"loop": [1]}'), "loop is not an object"),
        (lambda path: path.write_bytes(b'{"a": "\xff"}'), "not valid UTF-8"),
    ],
)
def test_state_that_cannot_be_written_is_noted_and_repaired_later(
    here: Here, spoil: Any, problem: str
) -> None:
    path = planned(here)
    text = path.read_text()
    spoil(path)
    spoiled = path.read_bytes()
    answer = here.ok("task", "T01", "running", "--ref", "abc")
    assert f"{FILE} is not updated: " in answer.err
    assert problem in answer.err
    assert path.read_bytes() == spoiled
    path.chmod(0o644)
    path.write_text(text)
    assert FILE not in here.ok("note", "hello").err
    assert shown(path, "background_tasks")[1][0]["task_id"] == "abc"


@posix_only
def test_state_behind_a_link_is_written_only_inside_the_project(here: Here, tmp_path: Path) -> None:
    path = planned(here)
    outside = tmp_path / "outside.json"
    outside.write_text(BEFORE)
    path.unlink()
    path.symlink_to(outside)
    assert "points outside the project" in here.ok("task", "T01", "running").err
    assert outside.read_text() == BEFORE
    path.unlink()
    (here.root / "inside.json").write_text(BEFORE)
    path.symlink_to("../inside.json")
    here.ok("task", "T02", "running")
    assert path.is_symlink()
    assert shown(path, "task_retries") == [None, {"T01": 0, "T02": 0}]


def test_state_is_written_by_the_next_command_after_a_kill(here: Here) -> None:
    path = planned(here)
    text = path.read_text()
    mark = b'"status":"running"'
    kill_after(lambda: here.run("task", "T01", "running", "--ref", "abc"), mark)
    assert path.read_text() == text
    here.ok("note", "hello")
    assert shown(path, "background_tasks")[1][0]["task_id"] == "abc"


def test_state_agrees_with_the_journal_after_parallel_commands(
    here: Here, project: Project
) -> None:
    path = planned(here)
    children = []
    for name in ("T01", "T02"):
        child = os.fork()
        if not child:
            os._exit(project.run("task", name, "running", "--ref", name).code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    found = [it["task_id"] for it in shown(path, "background_tasks")[1]]
    assert sorted(found) == ["T01", "T02"]


@pytest.mark.parametrize("mode", ["yolo", "interactive"])
def test_state_does_not_keep_git_from_checking_out_the_branch(repository: Here, mode: str) -> None:
    root = repository.root
    write_plan(repository, THREE_TASKS, PLAN)
    path = root / FILE
    path.write_text(BEFORE.replace("v1", "m1"))
    git(root, "branch", "-M", "main")
    repository.configure(branching="milestone", base_branch="main", branch_prefix="gsd/")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "plan")
    git(root, "checkout", "-q", "-b", "gsd/m1")
    path.write_text(path.read_text().replace("[1,2]", "[1, 2]"))
    git(root, "commit", "-qam", "state")
    git(root, "checkout", "-q", "main")
    repository.ok(*YOLO[:-1], mode)
    if mode == "interactive":
        assert git(root, "status", "--porcelain", "-uno") == ""
        repository.ok("answer", "y")
    assert git(root, "branch", "--show-current") == "gsd/m1"
    assert '"phases_pending": [1, 2], "loop": ' in path.read_text()


def test_rollback_restores_the_state_and_shows_the_loop_in_it(repository: Here) -> None:
    path = planned(repository, BEFORE.replace('"phase"', '"task": 0, "phase"'))
    repository.ok("resume")
    report_complete(repository, "T01")
    assert shown(path)[0] == 1
    path.write_text(path.read_text().replace("v1", "v2"))
    report_complete(repository, "T02")
    repository.ok("rollback", "T01", "--yes")
    repository.ok("note", "again")
    document = json.loads(path.read_text())
    assert (document["milestone"], document["task"]) == ("v1", 1)
    assert document["loop"]["task_retries"] == {"T01": 0}

"""Reports of subagents: one commit and one event for each, however often they are given."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.commits import commit_work
from gsd_fsm.engine.planned.report import report_task
from tests.support import faults
from tests.support.command_line import Here
from tests.support.faults import in_child, outcome
from tests.support.phases import Impatient, kill_after, wait_for_git
from tests.support.plan_loops import (
    YOLO,
    commits,
    deliver,
    loop_of,
    ready,
    report,
    report_complete,
    start_committing,
    start_plan,
    tags,
    task_state,
    write_plan,
)
from tests.support.repositories import git, hook

COMPLETE = "Wrote it.\n\nTASK COMPLETE\n"
ONE_COMMIT = ["feat(1-01): Write 01.", "first"]
# Calls that change a file: wherever a kill comes between two of them, it leaves the same files.
CHANGES = ("write", "rename", "ftruncate", "unlink")


@pytest.fixture
def committing(here: Here) -> Context:
    return start_committing(here)


def head(context: Context) -> str:
    return git(context.project, "rev-parse", "HEAD")


def completions(here: Here, name: str) -> int:
    tasks = [event["data"] for event in here.lines() if event["type"] == "task"]
    return sum(data["task"] == name and data["status"] == "complete" for data in tasks)


def test_report_whose_completion_meets_a_held_lock_is_repeated_with_its_commit(
    here: Here, committing: Context
) -> None:
    impatient = Impatient(here.root, author=committing.author)
    held = []

    def hold(*arguments: Any) -> Any:
        made = commit_work(*arguments)
        lock = Journal(committing.gsd).transaction(Author("cli"))
        lock.__enter__()
        held.append(lock)
        return made

    with patch("gsd_fsm.engine.planned.proof.commit_work", hold), pytest.raises(CannotWrite):
        report_task(impatient, "T01", COMPLETE)
    held[0].__exit__(None, None, None)
    made = head(committing)
    assert loop_of(committing).tasks["T01"].status == "reported"
    assert report_task(committing, "T01", COMPLETE).commit == made
    assert len(commits(here)) == 2
    assert loop_of(committing).tasks["T01"].commit == made
    assert "T01" in tags(here)


def test_report_of_completed_task_records_only_new_issues(here: Here, committing: Context) -> None:
    report_task(committing, "T01", COMPLETE + "NEW ISSUE: [low] one\n")
    made, before = head(committing), len(here.lines())
    (here.root / "01.py").write_text("changed later\n")
    again = report_task(committing, "T01", COMPLETE + "NEW ISSUE: [low] one\nNEW ISSUE: two\n")
    assert (again.repeated, again.commit, commits(here)) == (True, made, ONE_COMMIT)
    assert [event["data"].get("text") for event in here.lines()[before:]] == ["two"]


# killed reports


def test_loop_killed_between_two_tasks_continues_with_the_open_ones(here: Here) -> None:
    start_plan(here)
    report(here, "T02", "TASK FAILED: once")
    here.ok("iterate")

    def agent() -> None:
        report_complete(here, "T01")
        here.ok("task", "T02", "running", "--ref", "bg-2")
        os.kill(os.getpid(), signal.SIGKILL)

    assert outcome(in_child(agent)) == -signal.SIGKILL
    before = here.status()
    answer = here.ok("resume", "--json").json
    assert answer["running"] == [{"task": "T02", "ref": "bg-2", "phase": None}]
    after = here.status()
    for counter in ("iteration", "task_retries", "tasks", "round", "wave"):
        assert after[counter] == before[counter]
    assert (after["task_retries"]["T02"], ready(here)) == (1, [])
    report_complete(here, "T02", "T03", "T04")
    here.ok("complete")
    assert [completions(here, f"T0{n}") for n in (1, 2, 3, 4)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"TASK COMPLETE\nNEW ISSUE: x\nNEW ISSUE: y", "complete"),
        (b"TASK FAILED: no", "failed"),
        (b"CHECKPOINT: x", "checkpoint"),
    ],
)
def test_report_killed_at_any_change_can_be_repeated(here: Here, text: bytes, status: str) -> None:
    write_plan(here, where="plan.md")
    deliver(here, "T01")
    here.ok(*YOLO, "--plan", "plan.md")
    report(here, "T02", "TASK FAILED: once")
    here.ok("check")  # the lock files exist from now on
    files = faults.files_in(here.gsd)

    def give_report() -> None:
        assert here.run("report", "T01", stdin=text).code == 0

    def give_report_until(number: int) -> None:
        with faults.wired(faults.At(number, faults.killed(0))):
            give_report()

    def kill_before_settled(name: str, real: Any, *args: Any, **more: Any) -> Any:
        last = (b'"status":"complete"', b'"type":"failure"', b'"status":"checkpoint"')
        if name == "write" and any(part in bytes(args[1]) for part in last):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **more)

    def give_report_until_settled(_: int) -> None:
        with faults.wired(kill_before_settled):
            give_report()

    calls = faults.calls_of(give_report)
    changes = [number for number, (name, _) in enumerate(calls) if name in CHANGES]
    seen = set()
    for number in (*changes, changes[-1] + 1, -1):
        faults.put_back(here.gsd, files)
        until = give_report_until if number >= 0 else give_report_until_settled
        killed = in_child(partial(until, number))
        assert outcome(killed) == -signal.SIGKILL
        left = task_state(here)["status"]
        seen.add(left)
        if left != status:
            give_report()
        here.ok("resume")
        after = here.status()
        assert after["tasks"][0]["status"] == status
        assert list(after["task_retries"].values()) == [text.count(b"FAILED"), 1, 0, 0]
        assert (after["status"] == "waiting") == (status == "checkpoint")
        types = [event["type"] for event in here.lines()]
        assert types.count("issue") == text.count(b"ISSUE")
        assert types.count("failure") == 1 + text.count(b"FAILED")
        here.ok("fsck")
    faults.put_back(here.gsd, files)
    give_report()
    assert task_state(here)["status"] == status
    assert {"pending", "reported"} <= seen <= {"pending", "reported", status}


@pytest.mark.parametrize("name", ["pre-commit", "post-commit"])
def test_report_killed_while_git_commits_is_repeated_without_a_second_commit(
    here: Here, name: str
) -> None:
    context = start_committing(here)
    hook(here.root, name, "kill -9 $GSD_PID")

    def child() -> None:
        os.environ["GSD_PID"] = str(os.getpid())
        report_task(context, "T01", COMPLETE)

    assert outcome(in_child(child)) == -signal.SIGKILL
    wait_for_git(here.root, commits=2)
    (here.root / ".git" / "hooks" / name).unlink()
    assert task_state(here)["status"] == "reported"
    here.ok("resume")
    assert ready(here) == ["T02"]
    here.ok("check")
    assert task_state(here)["commit"] == head(context)
    assert commits(here) == ONE_COMMIT
    assert completions(here, "T01") == 1
    assert ready(here) == ["T02"]


@pytest.mark.parametrize("again", [["report", "T01"], ["resume"]])
@pytest.mark.parametrize(
    ("mark", "is_written", "checkpoints"),
    [
        (b'"status":"complete"', True, ""),
        (b'"status":"complete"', True, "checkpoints = false\n"),
        (b'"type":"checkpoint"', False, ""),
    ],
)
def test_report_killed_before_its_tag_is_tagged_by_the_next_command(
    here: Here, mark: bytes, is_written: bool, checkpoints: str, again: list[str]
) -> None:
    start_committing(here, checkpoints)
    kill_after(lambda: report_complete(here, "T01"), mark, is_written=is_written)
    assert task_state(here)["status"] == "complete"
    for _ in range(2):
        here.ok(*again, stdin=b"TASK COMPLETE")
    expected = [] if checkpoints else [git(here.root, "rev-parse", "HEAD")]
    checkpoints = [event["data"] for event in here.lines() if event["type"] == "checkpoint"]
    assert [data["commit"] for data in checkpoints if data.get("task") == "T01"] == expected
    tag = tags(here).get("T01")  # a snapshot, since files of other tasks are not committed
    assert ([git(here.root, "rev-parse", f"{tag}^")] if tag else []) == expected

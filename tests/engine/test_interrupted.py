"""kill -9 of a planned loop: whatever was acknowledged is there, and it goes on at the next open task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Here, Project
from tests.support.faults import (
    calls_of,
    files_in,
    in_child,
    outcome,
    put_back,
    wired,
    without_sync,
)
from tests.support.plan_loops import (
    TDD_PLAN,
    YOLO,
    ready,
    report,
    report_complete,
    task_state,
    write_plan,
)
from tests.support.repositories import git, hook

DONE, TAGGED = b'"status":"complete"', b'"type":"checkpoint"'
COMMAND = [sys.executable, "-m", "gsd_fsm"]
AGENT = """
gsd() { "$PYTHON" -m gsd_fsm "$@" >/dev/null; }
echo TASK COMPLETE | gsd report T01
gsd task T02 running --ref bg-2
echo stands
sleep 60
"""


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Here:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")
    return Here(project.root, monkeypatch)


@pytest.fixture
def planned(here: Here) -> Here:
    write_plan(here, where="plan.md")
    here.ok(*YOLO, "--plan", "plan.md")
    return here


@pytest.fixture(params=["", "checkpoints = false\n"])
def committing(here: Here, request: pytest.FixtureRequest) -> Here:
    """A planned loop in a repository, whose engine commits."""
    git(here.root, "init", "-q", "--template=")
    git(here.root, "commit", "-q", "--allow-empty", "-m", "first")
    write_plan(here)
    (here.gsd / "config.toml").write_text(f"commit = true\n{request.param}")
    here.ok(*YOLO)
    (here.root / "01.py").write_text("one\n")
    return here


def statuses(here: Here) -> dict[str, str]:
    return {task["id"]: task["status"] for task in here.status()["tasks"]}


def completions(here: Here, name: str) -> int:
    events = (event["data"] for event in here.lines() if event["type"] == "task")
    return sum(data["task"] == name and data["status"] == "complete" for data in events)


def subjects(here: Here) -> list[str]:
    return git(here.root, "log", "--format=%s").splitlines()


def test_killed_between_two_tasks_it_goes_on_with_what_is_open(planned: Here) -> None:
    report(planned, "T02", "TASK FAILED: once")
    planned.ok("iterate")
    with subprocess.Popen(
        ["/bin/sh", "-c", AGENT],
        cwd=planned.root,
        env={**os.environ, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"stands\n"
        os.killpg(agent.pid, signal.SIGKILL)
    before = planned.status()
    answer = planned.ok("resume", "--json").json
    assert answer["running"] == [{"task": "T02", "ref": "bg-2", "phase": None}]
    after = planned.status()
    for counter in ("iteration", "task_retries", "tasks", "round", "wave"):
        assert after[counter] == before[counter]
    assert after["task_retries"]["T02"] == 1
    assert ready(planned) == []
    report_complete(planned, "T02")
    assert ready(planned) == ["T03"]
    report_complete(planned, "T03", "T04")
    planned.ok("complete")
    assert [completions(planned, f"T0{n}") for n in (1, 2, 3, 4)] == [1, 1, 1, 1]


def test_killed_while_it_waits_for_the_report_nothing_has_happened(planned: Here) -> None:
    before = planned.journal.read_bytes()
    with subprocess.Popen(
        [*COMMAND, "report", "T01"], cwd=planned.root, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"TASK COMPLETE\n")
        process.stdin.flush()
        process.kill()
    assert planned.journal.read_bytes() == before
    planned.ok("resume")
    assert ready(planned) == ["T01", "T02"]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (b"TASK COMPLETE\nNEW ISSUE: x\nNEW ISSUE: y", "complete"),
        (b"TASK FAILED: no", "failed"),
        (b"CHECKPOINT: x", "checkpoint"),
    ],
)
def test_killed_at_any_call_of_the_journal_a_report_can_be_given_again(
    planned: Here, words: bytes, status: str
) -> None:
    report(planned, "T02", "TASK FAILED: once")
    files = files_in(planned.gsd)

    def give_report() -> None:
        assert planned.run("report", "T01", stdin=words).code == 0

    seen = set()
    for number in range(1, len(calls_of(give_report)) + 1, 2):
        put_back(planned.gsd, files)
        assert _killed_at(give_report, number) == -signal.SIGKILL
        left = statuses(planned)["T01"]
        seen.add(left)
        if left != status:
            give_report()
        planned.ok("resume")
        after = planned.status()
        assert after["tasks"][0]["status"] == status
        assert list(after["task_retries"].values()) == [words.count(b"FAILED"), 1, 0, 0]
        assert (after["status"] == "waiting") == (status == "checkpoint")
        told = [event["type"] for event in planned.lines()]
        assert told.count("issue") == words.count(b"ISSUE")
        assert told.count("failure") == 1 + words.count(b"FAILED")
        planned.ok("fsck")
    assert seen == {"pending", "running", status}


def _killed_at(work: Any, number: int) -> int:
    """How a child ends that is killed at this of its system calls."""
    count = 0

    def intercept(name: str, real: Any, *args: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return without_sync(name, real, *args, **more)

    def child() -> None:
        with wired(intercept):
            work()

    return outcome(in_child(child))


class Gate:
    """A hook of git that tells when it is reached, and waits until it may go on."""

    def __init__(self, here: Here, name: str) -> None:
        self.reached, self.may_go_on = (here.root.parent / it for it in ("reached", "go"))
        for path in (self.reached, self.may_go_on):
            os.mkfifo(path)
        script = f"echo here > '{self.reached}'; cat '{self.may_go_on}' > /dev/null"
        hook(here.root, name, script)
        self.hook = here.root / ".git" / "hooks" / name

    def open(self) -> None:
        self.hook.unlink()
        self.may_go_on.write_text("go\n")


def _killed_in(here: Here, name: str) -> Gate:
    """A report that was killed while git ran this hook."""
    gate = Gate(here, name)
    with subprocess.Popen(
        [*COMMAND, "report", "T01"], cwd=here.root, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"TASK COMPLETE\n")
        process.stdin.close()
        assert gate.reached.read_text() == "here\n"
        process.kill()
    assert statuses(here)["T01"] == "pending"
    return gate


@pytest.mark.parametrize("name", ["pre-commit", "post-commit"])
def test_killed_during_its_commit_a_report_is_repeated_without_a_second_one(
    committing: Here, name: str
) -> None:
    gate = _killed_in(committing, name)
    gate.open()
    for _ in _patiently():
        if len(subjects(committing)) == 2 and not _locks(committing):
            break
    committing.ok("resume")
    assert ready(committing) == ["T01", "T02"]
    answer = report(committing, "T01", "TASK COMPLETE")
    assert answer["commit"] == git(committing.root, "rev-parse", "HEAD")
    assert subjects(committing) == ["feat(1-01): Write 01.", "first"]
    assert completions(committing, "T01") == 1
    assert ready(committing) == ["T02"]


def _locks(here: Here) -> list[Path]:
    return list((here.root / ".git").glob("*.lock"))


def _patiently() -> Iterator[None]:
    for _ in range(500):
        yield
        time.sleep(0.02)
    raise AssertionError("git does not come to an end")


def test_killed_after_its_commit_a_second_report_finds_the_task_complete(committing: Here) -> None:
    report(committing, "T01", "TASK COMPLETE")
    head = git(committing.root, "rev-parse", "HEAD")
    (committing.root / "01.py").write_text("changed later\n")
    assert report(committing, "T01", "TASK COMPLETE")["commit"] == head
    assert len(subjects(committing)) == 2
    assert completions(committing, "T01") == 1


@pytest.mark.parametrize("mark", [DONE, TAGGED])
@pytest.mark.parametrize("again", [["report", "T01"], ["resume"]])
def test_killed_before_its_tag_it_is_set_by_whoever_goes_on(
    committing: Here, mark: bytes, again: list[str]
) -> None:
    def intercept(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if name == "write" and mark in args[1]:
            if mark == DONE:
                real(*args, **more)
            os.kill(os.getpid(), signal.SIGKILL)
        return without_sync(name, real, *args, **more)

    def child() -> None:
        with wired(intercept):
            report(committing, "T01", "TASK COMPLETE")

    tagged = "false" not in (committing.gsd / "config.toml").read_text()
    killed = tagged or mark == DONE
    assert outcome(in_child(child)) == (-signal.SIGKILL if killed else 0)
    assert statuses(committing)["T01"] == "complete"
    committing.ok(*again, stdin=b"TASK COMPLETE")
    committing.ok(*again, stdin=b"TASK COMPLETE")
    head = git(committing.root, "rev-parse", "HEAD")
    told = [event["data"] for event in committing.lines() if event["type"] == "checkpoint"]
    assert [data["commit"] for data in told if data.get("task") == "T01"] == [head] * tagged
    tags = git(committing.root, "tag", "--points-at", "HEAD").split()
    assert tags == ["gsd/checkpoint/phase-1/T01"] * tagged


def test_killed_while_its_tests_run_a_cycle_stands_where_it_stood(here: Here) -> None:
    write_plan(here, TDD_PLAN)
    (here.gsd / "config.toml").write_text("ci_test = 'false'\n")
    (here.root / "test_a.py").write_text("a test\n")
    here.ok(*YOLO)
    here.ok("tdd", "T01", "--run")
    assert here.run("tdd", "T01", "--run").code == 7
    (here.gsd / "config.toml").write_text("ci_test = 'echo begun; exec sleep 60'\n")
    before = here.journal.read_bytes()
    with subprocess.Popen(
        [*COMMAND, "tdd", "T01", "--run"], cwd=here.root, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != b"begun\n":
            pass
        process.kill()
    assert here.journal.read_bytes() == before
    answer = here.ok("resume", "--json").json
    assert answer["running"] == [{"task": "T01", "ref": None, "phase": "green"}]
    (here.gsd / "config.toml").write_text("ci_test = 'true'\n")
    assert here.ok("tdd", "T01", "--json").json["attempt"] == 2
    here.ok("tdd", "T01", "--run")
    assert (task_state(here)["phase"], task_state(here)["attempts"]) == ("refactor", 2)

"""Phases in a repository: carried out, finished, rolled back; processes killed meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.documents.files import Change, write_change
from gsd_fsm.engine.context import Context
from gsd_fsm.git.checkpoints import checkpoint_tag
from gsd_fsm.phase.ending import plan_ending
from gsd_fsm.plans.plan import Plan
from tests.support.command_line import Here
from tests.support.events import append, draft, write
from tests.support.faults import in_child, outcome, wired, without_sync
from tests.support.plan_loops import TITLE, write_plan
from tests.support.plan_texts import task as task_text
from tests.support.prompts import a_task
from tests.support.repositories import commit, git, head_of
from tests.support.story import MINUTE, Story

PLAN = TITLE + "## Wave 1 (Parallel)\n" + task_text("01") + task_text("02")
ROADMAP = "# Roadmap\n\n### Phase 1: Parts\n- [ ] Complete\n"
TICKED = ROADMAP.replace("[ ]", "[x]")
POST = "gsd/checkpoint/phase-1/post"
# Commands of git that only read: a kill before one leaves the files as a kill before the next step.
READING = {
    "cat-file", "diff-files", "diff-index", "diff-tree", "for-each-ref", "log", "ls-files",
    "merge-base", "rev-list", "rev-parse", "status", "symbolic-ref",
}  # fmt: skip


class Phase:
    """Phase 1 with two completed tasks, in a repository on branch main."""

    def __init__(self, here: Here, settings: str = "commit = true\n") -> None:
        self.here, self.root = here, here.root
        git(self.root, "init", "-q", "--template=", "-b", "main")
        with (self.root / ".git" / "config").open("a") as file:
            file.write("[user]\n\tname = T\n\temail = t@example.org\n")
        self.summary = write_plan(here, PLAN).with_name("summary.md")
        self.roadmap = here.gsd / "ROADMAP.md"
        self.roadmap.write_text(ROADMAP)
        (here.gsd / "config.toml").write_text(settings)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "first")
        self.loop = here.start("execute", "--phase", "1", "--mode", "yolo")
        for name in ("01", "02"):
            (self.root / f"{name}.py").write_text(name)
            here.ok("report", f"T{name}", stdin=b"TASK COMPLETE\n")

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def head(self) -> str:
        return head_of(self.root)

    def subjects(self) -> list[str]:
        return self.git("log", "--format=%s").splitlines()

    def tags(self) -> dict[str, str]:
        lines = self.git("tag", "--format=%(refname:short) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def tasks(self) -> dict[str, str]:
        return {task["id"]: task["status"] for task in self.here.status()["tasks"]}

    def documents(self) -> tuple[bool, str]:
        """Return whether there is a summary, and the roadmap."""
        return self.summary.exists(), self.roadmap.read_text()

    def killed(self, *command: str, after: str) -> None:
        """Run a command in a process that is killed right after it wrote this to the journal."""
        kill_after(lambda: self.here.run(*command), after.encode())

    def killed_before(self, *command: str, event: str) -> None:
        """Run a command in a process that is killed right before it writes this to the journal."""
        kill_after(lambda: self.here.run(*command), event.encode(), is_written=False)

    def killed_at(self, call: str, *command: str) -> None:
        """Run a command in a process that is killed when it first calls this function of git/."""

        def child() -> None:
            pytest.MonkeyPatch().setattr(
                f"gsd_fsm.git.{call}", lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
            )
            self.here.run(*command)

        assert outcome(in_child(child)) == -signal.SIGKILL
        wait_for_git(self.root)

    def killed_at_step(self, number: int, *command: str) -> bool:
        """Run a command, killed before its step `number`; return False if it has fewer steps."""

        def child() -> None:
            steps = itertools.count()

            def kill_at(event: str, arguments: Any) -> None:
                is_git = event == "subprocess.Popen" and READING.isdisjoint(arguments[1])
                if (is_git or event == "os.rename") and next(steps) == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(kill_at)
            self.here.run(*command)

        code = outcome(in_child(child))
        wait_for_git(self.root)
        assert code in (0, -signal.SIGKILL)
        return code != 0

    def rollbacks(self) -> list[dict[str, Any]]:
        """Return the data of the recorded rollbacks."""
        return [event["data"] for event in self.here.lines() if "left" in event["data"]]


def wait_for_git(root: Path, commits: int = 0) -> None:
    """Wait until a git that outlived its parent has removed its locks, and made this many commits."""
    for _ in range(500):
        made = int(git(root, "rev-list", "--count", "HEAD"))
        if made >= commits and not list((root / ".git").glob("*.lock")):
            return
        time.sleep(0.02)
    raise AssertionError("git did not end")


def kill_after(work: Callable[[], Any], mark: bytes, *, is_written: bool = True) -> None:
    """Run this in a child; kill it right after it writes this mark, or before if not `is_written`."""

    def intercept(name: str, real: Any, *args: Any, **more: Any) -> Any:
        is_last = name == "write" and mark in args[1]
        result = without_sync(name, real, *args, **more) if is_written or not is_last else None
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def child() -> None:
        with wired(intercept):
            work()

    assert outcome(in_child(child)) == -signal.SIGKILL


class Impatient(Context):
    """A context that waits only a moment for the lock."""

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.gsd, lock_seconds=0.2, keep=self.loop_id)


@contextlib.contextmanager
def held_lock(here: Here) -> Iterator[None]:
    """Hold the lock of the journal as another process does."""
    with (here.gsd / "journal.lock").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


NOW = "2026-11-16T08:00:00.000Z"
TITLES = ("Create hooks.json", "Create stop-hook.sh", "Extend the settings")
COMMITS = {"T01": "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", "T02": None, "T03": None}


def plan_of(path: Path, *titles: str, **other: Any) -> Plan:
    tasks = tuple(
        a_task(id=f"T{n:02}", number=f"{n:02}", title=title, wave=1 if n < 3 else 2, line=n)
        for n, title in enumerate(titles or TITLES, 1)
    )
    facts = Plan(path, "0" * 16, "markdown", 1, "Loop Mechanism", (), (), tasks, "45k", ())
    return facts._replace(**other)


def finished_story(*titles: str, phase: Any = 1) -> Story:
    """Return a loop whose tasks were retried, fixed and skipped."""
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


class FinishedPhase:
    """A project at the end of its phase."""

    def __init__(self, root: Path, planning: str = ".opti-gsd") -> None:
        self.root = root
        self.planning = root / planning
        self.folder = self.planning / "plans" / "phase-1"
        self.plan = plan_of(write(self.folder / "plan.md", "# plan\n"))
        self.loop = finished_story().loop
        self.summary = self.folder / "summary.md"
        self.state = self.planning / ("state.json" if planning == ".opti-gsd" else "STATE.md")
        self.roadmap = self.planning / "roadmap.md"

    def changes(self, now: str = NOW, phase: Any = 1) -> list[Change]:
        return plan_ending(self.root, self.plan, self.loop, phase, COMMITS, now)

    def end(self) -> list[str]:
        """End the phase; return the names of the changed files."""
        changes = self.changes()
        for change in changes:
            write_change(change)
        return [change.path.name for change in changes]

    def everything(self) -> dict[str, bytes]:
        found = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}


class Work:
    """A loop of phase 1 in a repository, whose tasks leave commits and checkpoints."""

    def __init__(self, here: Here) -> None:
        self.here = here
        git(here.root, "init", "-q", "--template=", "-b", "main")
        commit(here.root, "code")
        tasks = ("T01", "T02", "T03")
        named = [word for name in tasks for word in ("--task", name)]
        self.loop = here.start("execute", "--phase", "1", "--mode", "yolo", *named)
        self.checkpoint("pre")
        self.shas = {"pre": self.head(), **{name: self.finish(name) for name in tasks[:2]}}

    def head(self) -> str:
        return head_of(self.here.root)

    def checkpoint(self, name: str) -> None:
        tag = checkpoint_tag(1, name)
        git(self.here.root, "tag", "-f", tag)
        event = draft("checkpoint", self.loop, "cli", {"name": tag, "commit": self.head()})
        append(Journal(str(self.here.gsd)), event)

    def finish(self, name: str) -> str:
        sha = commit(self.here.root, name)
        self.here.ok("task", name, "running")
        self.here.ok("task", name, "complete", "--commit", sha)
        self.checkpoint(name)
        return sha

    def tasks(self) -> dict[str, str]:
        return {task["id"]: task["status"] for task in self.here.status()["tasks"]}

    def left(self) -> list[str]:
        return git(self.here.root, "tag", "-l", "gsd/rollback/*").split()


def facts(answer: Any, *names: str) -> list[Any]:
    return [answer.json[name] for name in names]

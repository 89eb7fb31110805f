"""A planned phase in a real repository, and processes that are killed or hold the lock."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.engine.context import Context
from gsd_fsm.git.repo import Repository
from tests.support.faults import in_child, outcome, wired, without_sync
from tests.support.repositories import git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.command_line import Here

TASK = """
<task id="{0}" wave="1">
  <files><file action="create">{0}.py</file></files>
  <action>Write {0}.</action>
  <verify><check type="file">{0}.py exists</check></verify>
  <done>{0} is written.</done>
</task>
"""
PLAN = (
    "---\nphase: 1\ntitle: Parts\n---\n## Wave 1 (Parallel)\n"
    + TASK.format("01")
    + TASK.format("02")
)
ROADMAP = "# Roadmap\n\n### Phase 1: Parts\n- [ ] Complete\n"
TICKED = ROADMAP.replace("[ ]", "[x]")
POST = "gsd/checkpoint/phase-1/post"
HOLD = """
import fcntl, sys
with open(sys.argv[1], "r+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


class Phase:
    """Phase 1 with two tasks, both of them complete, in a repository on branch main."""

    def __init__(self, here: Here, settings: str = "commit = true\n") -> None:
        self.here, self.root = here, here.root
        git(self.root, "init", "-q", "--template=", "-b", "main")
        git(self.root, "config", "user.name", "T")
        git(self.root, "config", "user.email", "t@example.org")
        folder = here.gsd / "plans" / "phase-1"
        folder.mkdir(parents=True)
        (folder / "plan.md").write_text(PLAN)
        self.summary = folder / "summary.md"
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
        return self.git("rev-parse", "HEAD")

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

    def wait_for_git(self) -> None:
        """Wait until a git that outlived its parent has removed its locks."""
        for _ in range(500):
            if not list((self.root / ".git").glob("*.lock")):
                return
            time.sleep(0.02)
        raise AssertionError("git does not end")

    def killed(self, *command: str, after: str) -> None:
        """Run a command in a process that is killed right after it wrote this to the journal."""
        kill_after(lambda: self.here.run(*command), after.encode())

    def killed_before(self, *command: str, event: str) -> None:
        """Run a command in a process that is killed right before it writes this to the journal."""
        kill_after(lambda: self.here.run(*command), event.encode(), is_written=False)

    def killed_at(self, call: str, *command: str) -> None:
        """Run a command in a process that is killed when it first calls this method of Repository."""

        def child() -> None:
            setattr(Repository, call, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            self.here.run(*command)

        assert outcome(in_child(child)) == -signal.SIGKILL
        self.wait_for_git()

    def rollbacks(self) -> list[dict[str, Any]]:
        """Return the data of the recorded rollbacks."""
        return [event["data"] for event in self.here.lines() if "left" in event["data"]]


def kill_after(work: Callable[[], Any], mark: bytes, *, is_written: bool = True) -> None:
    """Run this in a child, and kill it with SIGKILL right after an event with this mark is durable.

    Unless `is_written`, kill it right before.
    """

    def intercept(name: str, real: Any, *args: Any, **more: Any) -> Any:
        if not is_written and name == "write" and mark in args[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        result = without_sync(name, real, *args, **more)
        if name == "write" and mark in args[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def child() -> None:
        with wired(intercept):
            work()

    assert outcome(in_child(child)) == -signal.SIGKILL


class Impatient(Context):
    """A context that waits only a moment for the lock."""

    def journal(self) -> Journal:
        return Journal(self.gsd, lock_seconds=0.2, keep=self.loop_id)


@contextlib.contextmanager
def held_lock(here: Here) -> Iterator[None]:
    """Let another process hold the lock of the journal."""
    command = [sys.executable, "-c", HOLD, str(here.gsd / "journal.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        assert process.stdin is not None
        process.stdin.close()

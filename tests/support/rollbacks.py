"""A loop in a repository, with checkpoints to go back to."""

from __future__ import annotations

from typing import Any

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.git.checkpoints import checkpoint_tag
from tests.support.command_line import Here
from tests.support.events import append, draft
from tests.support.repositories import commit, git


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
        return git(self.here.root, "rev-parse", "HEAD")

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

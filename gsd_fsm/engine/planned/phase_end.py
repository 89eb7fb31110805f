"""Finish a phase: tag its last commit, write its documents, commit them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import GsdError, Refused
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Effect
from gsd_fsm.engine.planned.branches import other_branch
from gsd_fsm.engine.planned.checkpoints import (
    checkpoint_data,
    commits_since_start,
    recorded_commits,
    rewritten_tasks,
)
from gsd_fsm.engine.planned.plan import frozen_plan, has_changed, plan_path
from gsd_fsm.engine.planned.state_file import shown_loop

if TYPE_CHECKING:
    from gsd_fsm.documents.files import Change
    from gsd_fsm.git.repo import Repository


def ends_phase(loop: Loop) -> bool:
    """Return whether this loop executes a plan, so that its end is the end of a phase."""
    return loop.kind == "execute" and loop.is_planned


class Ending:
    """The documents of a phase whose loop is completed, or can be."""

    def __init__(self, context: Context, loop: Loop) -> None:
        from gsd_fsm.git.messages import metadata_message

        self.project = context.project
        self.settings = context.settings()
        self.loop = loop
        shown = shown_loop(context.read(trusted=False))
        self.keeps_loop = shown is not None and shown.id != loop.id
        self.plan = frozen_plan(self.project, loop)
        self.repository = context.repository_or_none()
        self.message = metadata_message(loop.phase)
        self.commits: dict[str, str | None] = {
            **dict.fromkeys(loop.tasks),
            **recorded_commits(loop),
        }
        self.commits.update(dict.fromkeys(rewritten_tasks(context, loop)))

    def changes(self) -> list[Change]:
        """Return the changes that are not made yet; raise if one of them is impossible."""
        from gsd_fsm.phase.ending import plan_ending

        loop, now = self.loop, to_iso(now_ms())
        return plan_ending(
            self.project,
            self.plan,
            loop,
            loop.phase,
            self.commits,
            now,
            keeps_loop=self.keeps_loop,
        )

    def to_commit(self) -> list[Path]:
        """Return the documents, if the engine may commit them and has not done so."""
        if self.repository is None or not self.settings["commit"]:
            return []
        if any(
            it.subject == self.message for it in commits_since_start(self.repository, self.loop)
        ):
            return []  # changes that were made to the documents since are not ours
        from gsd_fsm.phase.ending import metadata_paths

        return metadata_paths(self.project, self.plan, self.loop.phase)

    def missing(self) -> tuple[list[Change], bool]:
        """Return the changes that are not made yet, and whether their commit is missing."""
        changes, paths = self.changes(), self.to_commit()
        if self.repository is None or not paths:
            return changes, False
        return changes, bool(changes or self.repository.uncommitted(paths))

    def write(self) -> None:
        """Write and commit the documents."""
        from gsd_fsm.documents.files import write_change

        for change in self.changes():
            write_change(change)
        paths = self.to_commit()
        if self.repository is not None and paths:
            self.repository.commit(paths, self.message)

    def report(self) -> str:
        from gsd_fsm.phase.ending import ending_notes
        from gsd_fsm.phase.report import final_report

        notes = ending_notes(self.project)
        return final_report(self.loop, self.plan, self.commits, self.settings, notes=notes)


def ending_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the effects that a completed phase lacks.

    There are none if another branch is checked out, or the phase was rolled back since.
    """
    from gsd_fsm.phase.ending import is_summarized

    repository = context.repository_or_none()
    if repository is not None and not _is_on_branch(repository, loop):
        return
    if repository is not None and _is_undone(repository, loop):
        return
    tag = last_tag(loop)
    commit = loop.snapshots.get(tag or "") or loop.checkpoints.get(tag or "")
    if repository and tag and commit and repository.resolved(f"refs/tags/{tag}") != commit:
        yield Effect(f"tag {tag}", partial(repository.tag, tag, commit))
    path = plan_path(context.project, loop)
    if has_changed(context.project, loop) and is_summarized(context.project, path, loop):
        return  # the documents were written while the plan was the frozen one
    ending = Ending(context, loop)
    try:
        unwritten, lacks_commit = ending.missing()
    except GsdError:
        yield Effect("documents of the phase", ending.write)  # which fails for the same reason
        return
    left = [change.path.name for change in unwritten]
    left += ["their commit"] if lacks_commit else []
    if left:
        files = tuple(str(change.path) for change in unwritten)
        yield Effect(f"documents of the phase ({', '.join(left)})", ending.write, files)


def _is_undone(repository: Repository, loop: Loop) -> bool:
    """Return whether the phase was rolled back after its end."""
    if loop.phase is None:
        return False
    from gsd_fsm.git.checkpoints import is_rolled_back

    return is_rolled_back(repository, loop.phase, loop.last_event)


def _is_on_branch(repository: Repository, loop: Loop) -> bool:
    """Return whether the branch is checked out on which the loop was completed.

    If that is not known, HEAD must contain the last commit that the loop recorded.
    """
    if loop.branch is not None and repository.branch() != loop.branch:
        return False
    tasks = [task.commit for task in loop.tasks.values() if task.commit]
    last = next(reversed(loop.checkpoints.values()), None) or next(reversed(tasks), None)
    return last is None or repository.contains(last)


def last_tag(loop: Loop) -> str | None:
    """Return the name of the tag at the end of the phase; None without a phase."""
    if not ends_phase(loop) or loop.phase is None:
        return None
    from gsd_fsm.git.checkpoints import LAST, checkpoint_tag

    return checkpoint_tag(loop.phase, LAST)


def require_branch(context: Context, loop: Loop) -> None:
    """Raise Refused if a phase would end on a branch without its commits."""
    needed = other_branch(context, loop) if ends_phase(loop) else None
    if needed is not None:
        raise Refused(
            f"loop {loop.id} is {loop.status}, and its commits are on branch {needed}, "
            "which is not checked out",
            f"Run: git switch {shlex.quote(needed)}, then: {command_line('complete', loop.id)}",
        )


def ending_place(context: Context, loop: Loop) -> tuple[str | None, dict[str, str] | None]:
    """Return the branch on which a phase ends, and the data of its last checkpoint.

    Each is None if there is none; a failure of git is only noted in `context`.
    """
    if not ends_phase(loop):
        return None, None
    tag = last_tag(loop) if context.settings()["checkpoints"] else None
    branch = None
    try:
        repository = context.repository
        branch = repository.branch() if repository else None
        return branch, checkpoint_data(context, repository, tag) if repository and tag else None
    except GsdError as error:
        if tag is not None:
            context.notices.append(f"checkpoint {tag} was not set: {error.message}")
        return branch, None

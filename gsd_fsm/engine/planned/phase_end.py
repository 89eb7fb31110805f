"""Finish a phase: tag its last commit, write its documents, commit them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.clock import ms_of, now_ms, to_iso
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Effect
from gsd_fsm.engine.planned.plan import frozen_plan, has_changed, plan_path

if TYPE_CHECKING:
    from gsd_fsm.documents.files import Change
    from gsd_fsm.git.repo import Repository

_LAST = "post"
# Where the commit of the documents is looked for.
_RECENT = "--max-count=1000"


def ends_phase(loop: Loop) -> bool:
    """Return whether this loop executes a plan, so that its end is the end of a phase."""
    return loop.kind == "execute" and loop.is_planned


class Ending:
    """The documents of a phase whose loop is completed, or can be."""

    def __init__(self, context: Context, loop: Loop) -> None:
        self.project = context.project
        self.settings = context.settings()
        self.loop = loop
        self.plan = frozen_plan(self.project, loop)
        self.repository = context.repository_or_none()
        commits = {name: task.commit for name, task in loop.tasks.items() if task.commit}
        if self.repository is not None:
            here = self.repository.contained(commits.values())
            commits = {name: commit for name, commit in commits.items() if commit in here}
        self.commits: dict[str, str | None] = {**dict.fromkeys(loop.tasks), **commits}

    def changes(self) -> list[Change]:
        """Return the changes that are not made yet; raise if one of them is impossible."""
        from gsd_fsm.phase.ending import plan_ending

        loop, now = self.loop, to_iso(now_ms())
        return plan_ending(self.project, self.plan, loop, loop.phase, self.commits, now)

    @cached_property
    def _is_committed(self) -> bool:
        """Return whether the documents were committed since the loop began."""
        if self.repository is None:
            return False
        began = ms_of(self.loop.started or self.loop.first_ts) // 1000
        has_head = any(self.commits.values()) or self.repository.head()
        recent = self.repository.commits(_RECENT, "HEAD") if has_head else []
        return any(it.subject == self._message and it.seconds >= began for it in recent)

    @property
    def _message(self) -> str:
        from gsd_fsm.git.messages import metadata_message

        return metadata_message(self.loop.phase)

    def to_commit(self) -> list[Path]:
        """Return the documents, if the engine may commit them and has not done so."""
        if self.repository is None or not self.settings["commit"] or self._is_committed:
            return []  # changes that were made to the documents since are not ours
        from gsd_fsm.phase.ending import metadata_paths

        return metadata_paths(self.project, self.plan, self.loop.phase)

    def lacks_commit(self, unwritten: list[Change]) -> bool:
        paths = self.to_commit()
        if self.repository is None or not paths:
            return False
        return bool(unwritten or self.repository.uncommitted(paths))

    def write(self) -> None:
        """Write and commit the documents."""
        from gsd_fsm.documents.files import write_change

        for change in self.changes():
            write_change(change)
        paths = self.to_commit()
        if self.repository is not None and paths:
            self.repository.commit(paths, self._message)

    def report(self) -> str:
        from gsd_fsm.phase.ending import ending_notes
        from gsd_fsm.phase.report import final_report

        notes = ending_notes(self.project)
        return final_report(self.loop, self.plan, self.commits, self.settings, notes=notes)


def ending_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the effects that a completed phase lacks; none if another branch is checked out."""
    repository = context.repository_or_none()
    if repository is not None and not _is_on_branch(repository, loop):
        return
    yield from _tag_effects(repository, loop)
    if has_changed(context.project, loop) and _is_summarized(context.project, loop):
        return  # the documents were written while the plan was the frozen one
    ending = Ending(context, loop)
    try:
        unwritten = ending.changes()
    except GsdError:
        yield Effect("documents of the phase", ending.write)  # which fails for the same reason
        return
    left = [change.path.name for change in unwritten]
    left += ["their commit"] if ending.lacks_commit(unwritten) else []
    if left:
        files = tuple(str(change.path) for change in unwritten)
        yield Effect(f"documents of the phase ({', '.join(left)})", ending.write, files)


def _is_summarized(project: Path, loop: Loop) -> bool:
    from gsd_fsm.phase.ending import is_summarized

    return is_summarized(project, plan_path(project, loop), loop)


def _tag_effects(repository: Repository | None, loop: Loop) -> Iterator[Effect]:
    tag = last_tag(loop)
    commit = loop.checkpoints.get(tag) if tag else None
    if repository is None or tag is None or commit is None:
        return
    if repository.resolved(f"refs/tags/{tag}") != commit:
        yield Effect(f"tag {tag}", lambda: _set_tag(repository, tag, commit))


def _set_tag(repository: Repository, tag: str, commit: str) -> None:
    repository.tag(tag, commit)


def branch_of(context: Context, loop: Loop) -> str | None:
    """Return the branch on which a phase ends; None without git or a branch."""
    repository = context.repository_or_none() if ends_phase(loop) else None
    return repository.branch() if repository is not None else None


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
    from gsd_fsm.git.checkpoints import checkpoint_tag

    return checkpoint_tag(loop.phase, _LAST)


def last_checkpoint(context: Context, loop: Loop) -> dict[str, Any] | None:
    """Return the data of the checkpoint at the end of the phase; None if there is nothing to tag."""
    tag = last_tag(loop)
    if tag is None or not context.settings()["checkpoints"]:
        return None
    try:
        repository = context.repository()
        commit = repository.head() if repository else None
    except GsdError as error:
        context.notices.append(f"checkpoint {tag} was not set: {error.message}")
        return None
    return None if commit is None else {"name": tag, "commit": commit}

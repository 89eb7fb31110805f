"""Prepare the place of work of a loop: its branch, STATE.md and first checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import CannotWrite, Refused, UsageError
from gsd_fsm.core.loop.events.sessions import may_decide
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.views.state_md import with_loop
from gsd_fsm.core.views.write import STATE_NAME
from gsd_fsm.engine.context import Context, Effect, NotDue, Receipt, receipt
from gsd_fsm.engine.planned.checkpoints import set_first_checkpoint
from gsd_fsm.engine.planned.plan import (
    accept_plan_change,
    append_plan_change,
    append_question,
    awaits_branch,
    is_new,
    plan_path,
)

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Repository


class Switch(NamedTuple):
    """The branch that a loop was to work on: None without git; and why it was not checked out."""

    branch: str | None
    problem: str
    receipt: Receipt


class NoMilestone(Refused):
    """The base branch is checked out, and there is no milestone whose branch could be."""

    def __init__(self, base: str, prefix: str) -> None:
        super().__init__(
            f"No Milestone Active: You're on {base} with branching: milestone configured, "
            "but no milestone is active.",
            f'git checkout -b {prefix}NAME, and set "milestone" in .opti-gsd/state.json; '
            'or branching = "none" in .gsd/config.toml',
        )


class NeededSwitch(NamedTuple):
    """A branch that should be checked out before the work begins, and the question about it."""

    repository: Repository
    branch: str
    question: str


def needed_switch(project: Path, settings: Mapping[str, Any]) -> NeededSwitch | None:
    """Return the switch to the milestone's branch, if the base branch is checked out."""
    if settings["branching"] != "milestone":
        return None
    from gsd_fsm.git.repo import Repository
    from gsd_fsm.plans.find import project_state

    repository = Repository.around(project)
    if repository is None:
        return None
    state = project_state(project) if (project / ".opti-gsd").is_dir() else {}
    return branch_switch(repository, settings, state.get("milestone"))


def branch_switch(
    repository: Repository, settings: Mapping[str, Any], milestone: str | None
) -> NeededSwitch | None:
    """Return the switch from the base branch to that of the milestone, None if none is needed.

    Raise NoMilestone if there is no milestone, UsageError if its name cannot be a branch.
    """
    base, prefix = str(settings["base_branch"]), str(settings["branch_prefix"])
    if settings["branching"] != "milestone" or repository.branch() != base:
        return None
    if not milestone:
        raise NoMilestone(base, prefix)
    branch = f"{prefix}{milestone}"
    if branch == base:
        return None
    if not repository.is_branch_name(branch):
        raise UsageError(
            f"the milestone {milestone!r} cannot be a branch: git would refuse {branch!r}",
            'Give "milestone" in .opti-gsd/state.json letters, digits and dashes only.',
        )
    question = f"You're on {base} but milestone {milestone} exists. Switch to {branch}? [Y/n]"
    return NeededSwitch(repository, branch, question)


def branch_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the switch to the branch of the loop, if its work would begin on the base branch."""
    settings = context.settings() if awaits_branch(loop) else {"branching": "none"}
    if settings["branching"] != "milestone" or loop.branch == settings["base_branch"]:
        return
    repository = context.repository_or_none()
    if repository is not None and repository.branch() == settings["base_branch"]:
        yield Effect(f"switch to branch {loop.branch}", lambda: _require_branch(context, loop))


def _require_branch(context: Context, loop: Loop) -> Receipt:
    switch = take_branch(context, loop)
    if switch.problem:
        raise Refused(switch.problem)
    return switch.receipt


def take_branch(context: Context, loop: Loop) -> Switch:
    """Check out the branch of the loop, accept its plan and ask what is next.

    If git refuses, or the plan on that branch cannot be used, the loop is paused.
    """
    branch = loop.branch or ""
    try:
        repository = _checked_out(context, loop, branch)
        proof = _continue_there(context, loop)
    except (Refused, UsageError) as error:
        problem = f"branch {branch} cannot be used: {error.message}"
        return Switch(None, problem, _pause(context, loop, problem))
    return Switch(branch if repository else None, "", proof)


def _checked_out(context: Context, loop: Loop, branch: str) -> Repository | None:
    """Switch the repository; return None if there is none. Raises Refused if git fails."""
    repository = context.repository()
    if repository is None:
        return None
    before = repository.branch()
    try:
        repository.switch(branch, create=not repository.has_branch(branch))
    except CannotWrite as error:
        raise Refused(error.message) from error
    if loop.is_planned and not plan_path(context.project, loop).is_file():
        if before:
            repository.switch(before, create=False)
        raise Refused(f"it does not have {loop.plan.file}, which loop {loop.id} follows")
    return repository


def _continue_there(context: Context, loop: Loop) -> Receipt:
    with context.transaction() as tx:
        loop = tx.loops.by_id[loop.id]
        if may_decide(loop, context.author.by, context.author.session):
            accept_plan_change(tx, context.project, loop, context.author)
        else:
            append_plan_change(tx, context.project, loop)
        append_question(tx, loop)
    return receipt(tx, loop)


def _pause(context: Context, loop: Loop, reason: str) -> Receipt:
    with context.transaction() as tx:
        loop = tx.loops.by_id[loop.id]
        tx.append(loop, "pause", {"code": "blocking", "reason": reason}, by="cli")
    return receipt(tx, loop)


# effects of a start


def start_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the missing effects of a new loop; none on a branch that the user chose."""
    settings = context.settings()
    repository = context.repository_or_none()
    if loop.branch is not None and settings["branching"] == "milestone":
        branch = repository.branch() if repository else None
        if branch not in (loop.branch, settings["base_branch"]):
            return
    switches = list(branch_effects(context, loop))
    yield from switches
    state = Path(context.gsd, STATE_NAME)
    if settings["state_md"] and not os.path.lexists(state):
        yield Effect(STATE_NAME, partial(_create_state_md, state, loop))
    tags = settings["checkpoints"] and loop.kind == "execute" and loop.phase is not None
    if tags and loop.is_active and repository is not None and repository.head() is not None:
        yield Effect("first checkpoint", partial(_set_first, context, loop, bool(switches)))


def _create_state_md(path: Path, loop: Loop) -> None:
    """Create the file; from then on every event updates it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(with_loop("", loop))
    except OSError as error:
        raise CannotWrite(f"{path} cannot be created: {error.strerror}") from error


def _set_first(context: Context, loop: Loop, after_switch: bool) -> Receipt | None:
    """Set the first checkpoint; raise NotDue if the branch was refused or a question is open."""
    if after_switch:
        _, loops = context.read()
        loop = loops.by_id[loop.id]
        if not is_new(loop) or any(branch_effects(context, loop)):
            raise NotDue
    tagged = set_first_checkpoint(context, loop)
    if tagged.warning:
        raise CannotWrite(tagged.warning)
    if tagged.tag is None:
        raise NotDue
    return tagged.receipt

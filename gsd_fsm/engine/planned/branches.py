"""Prepare the place of work of a planned loop: its branch, STATE.md and first checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.errors import CannotWrite, Refused, UsageError
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.views.state_md import with_loop
from gsd_fsm.core.views.write import STATE_NAME
from gsd_fsm.engine.context import Context, Effect
from gsd_fsm.engine.planned.checkpoints import (
    NO_COMMITS,
    awaits_first_checkpoint,
    rewritten_tasks,
    set_checkpoint,
)
from gsd_fsm.engine.planned.plan import (
    accept_plan_change,
    append_plan_change,
    append_question,
    is_new,
    is_unbegun,
    plan_path,
)
from gsd_fsm.engine.protection.protect import protected_anew

if TYPE_CHECKING:
    from gsd_fsm.git.repo import Repository


class NeededSwitch(NamedTuple):
    """A branch that should be checked out before the work begins, and the question about it."""

    repository: Repository
    branch: str
    question: str


def needed_switch(context: Context, settings: Mapping[str, Any]) -> NeededSwitch | None:
    """Return the switch from the base branch to that of the milestone, None if none is needed.

    Raise Refused if there is no milestone, UsageError if its name cannot be a branch.
    """
    base, prefix = str(settings["base_branch"]), str(settings["branch_prefix"])
    repository = context.repository if settings["branching"] == "milestone" else None
    if repository is None or repository.branch() != base:
        return None
    from gsd_fsm.plans.find import project_state

    is_foreign = (context.project / ".opti-gsd").is_dir()
    milestone = project_state(context.project).get("milestone") if is_foreign else None
    if not milestone:
        raise Refused(
            f"No Milestone Active: You're on {base} with branching: milestone configured, "
            "but no milestone is active.",
            f'Run: git checkout -b {prefix}NAME, and set "milestone" in .opti-gsd/state.json. '
            'Or set branching = "none" in .gsd/config.toml',
        )
    branch = f"{prefix}{milestone}"
    if branch == base:
        return None
    if not repository.is_branch_name(branch):
        raise UsageError(
            f"milestone {milestone!r} does not give a valid branch name: {branch!r}",
            'Use letters, digits and dashes for "milestone" in .opti-gsd/state.json.',
        )
    question = f"You're on {base} but milestone {milestone} exists. Switch to {branch}? [Y/n]"
    return NeededSwitch(repository, branch, question)


def other_branch(context: Context, loop: Loop) -> str | None:
    """Return the branch of the loop, if another one is checked out that lacks commits of the loop.

    None if it is not known or no longer exists: then commits that are missing were rewritten.
    """
    repository = context.repository_or_none()
    if repository is None or loop.branch in (None, repository.branch()):
        return None
    last = next(reversed(loop.checkpoints.values()), None)
    is_there = last is None or repository.contains(last)
    if is_there and not rewritten_tasks(context, loop):
        return None
    return loop.branch if repository.branch_commit(loop.branch) else None


def branch_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the switch to the branch of the loop, if its work would begin on the base branch."""
    if loop.branch is None or not is_unbegun(loop):
        return
    settings = context.settings()
    if settings["branching"] != "milestone" or loop.branch == settings["base_branch"]:
        return
    repository = context.repository_or_none()
    if repository is not None and repository.branch() == settings["base_branch"]:
        yield Effect(f"switch to branch {loop.branch}", partial(take_branch, context, loop))


def take_branch(context: Context, loop: Loop) -> None:
    """Check out the branch of the loop, accept its plan and ask what is next.

    If git refuses, or the plan on that branch cannot be used, pause the loop and raise Refused.
    """
    try:
        _check_out(context, loop, loop.branch or "")
        protected = protected_anew(context, loop)
        with context.writing(loop) as tx:
            for data in protected:
                tx.append("plan", data, by="cli")
            if context.may_decide(tx.loop):
                accept_plan_change(tx, context)
            else:
                append_plan_change(tx, context.project)
            append_question(tx)
    except (Refused, UsageError) as error:
        problem = f"branch {loop.branch} cannot be used: {error.message}"
        with context.writing(loop) as tx:
            tx.pause("blocking", problem)
        raise Refused(problem, error.hint) from error


def _check_out(context: Context, loop: Loop, branch: str) -> None:
    """Switch to the branch; raise Refused if git fails or the branch does not have the plan."""
    repository = context.repository
    if repository is None:
        raise Refused("the git work tree no longer exists")
    before = repository.branch()
    try:
        repository.switch(branch, create=repository.branch_commit(branch) is None)
    except CannotWrite as error:
        raise Refused(error.message) from error
    if not plan_path(context.project, loop).is_file():
        if before:
            repository.switch(before, create=False)
        raise Refused(f"it does not have {loop.plan.file}, which loop {loop.id} follows")


# effects of a start


def start_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the missing effects of a new loop; none on a branch that the user chose."""
    settings = context.settings()
    repository = context.repository_or_none()
    if loop.branch is not None and settings["branching"] == "milestone":
        branch = repository.branch() if repository else None
        if branch not in (loop.branch, settings["base_branch"]):
            return
    yield from branch_effects(context, loop)
    state = Path(context.gsd, STATE_NAME)
    if settings["state_md"] and not os.path.lexists(state):
        yield Effect(STATE_NAME, partial(_create_state_md, state, loop))
    if _wants_first(context, loop) and repository is not None and repository.head() is not None:
        yield Effect("first checkpoint", partial(_set_first, context, loop))


def checkpoint_notes(context: Context, loop: Loop) -> list[str]:
    """Return a note if a new loop cannot have a first checkpoint before there is a commit."""
    repository = context.repository_or_none() if _wants_first(context, loop) else None
    if repository is None or not is_new(loop) or repository.head() is not None:
        return []
    return [f"No checkpoint was set: {NO_COMMITS}. Without one there is nothing to roll back to."]


def _wants_first(context: Context, loop: Loop) -> bool:
    planned = loop.kind == "execute" and loop.is_planned and loop.phase is not None
    return planned and loop.is_active and bool(context.settings()["checkpoints"])


def _create_state_md(path: Path, loop: Loop) -> None:
    """Create the file; from then on every event updates it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(with_loop("", loop))
    except OSError as error:
        raise CannotWrite(f"{path} cannot be created: {error.strerror}") from error


def _set_first(context: Context, loop: Loop) -> bool:
    """Set the first checkpoint, unless the branch was refused or a question is open."""
    loop = context.receipt(loop).loop
    if not awaits_first_checkpoint(loop) or any(branch_effects(context, loop)):
        return False
    return set_checkpoint(context, loop, "pre") is not None

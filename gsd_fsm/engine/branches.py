"""Check out the branch that a loop works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.errors import CannotWrite, Refused, UsageError
from gsd_fsm.core.loop.events.waits import may_decide
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Effect, Receipt, receipt
from gsd_fsm.engine.follow_plan import (
    accept_plan_change,
    append_plan_change,
    append_question,
    awaits_branch,
    plan_path,
    repository_of,
)

if TYPE_CHECKING:
    from gsd_fsm.repository.branches import Switch as NeededSwitch
    from gsd_fsm.repository.repo import Repository


@dataclass(frozen=True)
class Switch:
    """The branch that a loop was to work on: None without git; and why it was not checked out."""

    branch: str | None
    problem: str
    receipt: Receipt


def needed_switch(
    project: Path, settings: Mapping[str, Any]
) -> tuple[Repository, NeededSwitch] | None:
    """Return the switch to the milestone's branch, if the base branch is checked out."""
    if settings["branching"] != "milestone":
        return None
    from gsd_fsm.plans.find import project_state
    from gsd_fsm.repository.branches import branch_switch
    from gsd_fsm.repository.repo import Repository

    repository = Repository.around(project)
    if repository is None:
        return None
    state = project_state(project) if (project / ".opti-gsd").is_dir() else {}
    switch = branch_switch(repository, settings, state.get("milestone"))
    return None if switch is None else (repository, switch)


def branch_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Return the switch to the branch of the loop, if its work would begin on the base branch."""
    settings = context.settings() if awaits_branch(loop) else {"branching": "none"}
    if settings["branching"] != "milestone" or loop.branch == settings["base_branch"]:
        return
    repository = repository_of(context.project)
    if repository is not None and repository.branch() == settings["base_branch"]:
        yield Effect(f"switch to branch {loop.branch}", lambda: _require_branch(context, loop))


def _require_branch(context: Context, loop: Loop) -> None:
    problem = take_branch(context, loop).problem
    if problem:
        raise Refused(problem)


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
    from gsd_fsm.repository.repo import Repository

    repository = Repository.around(context.project)
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

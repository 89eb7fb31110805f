"""Choose the plan that a loop follows, or that a user wants to see."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.follow_plan import plan_path
from gsd_fsm.texts import whole

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.repository.repo import Repository

Phase = int | str | None


def phase_of(text: str | None) -> Phase:
    if text is None:
        return None
    return int(text) if text.isdecimal() and len(text) < 16 else whole(text, "the phase", 100)


def plan_to_follow(
    kind: str, directory: Path, name: str | None, project: Path, phase: Phase
) -> Plan | None:
    """Return the named plan, else that of the phase, else that of the current phase.

    Return None if the project has no plans; a verify loop needs none in any case.
    """
    from gsd_fsm.plans.find import find_plan
    from gsd_fsm.plans.load import load_plan

    if name is not None:
        return load_plan(directory / name)
    if kind == "verify":
        with contextlib.suppress(NotFound):
            phase = _current_phase(project) if phase is None else phase
            return None if phase is None else load_plan(find_plan(project, phase))
        return None
    if phase is None:
        phase = _current_phase(project)
        if phase is None:
            _require_no_plans(project)
        return None if phase is None else load_plan(find_plan(project, phase))
    try:
        return load_plan(find_plan(project, phase))
    except NotFound:
        _require_project_state(project)
        raise


def plan_on_branch(repository: Repository, plan: Plan, branch: str) -> Plan:
    """Return the plan as it will be once this branch is checked out.

    Raise NotFound if the branch does not have the file, UsageError if its plan is invalid.
    """
    from gsd_fsm.plans.load import read_plan

    there, here = repository.branch_commit(branch), repository.head()
    if there is None or here is None or not repository.touched(here, there, [plan.path]):
        return plan  # a checkout leaves the file as it is
    content = repository.content(there, plan.path)
    if content is None:
        raise NotFound(f"branch {branch} does not have {plan.path}", "Add the plan to that branch.")
    return read_plan(plan.path, content)


def plan_to_show(context: Context, phase: str | None, file: str | None) -> Path:
    """Return the path of the named plan, else of the loop's, else of the current phase's."""
    from gsd_fsm.plans.find import current_phase, find_plan

    if phase is not None and file is not None:
        raise UsageError("--phase and --plan exclude each other", "Leave one of them out.")
    if file is not None:
        return Path(context.directory) / file
    project = Path(context.gsd_or_new).parent
    wanted = phase_of(phase)
    if wanted is None:
        followed = _followed_plan(context)
        if followed is not None:
            return followed
        wanted = current_phase(project)
    if wanted is None:
        raise UsageError(
            "no plan is named, and there is no current phase",
            "Run: gsd-fsm plan show --phase N, or: gsd-fsm plan show --plan FILE",
        )
    return find_plan(project, wanted)


def _followed_plan(context: Context) -> Path | None:
    """Return the path of the loop's plan; None if there is no loop, or it has no plan."""
    try:
        _, loops = context.read()
        loop = context.loop(loops)
    except NotFound:
        if context.loop_id is not None:
            raise
        return None
    return plan_path(context.project, loop) if loop.is_planned else None


def _current_phase(project: Path) -> Phase:
    """Return the phase that the project's state names; raise NotFound if that file is missing."""
    from gsd_fsm.plans.find import current_phase, project_state

    if (project / ".opti-gsd").is_dir():
        project_state(project)
    return current_phase(project)


def _require_no_plans(project: Path) -> None:
    """Raise UsageError if the project has plans: then it must be clear which one is wanted."""
    from gsd_fsm.plans.find import planning_root

    root = planning_root(project)
    if (project / ".opti-gsd").is_dir() or (root / "plans").is_dir():
        raise UsageError(
            f"no phase is named, and {root} has no current one",
            "Run: gsd-fsm start execute --phase N. With tasks of your own: --task ID:TITLE",
        )


def _require_project_state(project: Path) -> None:
    """Raise NotFound if the files are missing without which no phase can be found."""
    from gsd_fsm.plans.find import project_state

    if (project / ".opti-gsd").is_dir():
        project_state(project)
    elif not (project / ".gsd").is_dir():
        raise NotFound(
            f"Not Initialized: no .opti-gsd/ or .gsd/ directory found in {project}",
            "With a plan of your own: gsd-fsm start execute --plan FILE. "
            "To add the hook: gsd-fsm init",
        )

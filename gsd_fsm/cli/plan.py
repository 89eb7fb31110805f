"""`plan`: look at a plan before, while and after a loop follows it."""

from __future__ import annotations

from pathlib import Path

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.planned import plan_path, project_of
from gsd_fsm.cli.planning import phase_of
from gsd_fsm.cli.voice import counted
from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.core.loop import is_planned
from gsd_fsm.core.places import find_gsd, new_gsd
from gsd_fsm.plans.find import current_phase, find_plan
from gsd_fsm.plans.graph import mermaid_of
from gsd_fsm.plans.load import BrokenPlan, load_plan
from gsd_fsm.plans.plan import Plan
from gsd_fsm.plans.view import plan_lines, plan_view


@click.command()
@click.argument("action", type=click.Choice(("show", "check", "graph")))
@click.option("--phase", metavar="N", help="The phase whose plan is meant.")
@click.option("--plan", "file", metavar="FILE", help="The plan itself.")
@verb
def plan(call: Call, *, action: str, phase: str | None, file: str | None) -> None:
    """Show a plan, check it, or draw its waves and dependencies as Mermaid.

    Without an option: the plan that the loop follows, else that of the current phase.
    """
    path = _wanted(call, phase, file)
    if action == "check":
        _check(call, path)
        return
    found = load_plan(path)
    if action == "graph":
        drawn = mermaid_of(found)
        call.answer({"file": str(path), "mermaid": drawn}, drawn)
    else:
        call.answer(plan_view(found), "\n".join(plan_lines(found)))


def _check(call: Call, path: Path) -> None:
    try:
        found = load_plan(path)
    except BrokenPlan as broken:
        if not call.json:
            raise BrokenPlan(path, broken.problems, shown=len(broken.problems)) from broken
        problems = [{"line": it.line, "what": it.what} for it in broken.problems]
        facts = {"ok": False, "file": str(path), "problems": problems, "warnings": []}
        call.answer(facts, "")
        raise click.exceptions.Exit(UsageError.exit_code) from broken
    facts = {
        "ok": True,
        "file": str(path),
        "digest": found.digest,
        "tasks": len(found.tasks),
        "waves": len(found.waves),
        "problems": [],
        "warnings": list(found.warnings),
    }
    call.answer(
        facts, "\n".join([_verdict(path, found), *(f"warning: {it}" for it in found.warnings)])
    )


def _verdict(path: Path, found: Plan) -> str:
    work = f"{counted(len(found.tasks), 'task')} in {counted(len(found.waves), 'wave')}"
    return f"{path}: ok, {work}, no problem found"


def _wanted(call: Call, phase: str | None, file: str | None) -> Path:
    if phase is not None and file is not None:
        raise UsageError("--phase and --plan each name a plan", "leave one of them out")
    if file is not None:
        return Path(call.start_directory) / file
    project = _project(call)
    if phase is not None:
        wanted = phase_of(phase)
        return find_plan(project, wanted if wanted is not None else phase)
    followed = _followed(call)
    if followed is not None:
        return followed
    current = current_phase(project)
    if current is None:
        raise UsageError("which plan?", "gsd-fsm plan show --phase N, or --plan FILE")
    return find_plan(project, current)


def _project(call: Call) -> Path:
    try:
        return Path(find_gsd(call.start_directory)).parent
    except NotFound:
        return Path(new_gsd(call.start_directory)).parent


def _followed(call: Call) -> Path | None:
    """The plan of the live loop that is meant; None where there is no loop, or it has none."""
    try:
        journal, world = call.glance()
        loop = call.choose(world)
    except NotFound:
        if call.loop_id is not None:
            raise
        return None
    return plan_path(project_of(journal), loop) if is_planned(loop) else None

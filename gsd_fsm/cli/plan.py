"""gsd-fsm plan: show, validate and draw a plan."""

from __future__ import annotations

from pathlib import Path

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.output import unproven_facts, unproven_lines
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.questions import plural
from gsd_fsm.engine.planned.plan import plan_to_show, unproven_parts
from gsd_fsm.plans.load import BrokenPlan, load_plan
from gsd_fsm.plans.show import mermaid_of, plan_lines, plan_view


@click.command()
@click.argument("action", type=click.Choice(("show", "check", "graph")))
@click.option("--phase", metavar="N", help="Use the plan of this phase.")
@click.option("--plan", "file", metavar="FILE", help="Use this plan.")
@command_options
def plan(call: Call, *, action: str, phase: str | None, file: str | None) -> None:
    """Show a plan, validate it, or draw its waves.

    The default is the plan that the loop follows, else that of the current phase, else the only
    plan of the project. `graph` prints a Mermaid diagram of waves and dependencies.
    """
    path = plan_to_show(call.context, phase, file)
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
    unproven = unproven_parts(found)
    facts = {
        "ok": True,
        "file": str(path),
        "digest": found.digest,
        "tasks": len(found.tasks),
        "waves": len(found.waves),
        "problems": [],
        "warnings": list(found.warnings),
        **unproven_facts(unproven),
    }
    work = f"{plural(len(found.tasks), 'task')} in {plural(len(found.waves), 'wave')}"
    words = [f"{path}: ok, {work}, no problems found"]
    words += [f"warning: {it}" for it in found.warnings]
    call.answer(facts, "\n".join(words + unproven_lines(unproven)))

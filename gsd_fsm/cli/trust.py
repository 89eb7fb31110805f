"""gsd-fsm trust, ps: trust a journal, and list the live loops of all trusted ones."""

from __future__ import annotations

import os
from typing import Any

import click

from gsd_fsm.cli.call import Call, project_options, warn_of_missing_hook
from gsd_fsm.cli.display.page import Line, Moment, Part, Table, Words, status_word
from gsd_fsm.cli.output import say
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.loop.records import Criterion
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import register
from gsd_fsm.core.text.sanitize import display, harmless
from gsd_fsm.engine.journals import inspect_journal, live_loops
from gsd_fsm.engine.status import members

_HEADINGS = ("loop", "kind", "status", "progress", "last event", "project")


@click.command()
@project_options
def ps(call: Call) -> None:
    """List the live loops of all projects on this machine."""
    found = list(live_loops())
    rows = [_row(project, it) for project, it in found if isinstance(it, Loop)]
    problems = [
        {"project": project, "error": it.message}
        for project, it in found
        if isinstance(it, GsdError)
    ]
    page: list[Part] = [Line("No live loops.")]
    if rows:
        page = [Table(_HEADINGS, [_cells(row) for row in rows], bare=True)]
    page += [Line(f"! {it['project']}: {it['error']}") for it in problems]
    call.show({"loops": rows, "problems": problems}, page)
    here = os.fspath(call.context.directory)
    for project in dict.fromkeys(project for project, _ in found):
        live = [it for place, it in found if place == project and isinstance(it, Loop)]
        is_here = f"{here}{os.sep}".startswith(f"{project}{os.sep}")
        warn_of_missing_hook(project, live, here if is_here else "")


def _cells(row: dict[str, Any]) -> list[Words]:
    return [
        *(row["loop"], row["kind"], status_word(row["status"]), f"iteration {row['iteration']}"),
        *(Moment(row["last_event"]), display(row["project"])),
    ]


def _row(project: str, loop: Loop) -> dict[str, Any]:
    facts = members(loop, "kind status iteration owner goal last_event")
    return {"project": project, "loop": loop.id, **facts}


@click.command()
@project_options
def trust(call: Call) -> None:
    """Show the goals and commands of the journal here, then trust it."""
    foreign = inspect_journal(call.context)
    shown: list[dict[str, Any]] = []
    for loop in foreign.loops:
        checks = {name: _command(c) for name, c in loop.criteria.items() if c.check}
        row: dict[str, Any] = {"loop": loop.id, "status": loop.status, "goal": loop.goal}
        row["checks"] = checks
        if loop.is_planned:
            row.update(plan=loop.plan.file, commands=foreign.plan_commands[loop.id])
        shown.append(row)
    if not call.json:
        for line in (line for row in shown for line in _lines(row)):
            say(harmless(line))  # before anything is trusted
    register(foreign.journal_id, foreign.path, now_ms())
    state = "was already trusted" if foreign.is_trusted else "is now trusted"
    facts = {"journal": foreign.journal_id, "path": foreign.path, "already": foreign.is_trusted}
    words = f"Journal {foreign.journal_id} in {foreign.path} {state}."
    call.answer({**facts, "loops": shown}, display(words))


def _command(criterion: Criterion) -> str:
    where = f"in {criterion.directory}: " if criterion.directory else ""
    return f"{where}{criterion.check}"


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [f"{row['loop']} ({row['status']}): {row['goal'] or 'no goal text'}"]
    lines += [f"    check {name}: {command}" for name, command in row["checks"].items()]
    if "plan" in row:
        lines.append(f"    plan {row['plan']}")
        lines += [f"    verify runs: {command}" for command in row["commands"]]
    return lines

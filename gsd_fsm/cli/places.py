"""`ps`, `trust`: the loops and journals of this user on this machine."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.planned import planned_commands
from gsd_fsm.cli.voice import say
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.core.places import is_registered, register, state_directory
from gsd_fsm.core.sanitize import display


def _registered() -> list[dict[str, str]]:
    """Every journal that was started or trusted here, by path; broken entries are passed over."""
    folder = os.path.join(state_directory(), "journals")
    entries = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        try:
            with open(os.path.join(folder, name), encoding="ascii") as file:
                entry = json.load(file)
            entries.append({"id": str(entry["id"]), "path": str(entry["path"])})
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(entries, key=lambda entry: entry["path"])


@click.command()
@verb
def ps(call: Call) -> None:
    """List the live loops of all projects on this machine."""
    loops: list[dict[str, Any]] = []
    problems: list[dict[str, str]] = []
    seen: set[str] = set()
    for entry in _registered():
        if not os.path.isdir(entry["path"]) or entry["path"] in seen:
            continue  # the project is gone, or a journal before this one was there
        try:
            world = Journal(entry["path"]).glance()
        except GsdError as error:
            seen.add(entry["path"])
            problems.append({"project": os.path.dirname(entry["path"]), "error": error.message})
            continue
        if world.journal != entry["id"]:
            continue
        loops += [
            {
                "project": os.path.dirname(entry["path"]),
                "loop": loop.id,
                "kind": loop.kind,
                "status": loop.status,
                "iteration": loop.iteration,
                "owner": loop.owner,
                "goal": loop.goal,
                "last_event": loop.last_event,
            }
            for loop in world.live()
        ]
    lines = [
        f"{row['loop']:<12}{row['kind']:<9}{row['status']:<11}iteration {row['iteration']:<5}"
        f"{row['last_event']}  {display(row['project'])}"
        for row in loops
    ] or ["No live loops."]
    lines += [display(f"! {problem['project']}: {problem['error']}") for problem in problems]
    call.answer({"loops": loops, "problems": problems}, "\n".join(lines))


@click.command()
@verb
def trust(call: Call) -> None:
    """Show what the journal here would tell an agent and run, then trust it from now on."""
    if call.caller.by == "agent":
        raise CannotWrite("an agent may not trust a journal", "ask the user to run 'gsd-fsm trust'")
    journal = call.journal()
    world = journal.read()
    if not world.seq:
        raise NotFound("the journal is empty", "gsd-fsm start --help")
    already = is_registered(world.journal, journal.path)
    shown = [
        {
            "loop": loop.id,
            "status": loop.status,
            "goal": loop.goal,
            "checks": {name: c["check"] for name, c in loop.criteria.items() if c["check"]},
            **_planned(journal, loop),
        }
        for loop in world.loops.values()
    ]
    lines = []
    for row in shown:
        lines.append(display(f"{row['loop']} ({row['status']}): {row['goal'] or 'no goal text'}"))
        lines += [
            display(f"    check {name}: {command}") for name, command in row["checks"].items()
        ]
        if "plan" in row:
            lines.append(display(f"    plan {row['plan']}"))
            lines += [display(f"    verify runs: {command}") for command in row["commands"]]
    if not call.json:
        for line in lines:
            say(line)  # before anything is trusted
    register(world.journal, journal.path, now_ms())
    state = "was trusted already" if already else "is trusted now"
    facts = {"journal": world.journal, "path": journal.path, "already": already, "loops": shown}
    call.answer(facts, display(f"Journal {world.journal} in {journal.path} {state}."))


def _planned(journal: Journal, loop: Loop) -> dict[str, Any]:
    if not is_planned(loop):
        return {}
    return {"plan": loop.plan["file"], "commands": planned_commands(journal, loop)}

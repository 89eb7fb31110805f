"""List the journals of this user on this machine, and trust one that came from elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import is_registered, state_directory
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.plan import plan_path


class Foreign(NamedTuple):
    """A journal that is not trusted yet: its loops, and the commands that they would run."""

    journal_id: str
    path: str
    is_trusted: bool
    loops: list[Loop]
    plan_commands: dict[str, list[str]]


def live_loops() -> Iterator[tuple[str, Loop | GsdError]]:
    """Yield each live loop of the registered projects, or why a journal cannot be read."""
    broken: set[str] = set()
    for journal_id, gsd in _registered():
        if not os.path.isdir(gsd) or gsd in broken:
            continue  # the project is gone, or an earlier journal was there
        project = os.path.dirname(gsd)
        try:
            loops = Journal(gsd).read_cached()
        except GsdError as error:
            broken.add(gsd)
            yield project, error
            continue
        if loops.journal_id == journal_id:
            yield from ((project, loop) for loop in loops.live())


def _registered() -> list[tuple[str, str]]:
    """Return id and directory of every journal started or trusted here; skip broken entries."""
    entries = []
    for path in sorted(Path(state_directory(), "journals").glob("*")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            entry = json.loads(path.read_text("ascii"))
            entries.append((str(entry["id"]), str(entry["path"])))
    return sorted(entries, key=lambda entry: entry[1])


def inspect_journal(context: Context) -> Foreign:
    """Return what the journal here would tell an agent and run; agents cannot trust it."""
    refuse_agents(context, "trust a journal", "trust")
    journal = context.journal
    loops = journal.read()
    if not loops.seq:
        raise NotFound("the journal is empty", "Run: gsd-fsm start --help")
    planned = [loop for loop in loops.by_id.values() if loop.is_planned]
    return Foreign(
        loops.journal_id,
        journal.path,
        is_registered(loops.journal_id, journal.path),
        list(loops.by_id.values()),
        {loop.id: _plan_commands(context, loop) for loop in planned},
    )


def refuse_agents(context: Context, what: str, command: str) -> None:
    """Raise CannotWrite if an agent does `what` with this command, whatever the user said."""
    if context.author.by == "agent":
        raise CannotWrite(f"agents cannot {what}", f"Ask the user to run: gsd-fsm {command}")


def _plan_commands(context: Context, loop: Loop) -> list[str]:
    """Return what `verify` would run: commands of the plan, and of the project's CI."""
    from gsd_fsm.plans.load import load_plan

    try:
        plan = load_plan(plan_path(context.project, loop), frozen=loop.plan.digest)
        found = [check.command for task in plan.tasks for check in task.checks if check.command]
    except GsdError as error:
        found = [f"(unknown: {error.message})"]
    settings = context.settings()
    return found + [text for name, text in settings.items() if name.startswith("ci_") and text]

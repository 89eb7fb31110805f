"""Protect the checks of a loop when it starts, and those that join it later."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.protection.files import files_here
from gsd_fsm.engine.protection.freeze import (
    DIGEST,
    Command,
    Frozen,
    Wishes,
    freeze,
    frozen_text,
    portions,
)
from gsd_fsm.protection.originals import Originals, drop_except
from gsd_fsm.subagents.context import test_command
from gsd_fsm.verify.ci import ci_checks

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan

TDD, CLEAN_SETUP = "tdd", "clean_setup"


def commands_of(
    kind: str,
    criteria: Iterable[Mapping[str, Any]],
    plan: Plan | None,
    frozen: Mapping[str, str | None],
) -> dict[str, Command]:
    """Return the commands of all checks of a loop, by check; `frozen` are those of the settings."""
    found = {
        spec["name"]: Command(spec["check"], spec.get("directory", ""))
        for spec in criteria
        if "check" in spec
    }
    if plan is not None and kind != "goal":
        from gsd_fsm.verify.run import task_jobs

        jobs = (job for task in plan.tasks for job in task_jobs(task))
        found.update({job.key: Command(job.command) for job in jobs if job.command is not None})
    found.update({name: Command(text) for name, text in frozen.items() if text})
    return found


def settings_commands(
    context: Context, kind: str, plan: Plan | None, settings: Mapping[str, Any]
) -> dict[str, str]:
    """Return the commands of the settings that such a loop runs, by the name of their check."""
    if kind == "verify":
        return ci_checks(settings)
    is_tested = plan is not None and any(task.test_required != "false" for task in plan.tasks)
    if kind == "execute" and is_tested:
        return {TDD: test_command(context.project, settings)}
    return {}


def ci_commands(loop: Loop, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the CI commands that `start` froze; those of the settings for an older loop."""
    if loop.rules is None or loop.rules.commands:
        return ci_checks(settings)
    now = ci_checks(settings)
    frozen = loop.protection.commands.items()
    return {
        name: as_run(loop, name, text, now)
        for name, text in frozen
        if text and name not in (TDD, CLEAN_SETUP)
    }


def as_run(loop: Loop, name: str, frozen: str, now: Mapping[str, str]) -> str:
    """Return the command to run; raise Refused if it has a secret and is not that of the settings."""
    if not frozen.startswith(DIGEST):
        return frozen
    text = now.get(name, "")
    if frozen_text(text) != frozen:
        raise Refused(
            f"the command of {name} changed after loop {loop.id} started; the original is not in the "
            "journal, because it contains a secret",
            f"Restore it, or run: {command_line('accept', loop.id, name)}",
        )
    return text


def note_changed_commands(
    context: Context, loop: Loop, frozen: Mapping[str, str], now: Mapping[str, str]
) -> None:
    """Note which commands of the settings differ from those that this loop runs."""
    for name in sorted(now.keys() | frozen.keys()):
        if now.get(name) != frozen.get(name):
            accept = f"To accept that, run: {command_line('accept', loop.id, name)}"
            context.notices.append(
                f"the settings have changed: {name} is now {now.get(name) or 'not set'}, but loop "
                f"{loop.id} runs {frozen.get(name) or 'nothing'} for it. {accept}"
            )


def named_files(plan: Plan | None) -> frozenset[str]:
    """Return the files that the tasks of a plan name: the work changes them."""
    tasks = plan.tasks if plan is not None else ()
    return frozenset(
        path for task in tasks for path in (*(f.path for f in task.files), *task.test_files)
    )


def freeze_here(
    context: Context,
    commands: Mapping[str, Command],
    wishes: Wishes,
    *,
    keeps_values: bool = False,
) -> Frozen | None:
    """Return what these checks depend on now; None if there is nothing to protect.

    `keeps_values`: also keep the variables that can change a result, to run the checks with them.
    """
    if not commands and not wishes.protect:
        return None
    frozen = freeze(commands, files_here(context), wishes, os.environ)
    return frozen.with_values(os.environ) if keeps_values else frozen


def keep_originals(context: Context, loop_id: str, frozen: Frozen, live: Iterable[str]) -> None:
    """Keep the contents of the protected files, and drop those of loops that have ended."""
    drop_except(context.gsd, {loop_id, *live})
    Originals(context.gsd, loop_id).save(
        reversed(frozen.originals)
    )  # the lists first: they must fit


def joining(
    context: Context,
    loop: Loop,
    commands: Mapping[str, Command],
    plan: Plan | None = None,
    *,
    anew: bool = False,
) -> list[dict[str, Any]]:
    """Return the events that protect these checks of a live loop, and keep the originals.

    `anew`: they replace what was protected before, since the work has not begun.
    """
    wishes = Wishes((), tuple(loop.protection.may_change), named_files(plan))
    frozen = freeze_here(context, commands, wishes)
    if frozen is None or loop.rules is None:
        return []
    originals = Originals(context.gsd, loop.id)
    known: set[tuple[str, ...]] = set()
    lost = ""
    if not anew:
        known = {(file.path, *file.parts) for file in loop.protection.files}
        before = originals.read(loop.protection.watched)
        lost = loop.protection.watched if before is None else ""  # which stays visible
        frozen = frozen.joined_to(before) if before is not None else frozen
    originals.save(frozen.originals)
    new = [it for it in frozen.protected if (it["path"], *it.get("parts", ())) not in known]
    parts: list[dict[str, Any]] = [{"protected": records} for records in portions(new)]
    first = parts.pop(0) if parts else {}
    start = {"anew": True} if anew else {}
    return [{**first, **start, "watched": lost or frozen.facts["watched"]}, *parts]


def protected_anew(context: Context, loop: Loop) -> list[dict[str, Any]]:
    """Return the events that protect the checks of a loop on the branch that is checked out now."""
    from gsd_fsm.plans.load import load_plan

    path = context.project / loop.plan.file
    plan = load_plan(path) if loop.is_planned and path.is_file() else None
    own = {name: it for name, it in loop.protection.commands.items() if name != CLEAN_SETUP}
    commands = commands_of(loop.kind, specs_of(loop), plan, own)
    return joining(context, loop, commands, plan, anew=True)


def specs_of(loop: Loop) -> list[dict[str, Any]]:
    """Return the criteria of a loop that have a check, as `start` describes them."""
    return [
        {"name": it.name, "check": it.check, "directory": it.directory}
        for it in loop.criteria.values()
        if it.check is not None
    ]

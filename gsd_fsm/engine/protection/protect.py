"""Protect the checks of a loop when it starts, and those that join it later."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, LoopTransaction
from gsd_fsm.engine.protection.files import Files, files_of
from gsd_fsm.engine.protection.freeze import Command, Frozen, Wishes, freeze, portions
from gsd_fsm.protection.originals import Originals, drop_except
from gsd_fsm.subagents.context import test_command
from gsd_fsm.verify.ci import ci_checks

if TYPE_CHECKING:
    from gsd_fsm.git.tree import Content
    from gsd_fsm.plans.plan import Plan

TDD = "tdd"


class Reading:
    """The content of the work tree, read in the background while a command does other work."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._found: Future[Content | None] = Future()
        if context.repository is None:
            self._found.set_result(None)
        else:
            Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        from gsd_fsm.git.tree import read_content

        try:
            self._found.set_result(read_content(self._context.project))
        except BaseException as error:  # noqa: BLE001 - it is raised where the content is used
            self._found.set_exception(error)

    def files(self) -> Files:
        """Return the files of the project; raise what git raised."""
        return files_of(self._context, self._found.result())


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
    return {name: text for name, text in loop.protection.commands.items() if text and name != TDD}


def named_files(plan: Plan | None) -> frozenset[str]:
    """Return the files that the tasks of a plan name: the work changes them."""
    tasks = plan.tasks if plan is not None else ()
    return frozenset(
        path for task in tasks for path in (*(f.path for f in task.files), *task.test_files)
    )


def freeze_here(commands: Mapping[str, Command], wishes: Wishes, reading: Reading) -> Frozen | None:
    """Return what these checks depend on now; None if there is nothing to protect."""
    if not commands and not wishes.protect:
        return None
    return freeze(commands, reading.files(), wishes, os.environ)


def keep_originals(context: Context, loop_id: str, frozen: Frozen, live: Iterable[str]) -> None:
    """Keep the contents of the protected files, and drop those of loops that have ended."""
    drop_except(context.gsd, {loop_id, *live})
    Originals(context.gsd, loop_id).save(frozen.originals)


def append_protected(tx: LoopTransaction, frozen: Frozen | None) -> None:
    """Append the protected files of checks that joined the loop."""
    for records in portions(frozen.protected) if frozen is not None else ():
        tx.append("plan", {"protected": records}, by="cli")

"""Repeat checks before a planned loop completes: what was proven must still be true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.loop.state import Loop, open_tasks
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.checkpoints import rewritten_tasks
from gsd_fsm.engine.planned.plan import append_consequences, frozen_plan
from gsd_fsm.engine.planned.proof import error_of
from gsd_fsm.engine.planned.verify import refute_round, require_same_tree
from gsd_fsm.engine.protection.witness import variables_of
from gsd_fsm.evidence.failure import failure_data
from gsd_fsm.evidence.interruption import Output
from gsd_fsm.verify.run import command_result, file_jobs, look, run_commands, task_jobs

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.verify.gaps import Result


def recheck(context: Context, loop: Loop) -> None:
    """Repeat all file and content checks of the plan; raise CheckFailed if one fails.

    All checks of a task whose commit is no longer on the branch are repeated. The task of a failed
    check has failed then, and is retried. Raise Refused if the last round of a verify loop no longer
    holds; another one is due then.
    """
    if loop.rules is None or not loop.is_planned or loop.kind == "goal":
        return
    if loop.kind == "verify":
        _require_round(context, loop)
    elif not open_tasks(loop) and loop.rules.prove:
        plan = frozen_plan(context.project, loop)
        failed = _failed_looks(context, plan, loop)
        if not failed:
            failed = _failed_commands(context, plan, loop, rewritten_tasks(context, loop))
        if failed:
            fail_again(context, loop, failed)


def _require_round(context: Context, loop: Loop) -> None:
    """Raise Refused if the content is not that of the last round, or a check of files fails now."""
    require_same_tree(context, loop)
    failed = _failed_looks(context, frozen_plan(context.project, loop), loop)
    results = [result for of_task in failed.values() for result in of_task]
    if results:
        refute_round(context, loop, f"a check fails now: {one_line(error_of('', results), 300)}")


def _failed_looks(context: Context, plan: Plan, loop: Loop) -> dict[str, list[Result]]:
    """Return the checks of files that fail now, by task; skipped tasks do not count."""
    found: dict[str, list[Result]] = {}
    for job in file_jobs(plan):
        task = loop.tasks.get(job.task.id) if job.task else None
        if task is not None and task.status == "skipped":
            continue
        if (job.file and loop.kind == "verify") or job.is_manual:
            continue
        result = look(job, context.project)
        if result.passed is False:
            found.setdefault(result.task or "", []).append(result)
    return found


def _failed_commands(
    context: Context, plan: Plan, loop: Loop, names: list[str]
) -> dict[str, list[Result]]:
    """Run the commands of these tasks again, because their history was rewritten; note that."""
    tasks = [task for task in plan.tasks if task.id in names]
    if not tasks:
        return {}
    jobs = [job for task in tasks for job in task_jobs(task) if job.command]
    commands = dict.fromkeys(job.command or "" for job in jobs)
    settings = context.settings()
    limit, reruns = float(settings["check_timeout_seconds"]), int(settings["check_reruns"])
    shell = context.check_shell() if commands else ""
    outcomes = dict(
        run_commands(
            commands,
            context.project,
            limit,
            Output(),
            shell=shell,
            reruns=reruns,
            variables=variables_of(context, loop),
        )
    )
    found: dict[str, list[Result]] = {}
    for job in jobs:
        result = command_result(job, outcomes[job.command or ""])
        if not result.passed:
            found.setdefault(result.task or "", []).append(result)
    named = ", ".join(task.id for task in tasks)
    again = "their checks were repeated" if jobs else "they have no commands to repeat"
    context.notices.append(f"the commits of {named} are no longer on this branch; {again}")
    return found


def fail_again(context: Context, loop: Loop, failed: dict[str, list[Result]]) -> None:
    """Record that checks of complete tasks fail now, and raise CheckFailed."""
    with context.writing(loop) as tx:
        for name, results in failed.items():
            task = tx.loop.tasks.get(name)
            if tx.loop.is_active and task is not None and task.status == "complete":
                alike = " ".join(result.key for result in results)
                data = failure_data(name, error_of("", results), "logic", alike=alike)
                tx.append("failure", {**data, "repeated": True}, by="cli")
        append_consequences(tx, context.project)
    results = [result for of_task in failed.values() for result in of_task]
    raise CheckFailed(
        f"a check of {', '.join(failed)} fails now: {one_line(error_of('', results), 300)}",
        f"Run: {command_line('next', loop.id)}",
    )

"""The plan of a loop: choose it, freeze it into events, and follow it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.codec import dumps, sha256
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.loop.completion import latest_tree, missing
from gsd_fsm.core.loop.decisions import due_events
from gsd_fsm.core.loop.state import Loop, open_gaps, open_tasks
from gsd_fsm.core.loop.waves import busy_tasks, can_start, current_wave, is_undecided, ready_tasks
from gsd_fsm.core.text.questions import pending_question, pending_wait
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import redact_or_reject
from gsd_fsm.documents.read import Unreadable, read_bytes
from gsd_fsm.engine.context import Context, Effect, LoopTransaction, one_of

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_fsm.git.repo import Repository
    from gsd_fsm.plans.claim import ManualCheck
    from gsd_fsm.plans.plan import Plan, PlanTask

Phase = int | str | None
# A line of the journal has its limit: a long list of tasks is spread over several events.
MOST_BYTES = 40_000
_ASKS_BY_SHAPE = {"colleague": "step", "tool-review": "wave"}


# the wanted plan


def phase_of(text: str) -> int | str:
    if text.isdecimal() and len(text) < 16:
        return int(text)
    return redact_or_reject(text, "the phase", 100)


def plan_to_follow(
    kind: str, directory: Path, name: str | None, project: Path, phase: Phase
) -> Plan:
    """Return the named plan, else that of the phase, else that of the current phase.

    Raise NotFound with the next command if there is none: a loop without work proves nothing.
    """
    from gsd_fsm.plans.find import current_phase, find_plan, planning_root
    from gsd_fsm.plans.load import load_plan

    if name is not None:
        return load_plan(directory / name)
    try:
        wanted = current_phase(project) if phase is None else phase
        if wanted is not None:
            return load_plan(find_plan(project, wanted, f"start {kind}"))
    except NotFound:
        _require_project_state(kind, project)
        raise
    _require_project_state(kind, project)
    raise NotFound(
        f"Phase Not Planned: no phase given, and {planning_root(project)} has no current phase",
        f"Run: gsd-fsm start {kind} --phase N, or: gsd-fsm start {kind} --task ID:TITLE",
    )


def _require_project_state(kind: str, project: Path) -> None:
    """Raise NotFound if the files are missing without which no phase can be found."""
    from gsd_fsm.plans.find import project_state

    if (project / ".opti-gsd").is_dir():
        project_state(project)
    elif not (project / ".gsd").is_dir():
        raise NotFound(
            f"Not Initialized: no .opti-gsd/ or .gsd/ directory found in {project}",
            f"Run: gsd-fsm start {kind} --plan FILE, or: gsd-fsm start {kind} --task ID:TITLE. "
            "To install the hook, run: gsd-fsm init",
        )


class Unproven(NamedTuple):
    """What no program can decide: it may be done, but only as a claim or by a verdict."""

    manual: list[ManualCheck]
    tasks: list[str]  # without a machine check
    criteria: list[str]  # without a check


def unproven_parts(plan: Plan) -> Unproven:
    """Return the manual checks of a plan, and its tasks without a machine check."""
    from gsd_fsm.plans.claim import has_machine_check, manual_checks

    claimed = [task.id for task in plan.tasks if not has_machine_check(task)]
    return Unproven(manual_checks(plan), claimed, [])


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
        raise NotFound(
            f"branch {branch} does not have {plan.path}", "Commit the plan to that branch."
        )
    return read_plan(plan.path, content)


def plan_to_show(context: Context, phase: str | None, file: str | None) -> Path:
    """Return the path of the named plan, else the loop's, the current phase's, or the only one."""
    from pathlib import Path

    from gsd_fsm.plans.find import current_phase, find_plan, only_plan

    if phase is not None and file is not None:
        raise UsageError("--phase and --plan cannot be used together", "Omit one of them.")
    if file is not None:
        return Path(context.directory) / file
    followed = _followed_plan(context) if phase is None else None
    if followed is not None:
        return followed
    wanted = current_phase(context.project) if phase is None else phase_of(phase)
    if wanted is not None:
        return find_plan(context.project, wanted, "plan show")
    only = only_plan(context.project)
    if only is None:
        raise UsageError(
            "no plan given, and there is no current phase",
            "Run: gsd-fsm plan show --phase N, or: gsd-fsm plan show --plan FILE",
        )
    return only


def _followed_plan(context: Context) -> Path | None:
    """Return the path of the loop's plan; None if there is no loop, or it has no plan."""
    try:
        loop = context.loop(context.read(trusted=False))
    except NotFound:
        if context.loop_id is not None:
            raise
        return None
    return plan_path(context.project, loop) if loop.is_planned else None


# a plan as events


def named_plan(directory: Path, name: str) -> dict[str, Any]:
    """Return name and digest of a plan, for a loop whose tasks do not come from it."""
    content = read_bytes(directory / name, hint="Pass a regular file to --plan.")
    return {"file": name, "digest": sha256(content).hexdigest()[:16]}


def frozen(plan: Plan, project: Path) -> dict[str, Any]:
    """Return what a loop keeps of its plan."""
    real = os.path.realpath(plan.path)
    root = os.path.realpath(project)
    is_inside = real.startswith(os.path.join(root, ""))
    return {
        "file": os.path.relpath(real, root).replace(os.sep, "/") if is_inside else real,
        "digest": plan.digest,
        "format": plan.format,
        "title": redact_or_reject(plan.title or "untitled", "the title of the plan", 500),
        "tasks": len(plan.tasks),
        "waves": len(plan.waves),
        "sequential": [wave.number for wave in plan.waves if wave.sequential],
    }


def portions(
    plan: Plan, carried: Mapping[str, dict[str, Any]] | None = None
) -> list[list[dict[str, Any]]]:
    """Return the tasks of the plan, in lists that fit into one event each.

    `carried`: what is known of tasks that another tool has begun, by id.
    """
    lists: list[list[dict[str, Any]]] = [[]]
    size = 0
    for task in plan.tasks:
        spec = {**_spec(task), **(carried or {}).get(task.id, {})}
        own = len(dumps(spec)) + 1
        size += own
        if size > MOST_BYTES:
            lists.append([])
            size = own
        lists[-1].append(spec)
    return lists


def _spec(task: PlanTask) -> dict[str, Any]:
    from gsd_fsm.verify.run import task_jobs

    spec: dict[str, Any] = {"id": task.id, "wave": task.wave}
    if task.title:
        spec["title"] = redact_or_reject(task.title[:200], "a title", 500)
    if task.depends:
        spec["depends"] = list(task.depends)
    if task.test_required == "true":
        spec["tests"] = True
    checks = sum(not job.is_manual for job in task_jobs(task))
    if checks:
        spec["checks"] = checks
    if any(file.action == "modify" for file in task.files):
        spec["modifies"] = True
    return spec


# the frozen plan


def plan_path(project: Path, loop: Loop) -> Path:
    return project / loop.plan.file


def has_changed(project: Path, loop: Loop) -> bool:
    """Return whether the plan differs from the one that was frozen into this loop."""
    try:
        content = read_bytes(plan_path(project, loop))
    except Unreadable:
        return True
    return bool(sha256(content).hexdigest()[:16] != loop.plan.digest)


def frozen_plan(project: Path, loop: Loop, only: Collection[str] | None = None) -> Plan:
    """Return the plan of this loop, or these tasks of it; raise Refused if it was changed."""
    from gsd_fsm.plans.load import load_plan

    plan = load_plan(plan_path(project, loop), only, loop.plan.digest)
    if plan.digest != loop.plan.digest:
        raise Refused(
            f"{plan.path} was changed after loop {loop.id} started",
            f"To accept the change, run: {command_line('resume', loop.id)}. "
            f"To restore the plan first, run: {command_line('pause', loop.id)}",
        )
    return plan


def lacks_tasks(loop: Loop) -> bool:
    """Return whether the loop was started without some tasks of its plan."""
    wanted = loop.plan.task_count or 0
    return loop.kind == "execute" and len(loop.tasks) < wanted and loop.is_live


def plan_effects(context: Context, loop: Loop) -> Iterator[Effect]:
    """Add the tasks that a killed `start` left out, unless the plan was changed since."""
    if not has_changed(context.project, loop):
        yield Effect("tasks of the plan", partial(_add_tasks, context, loop))


def _add_tasks(context: Context, loop: Loop) -> None:
    plan = frozen_plan(context.project, loop)
    with context.writing(loop) as tx:
        for specs in portions(plan):
            new = [spec for spec in specs if spec["id"] not in tx.loop.tasks]
            if new:
                tx.append("plan", {"tasks": new}, by="cli")
        append_question(tx)


def is_unbegun(loop: Loop) -> bool:
    """Return whether no work of a planned loop has begun."""
    if loop.checkpoints or loop.round:
        return False
    idle = all(task.status == "pending" for task in loop.tasks.values())
    return idle and loop.is_planned and loop.is_live


def is_new(loop: Loop) -> bool:
    """Return whether a planned loop may begin, and no work has begun."""
    return loop.status != "paused" and is_unbegun(loop)


# rules


def require_turn(loop: Loop, task_id: str) -> None:
    """Refuse to start a task out of turn; a running one may continue."""
    if not loop.is_planned or not loop.is_active:
        return
    if loop.kind == "verify":
        _require_gap(loop, task_id)
    task = loop.tasks.get(task_id)
    if loop.kind != "execute" or task is None:
        return
    if task.status not in ("pending", "failed", "checkpoint"):
        return
    ready = ready_tasks(loop)
    if task_id in ready or task.skip or not can_start(loop, task):
        return  # the state machine refuses open dependencies itself
    if is_undecided(loop, task):
        why = f"task {task_id} is waiting for your decision"
    elif task.wave == current_wave(loop):
        why = f"the tasks of wave {task.wave} run one at a time, and another task is next"
    else:
        why = f"task {task_id} is in wave {task.wave}, but wave {current_wave(loop)} is not done"
    now = f"Ready: {', '.join(ready[:20])}. " if ready else ""
    raise Refused(f"loop {loop.id} is {loop.status}: {why}", f"{now}Run: gsd-fsm next")


def _require_gap(loop: Loop, gap_id: str) -> None:
    """Refuse a fix whose gap is unknown, or that has not begun and awaits a decision."""
    if gap_id not in loop.gaps:
        raise Refused(f"loop {loop.id} has no gap {gap_id}", one_of(open_gaps(loop)))
    task = loop.tasks.get(gap_id)
    if task is not None and task.status == "running":
        return  # a gap that was found meanwhile must not refuse the report of this fix
    asked = pending_question(loop)
    about_all = asked is not None and asked[0].startswith("gaps:")
    if about_all or (task is not None and is_undecided(loop, task)):
        raise Refused(
            f"loop {loop.id} is {loop.status}: gap {gap_id} is waiting for your decision",
            "Run: gsd-fsm next",
        )


def unknown_work(loop: Loop, name: str) -> UsageError:
    known = [*open_tasks(loop), *open_gaps(loop)]
    return UsageError(f"loop {loop.id} has no task or gap {display(name)}", one_of(known))


def require_answered_checkpoint(context: Context, loop: Loop, task_id: str) -> None:
    """Raise Refused if an agent ends a checkpoint that the user has not answered."""
    task = loop.tasks.get(task_id)
    if task is not None and task.status == "checkpoint" and task.answer is None and loop.is_planned:
        context.require_human(loop, f"decide the checkpoint of task {task_id} in")


# what follows from a step


def append_consequences(tx: LoopTransaction, project: Path) -> None:
    """Append what follows from any step of a loop.

    Decisions are carried out, a wave that begins is recorded, a changed plan pauses the loop, and a
    question lets it wait.
    """
    for kind, data in due_events(tx.loop):
        tx.append(kind, data, by="cli")
    append_plan_change(tx, project)
    append_wave_files(tx, project)
    append_question(tx)


def append_wave_files(tx: LoopTransaction, project: Path) -> None:
    """Record the content of the files that a wave is to modify, when the wave first begins."""
    loop = tx.loop
    if not loop.is_planned or loop.kind != "execute" or not loop.proves_tasks or not loop.is_live:
        return
    wave = current_wave(loop) or 0
    tasks = [task for task in loop.tasks.values() if (task.wave or 0) == wave and task.modifies]
    if not tasks or str(wave) in loop.wave_files:
        return
    from gsd_fsm.plans.tdd_files import digests

    try:
        plan = frozen_plan(project, loop, [task.id for task in tasks])
    except Refused:
        return  # the plan was changed: the loop pauses
    paths = dict.fromkeys(
        file.path for task in plan.tasks for file in task.files if file.action == "modify"
    )
    for part in _parts(digests(project, tuple(paths))):
        tx.append("plan", {"wave": wave, "modified": part}, by="cli")


def _parts(known: dict[str, str | None]) -> Iterator[dict[str, str | None]]:
    """Yield parts that fit into one event each."""
    part: dict[str, str | None] = {}
    size = 0
    for path, digest in known.items():
        size += len(path) * 6 + 40
        if size > 40_000 and part:
            yield part
            part, size = {}, len(path) * 6 + 40
        part[path] = digest
    yield part


def append_plan_change(tx: LoopTransaction, project: Path) -> bool:
    """Pause an active loop whose plan was changed; return whether it was."""
    loop = tx.loop
    if not loop.is_active or not loop.is_planned or not has_changed(project, loop):
        return False
    name = loop.plan.file
    tx.append("plan", {"file": name, "changed": True}, by="cli")
    reason = f"{name} was changed after the loop started; resume accepts the change"
    if not plan_path(project, loop).is_file():
        reason = f"{name} is missing; restore it, then resume"
    tx.pause("plan", reason)
    return True


def append_question(tx: LoopTransaction) -> None:
    """Wait for the pending decision, once no task is under way."""
    loop = tx.loop
    if not loop.is_active or not (loop.is_planned or loop.shape) or busy_tasks(loop):
        return
    asked = pending_wait(loop)
    if asked is not None and not loop.is_planned:
        # Of a goal without a plan, only what its shape asks for; the hook asks the rest.
        by_shape = ("clarify", _ASKS_BY_SHAPE.get(loop.shape or ""))
        about = asked.get("about", "").partition(":")[0]
        if about not in by_shape or not missing(loop, latest_tree(loop)):
            return
    if asked is not None:
        tx.append("wait", {**asked}, by="cli")


def append_wait(tx: LoopTransaction, key: str, question: str) -> None:
    tx.append("wait", {"for": "human", "question": question, "about": key}, by="cli")


def _protect_new_checks(tx: LoopTransaction, context: Context, plan: Plan) -> None:
    """Protect what the checks of a plan depend on that replaces the frozen one."""
    from gsd_fsm.engine.protection.protect import commands_of, joining

    commands = commands_of(tx.loop.kind, (), plan, {})
    for data in joining(context, tx.loop, commands, plan):
        tx.append("plan", data, by="cli")


def accept_plan_change(tx: LoopTransaction, context: Context) -> None:
    """Replace the frozen plan by the file as it is now; only the user may decide that.

    New tasks join, pending ones take their new text, and tasks that are gone are skipped.
    """
    loop, project = tx.loop, context.project
    if not loop.is_planned:
        return
    if not has_changed(project, loop):
        if loop.plan.changed:
            tx.append("plan", {"changed": False}, by="cli")
        return
    if not plan_path(project, loop).is_file():
        raise Refused(
            f"{loop.plan.file} is missing, but loop {loop.id} follows it",
            f"Run: git checkout -- {loop.plan.file}, or: {command_line('cancel', loop.id)}",
        )
    context.require_human(loop, "accept the changed plan of")
    from gsd_fsm.plans.load import load_plan

    plan = load_plan(plan_path(project, loop))
    kept = {name: value for name, value in frozen(plan, project).items() if name != "format"}
    kept["count"] = kept.pop("tasks")
    if loop.kind != "execute":
        tx.append("plan", {**kept, "changed": False})
        _protect_new_checks(tx, context, plan)
        return
    _protect_new_checks(tx, context, plan)
    first, *more = portions(plan)
    tx.append("plan", {**kept, "changed": False, "tasks": first})
    for specs in more:
        tx.append("plan", {"tasks": specs})
    planned = plan.tasks_by_id()
    for task_id in open_tasks(loop) if loop.is_active else ():
        if task_id not in planned:
            gone = {"task": task_id, "status": "skipped", "summary": "no longer in the plan"}
            tx.append("task", gone, by="cli")

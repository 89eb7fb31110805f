"""What verbs share about a loop that follows a plan: the plan, its project, and its git repository."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from gsd_fsm.cli.call import Call, Event
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, current_wave, is_planned, open_gaps, open_tasks
from gsd_fsm.core.proof import latest_tree, missing
from gsd_fsm.core.question import pending_question
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.core.waves import is_undecided, ready_tasks, running_tasks

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.repository.repo import Repository

# Every verb loads this file: what only planned loops need is imported where they need it.

_BY_SHAPE = {"colleague": "step", "tool-review": "wave"}


def project_of(journal: Journal) -> Path:
    from pathlib import Path

    return Path(journal.path).parent


def values(journal: Journal) -> dict[str, Any]:
    """The settings in force here; only for a journal that is trusted."""
    from pathlib import Path

    from gsd_fsm import settings

    return {name: found.value for name, found in settings.load(Path(journal.path)).items()}


def plan_path(project: Path, loop: Loop) -> Path:
    return project / str(loop.plan["file"])


def has_changed(project: Path, loop: Loop) -> bool:
    """Whether the plan is not the one that was frozen into this loop."""
    import hashlib

    path = plan_path(project, loop)
    try:
        if not path.is_file():
            return True
        content = path.read_bytes()
    except OSError:
        return True
    return bool(hashlib.sha256(content).hexdigest()[:16] != loop.plan["digest"])


def frozen_plan(project: Path, loop: Loop, only: Collection[str] | None = None) -> Plan:
    """The plan of this loop, or these tasks of it; Refused if it was changed since it was frozen."""
    from gsd_fsm.plans.load import load_plan

    plan = load_plan(plan_path(project, loop), only)
    if plan.digest != loop.plan["digest"]:
        raise Refused(
            f"{plan.path} was changed after loop {loop.id} began with it",
            f"gsd-fsm --loop {loop.id} resume accepts it as it is now, "
            f"gsd-fsm --loop {loop.id} pause stops until it is as it was",
        )
    return plan


def planned_commands(journal: Journal, loop: Loop) -> list[str]:
    """What verifying this loop would run: commands of its plan, and of the project's CI."""
    from gsd_fsm.core.errors import GsdError
    from gsd_fsm.plans.load import load_plan

    try:
        plan = load_plan(plan_path(project_of(journal), loop))
        found = [check.command for task in plan.tasks for check in task.checks if check.command]
    except GsdError as error:
        found = [f"(unknown: {error.message})"]
    return found + [
        text for name, text in values(journal).items() if name.startswith("ci_") and text
    ]


def require_turn(loop: Loop, task_id: str) -> None:
    """Refuse to start a task whose turn it is not; what runs already may go on."""
    task = loop.tasks.get(task_id)
    if not is_planned(loop) or loop.status not in ACTIVE:
        return
    if loop.kind == "verify":
        _require_gap(loop, task_id)
    if loop.kind != "execute" or task is None:
        return
    if task["status"] not in ("pending", "failed", "checkpoint"):
        return
    ready = ready_tasks(loop)
    if task_id in ready or any(name in open_tasks(loop) for name in task["depends"]):
        return  # what it depends on is told by the state machine
    if is_undecided(loop, task):
        why = f"task {task_id} waits for the word of a human"
    elif task["wave"] == current_wave(loop):
        why = f"wave {task['wave']} does its tasks one at a time: it is not the turn of {task_id}"
    else:
        why = f"task {task_id} is of wave {task['wave']}, and wave {current_wave(loop)} is not done"
    now = f"can start now: {', '.join(ready)}" if ready else "finish what is running"
    raise Refused(f"loop {loop.id} is {loop.status}: {why}", f"{now}; gsd-fsm next")


def _require_gap(loop: Loop, gap_id: str) -> None:
    """Refuse a fix that nobody asked for, or that a human has a word to say about first."""
    if gap_id not in loop.gaps:
        known = ", ".join(open_gaps(loop)) or "none"
        raise Refused(f"loop {loop.id} has no gap {gap_id}", f"open: {known}")
    asked = pending_question(loop)
    task = loop.tasks.get(gap_id)
    about_all = asked is not None and asked[0].startswith("gaps:")
    if about_all or (task is not None and is_undecided(loop, task)):
        raise Refused(
            f"loop {loop.id} is {loop.status}: the fix of {gap_id} waits for the word of a human",
            "finish what is running; gsd-fsm next",
        )


def require_word(loop: Loop, task_id: str, event: Event) -> None:
    """Refuse an agent to end a checkpoint that no human has answered."""
    task = loop.tasks.get(task_id)
    open_ = task is not None and task["status"] == "checkpoint" and task["answer"] is None
    if open_ and is_planned(loop):
        needs_human(loop, event, f"decide the checkpoint of task {task_id} in")


def repository_of(journal: Journal) -> Repository | None:
    """The git repository here; None where there is none, or git will have nothing to do with it."""
    from gsd_fsm.core.errors import GsdError
    from gsd_fsm.repository.repo import Repository

    try:
        return Repository.around(project_of(journal))
    except GsdError:
        return None


def notices_change(call: Call, loop: Loop) -> Iterator[Event]:
    """The pause of a loop whose plan was changed behind its back."""
    if loop.status in ACTIVE and is_planned(loop) and has_changed(project_of(call.journal()), loop):
        name = str(loop.plan["file"])
        yield call.event("plan", loop, {"file": name, "changed": True}, by="cli")
        reason = f"{name} was changed after the loop began with it; resume accepts it as it is now"
        if not plan_path(project_of(call.journal()), loop).is_file():
            reason = f"{name} is gone; put it back, then resume"
        yield call.event("pause", loop, {"code": "plan", "reason": reason}, by="cli")


def asks(call: Call, loop: Loop) -> Iterator[Event]:
    """The wait for the decision that is pending, once no task is under way any more."""
    busy = [
        name for name in running_tasks(loop) if loop.kind != "verify" or name in open_gaps(loop)
    ]
    if loop.status not in ACTIVE or busy or not (is_planned(loop) or loop.shape):
        return
    asked = pending_question(loop)
    if asked is not None and not is_planned(loop):
        # Of a goal without a plan, what its shape asks for; the hook asks the rest.
        by_shape = asked[0].partition(":")[0] in ("clarify", _BY_SHAPE.get(loop.shape))
        asked = asked if by_shape and missing(loop, latest_tree(loop)) else None
    if asked is not None:
        yield waits(call, loop, *asked)


def waits(call: Call, loop: Loop, key: str, question: str) -> Event:
    """The wait for a human's answer to this question."""
    data = {"for": "human", "question": question, "about": key}
    return call.event("wait", loop, data, by="cli")


def follows(call: Call, loop: Loop) -> Iterator[Event]:
    """What comes of any step of a planned loop: a changed plan pauses, a pending decision waits."""
    yield from notices_change(call, loop)
    yield from asks(call, loop)

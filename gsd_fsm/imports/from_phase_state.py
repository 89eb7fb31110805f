"""`.opti-gsd/state.json`: the phase in progress, a task counter, and an execute or verify loop."""

from __future__ import annotations

import re
from typing import Any

from gsd_fsm.core.loop.limits import MOST_TASKS
from gsd_fsm.imports.findings import Findings, OldLoop, given
from gsd_fsm.imports.loop_section import phase_in, read_retries, read_section
from gsd_fsm.imports.members import MOST, Members, shown
from gsd_fsm.imports.position import BackgroundTask, Position
from gsd_fsm.plans.phase_name import same_phase

MEMBERS = frozenset(
    ("phase", "current_phase", "task", "loop", "phases", "phases_complete", "phases_in_progress",
     "phases_pending", "milestone")
)  # fmt: skip
LOOP_MEMBERS = frozenset(
    ("active", "type", "phase", "wave", "iteration", "background_tasks", "task_retries",
     "gaps_remaining", "last_error", "started", "paused", "pause_reason")
)  # fmt: skip
_LONGEST_REFERENCE = 200
# What the client says of a task whose result the old tool has not recorded.
_STARTED = ("running", "complete", "completed", "failed")


def read_phase_state(document: dict[str, Any], findings: Findings) -> OldLoop:
    """Return the loop, whose position is given by counters; report problems to `findings`."""
    members = Members(document, findings)
    loop = members.inner("loop")
    paused = loop.flag("paused")
    is_live = loop.flag("active") or paused
    counter = _counter(members, findings)
    section = read_section(loop, findings, is_live=is_live, paused=paused)
    phase = _phase(members, section.phase, findings)
    if not is_live and not counter:
        findings.ended("the loop is neither active nor paused, and no task is done")
    elif phase is not None and any(same_phase(it, phase) for it in _complete(members)):
        findings.ended(f"phase {phase} is complete")
    position = Position(
        counter,
        _background_tasks(loop, findings),
        read_retries(loop.inner("task_retries"), findings),
        loop.count("wave"),
    )
    loop.ignore_rest()
    start = given(kind=section.kind, phase=phase, carried=section.carried)
    return OldLoop("phase-state", start, section.limits, section.later, findings.notes, position)


def _counter(members: Members, findings: Findings) -> int:
    """Return the number of the last task that is done; a name such as T02 counts as its number."""
    value = members.take("task")
    named = re.fullmatch("T?([0-9]{1,9})", value) if isinstance(value, str) else None
    number = int(named[1]) if named else value
    if number is None or (type(number) is int and 0 <= number <= MOST_TASKS):
        return number or 0
    problem = f"must be a whole number from 0 to {MOST_TASKS}, not {shown(value)}"
    findings.problem(f"{members.path('task')} {problem}")
    return 0


def _phase(members: Members, of_loop: int | str | None, findings: Findings) -> int | str | None:
    """Return the phase of the loop, else the one that the file names for the project."""
    name = "phase" if members.has("phase") else "current_phase"
    phase = phase_in(members, findings, name)
    if of_loop is None:
        return phase
    if phase is not None and not same_phase(phase, of_loop):
        findings.problem(f"loop.phase is {of_loop}, but {name} is {phase}")
    return of_loop


def _complete(members: Members) -> list[Any]:
    """Return the phases that are complete, in whichever of its two places the file lists them."""
    listed = members.take("phases_complete")
    nested = members.take("phases")
    if listed is None and isinstance(nested, dict):
        listed = nested.get("complete")
    return listed if isinstance(listed, list) else []


def _background_tasks(loop: Members, findings: Findings) -> list[BackgroundTask]:
    """Return the tasks whose results are still due."""
    found = []
    for entry in loop.objects("background_tasks"):
        number = entry.take("task_num", required=True)
        if not (type(number) is int and 0 < number <= MOST) and not isinstance(number, str | None):
            problem = f"must be the number of a task, not {shown(number)}"
            findings.problem(f"{entry.path('task_num')} {problem}")
        reference = entry.text("task_id", _LONGEST_REFERENCE, required=True)
        status = entry.choice("status", ("pending", *_STARTED)) or "running"
        entry.ignore_rest()
        if status in _STARTED:
            found.append(BackgroundTask(entry.path("task_num"), number, reference or "", status))
    return found

"""A plan that was changed after its loop began with it: accepted by whoever may."""

from __future__ import annotations

from collections.abc import Iterator

from gsd_fsm.cli.call import Call, Event
from gsd_fsm.cli.planned import has_changed, plan_path, project_of
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.loop import Loop, is_planned, open_tasks
from gsd_fsm.core.table import ACTIVE


def accepts_change(call: Call, loop: Loop) -> Iterator[Event]:
    """Put the plan as it is now in the place of the frozen one.

    New tasks join, pending ones take their new words, and what the plan no longer has is skipped.
    """
    if not is_planned(loop):
        return
    project = project_of(call.journal())
    if not has_changed(project, loop):
        if loop.plan.get("changed"):
            yield call.event("plan", loop, {"changed": False}, by="cli")
        return
    if not plan_path(project, loop).is_file():
        raise Refused(
            f"{loop.plan['file']} is gone, and loop {loop.id} follows it",
            f"put it back (git checkout -- {loop.plan['file']}), or end the loop: "
            f"gsd-fsm --loop {loop.id} cancel",
        )
    needs_human(loop, call.event("plan", loop, {}), "accept another plan for")
    from gsd_fsm.cli.planning import accepted
    from gsd_fsm.plans.load import load_plan

    plan = load_plan(plan_path(project, loop))
    for data in accepted(plan, project):
        if loop.kind != "execute":
            data.pop("tasks")
        yield call.event("plan", loop, data)
    if loop.kind == "execute" and loop.status in ACTIVE:
        for task_id in open_tasks(loop):
            if plan.task(task_id) is None:
                gone = {"task": task_id, "status": "skipped", "summary": "no longer in the plan"}
                yield call.event("task", loop, gone, by="cli")

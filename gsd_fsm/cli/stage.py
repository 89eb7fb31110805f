"""`stage`: where a goal stands between intent and complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gsd_fsm.cli.call import Call, Event, verb
from gsd_fsm.cli.planned import project_of
from gsd_fsm.cli.start_options import kept_checks, shape_work
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.payloads import STAGES


@click.command()
@click.argument("name", type=click.Choice(STAGES), required=False)
@click.option(
    "--shape-file",
    metavar="FILE",
    help="Add the criteria, must-nots and verification of a SHAPE.md to the goal.",
)
@verb
def stage(call: Call, *, name: str | None, shape_file: str | None) -> None:
    """Enter a stage of a goal loop, by default the next one; no stage is skipped."""
    entered: list[str] = []
    more: dict[str, Any] = {}
    notes: list[str] = []
    if shape_file is not None:
        start = Path(call.start_directory)
        if not (start / shape_file).exists():
            start = project_of(call.journal())  # as the advice names it, wherever the agent is
        more, notes = shape_work(start, shape_file)
        # Only what it says joins the goal: a plan that was frozen stays the plan.
        more = {name: more[name] for name in ("criteria", "must_not") if name in more}

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        if more and loop.kind != "goal":
            raise Refused(
                f"loop {loop.id} is a loop of kind {loop.kind}: a shape belongs to a goal",
                "gsd-fsm start goal --help",
            )
        reached = STAGES.index(loop.stage) if loop.stage else -1
        if name is None and reached + 1 == len(STAGES):
            raise Refused(
                f"loop {loop.id} is in its last stage, {loop.stage}",
                "gsd-fsm next tells what to do",
            )
        entered.append(name or STAGES[reached + 1])
        yield call.event("stage", loop, {"stage": entered[0]})
        if more:
            own = {name: criterion["check"] for name, criterion in loop.criteria.items()}
            notes.extend(kept_checks(own, more["criteria"]))
            joins = any("check" in s and own.get(s["name"], "") is None for s in more["criteria"])
            yield call.event("plan", loop, {**more, **({"joins": True} if joins else {})})

    journal, loop = call.append(build)
    said = " ".join([f"Stage {entered[0]}.", *notes])
    facts = {"notes": notes} if more else {}
    call.acknowledge(journal, loop, said, stage=loop.stage, **facts)

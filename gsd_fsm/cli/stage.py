"""`stage`: where a goal stands between intent and complete."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.core.loop.events.goals import STAGES
from gsd_fsm.engine import goals


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
    entered = goals.enter_stage(call.context, name, shape_file)
    words = " ".join([f"Stage {entered.stage}.", *(entered.notes or [])])
    more = {} if entered.notes is None else {"notes": entered.notes}
    call.print_receipt(entered.receipt, words, stage=entered.stage, **more)

"""`status`, `why`: show a loop and explain its decisions; change nothing."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.voice import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.engine import status as engine
from gsd_fsm.render import panel


@click.command()
@click.option(
    "--check",
    is_flag=True,
    help="Exit 0 completed, 10 active, 11 waiting, 12 paused, 13 cancelled, 3 none.",
)
@verb
def status(call: Call, *, check: bool) -> None:
    """Show the selected loop, or else the one that ended last."""
    found = engine.status(call.context)
    lines = panel(found.view, found.loop, trusted=found.is_trusted)
    say(dumps(found.view) if call.json else "\n".join(lines))
    if found.is_stopped and not call.json:
        say(f"{'hook':<10} disabled by .gsd/STOP; remove the file to enable it")
    call.report_unfinished()
    if check:
        raise click.exceptions.Exit(engine.CHECK_CODES[found.loop.status])


@click.command()
@click.argument("seq", type=click.IntRange(1), required=False)
@verb
def why(call: Call, *, seq: int | None) -> None:
    """Explain why the last stop, or that of event SEQ, was allowed or blocked."""
    from gsd_fsm.engine.status import explain

    found = explain(call.context, seq)
    call.report_unfinished()
    words = {"block": "Blocked", "allow": "Allowed"}.get(found.decision, "No stop")
    facts = {name: value for name, value in vars(found).items() if name != "ts"}
    call.answer(
        facts,
        display(f"{words} ({found.code}) at event {found.seq}, {found.ts}. {found.why}"),
    )

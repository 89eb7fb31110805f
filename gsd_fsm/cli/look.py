"""`status`, `why`: looking at a loop without touching it."""

from __future__ import annotations

import os
from typing import Any

import click

from gsd_fsm.cli.call import Call, head, verb
from gsd_fsm.cli.voice import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.disk import READ, close_directory, open_directory, open_regular
from gsd_fsm.core.errors import GsdError, NotFound, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.log import LOG_NAME
from gsd_fsm.core.places import is_registered
from gsd_fsm.core.sanitize import display
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.projections import status_view
from gsd_fsm.render import panel

CHECK_CODES = {
    "completed": 0,
    **dict.fromkeys(ACTIVE, 10),
    "waiting": 11,
    "paused": 12,
    "cancelled": 13,
}


@click.command()
@click.option(
    "--check",
    is_flag=True,
    help="Exit 0 completed, 10 active, 11 waiting, 12 paused, 13 cancelled, 3 none.",
)
@verb
def status(call: Call, *, check: bool) -> None:
    """Show the loop that is meant, or else the last one that ended."""
    journal, world = call.glance()
    loop = call.look_at(world)
    view = status_view(loop, head(journal))
    trusted = is_registered(world.journal, journal.path)
    say(dumps(view) if call.json else "\n".join(panel(view, loop, trusted=trusted)))
    if os.path.lexists(os.path.join(journal.path, "STOP")) and not call.json:
        say(f"{'switch':<10} .gsd/STOP switches the hook off; remove it to go on")
    if check:
        raise click.exceptions.Exit(CHECK_CODES[loop.status])


@click.command()
@click.argument("seq", type=click.IntRange(1), required=False)
@verb
def why(call: Call, *, seq: int | None) -> None:
    """Explain why the last stop, or that of event SEQ, was allowed or blocked."""
    from gsd_fsm.replay import Replay
    from gsd_fsm.timeline import DECISIONS, aftermath, explain_decision, follows, undecided

    replay = Replay(call.journal())
    replay.run()
    if seq is not None and seq > replay.world.seq:
        raise UsageError(
            f"the journal ends at event {replay.world.seq}", "gsd-fsm replay lists them"
        )
    meant = call.look_at(replay.world).id if seq is None else None
    decided: list[tuple[dict[str, Any], str]] = []
    pending: list[tuple[dict[str, Any], str]] = []

    def settle(world: World) -> None:
        # Whether a failure or gap paused its loop is seen only after it was folded.
        for event, source in pending:
            loop = world.loops.get(event["loop"])
            paused = loop is not None and loop.status == "paused" and source != "paused"
            if event["type"] in DECISIONS or paused or event["seq"] == seq:
                decided[:] = [(event, source)]
        pending.clear()

    def see(event: dict[str, Any], world: World) -> None:
        settle(world)
        before = world.loops.get(event["loop"])
        if event["seq"] == seq or (seq is None and event["loop"] == meant):
            pending.append((event, before.status if before else "idle"))

    replay.run(see)
    settle(replay.world)
    log = _hook_log(replay.journal.path)
    if not decided:
        more = undecided(log, "").strip() or "gsd-fsm status"
        raise NotFound("no stop of this loop was decided yet", more)
    event, source = decided[0]
    later: list[dict[str, Any]] = []
    replay.run(lambda other, _world: later.append(other) if follows(event, other) else None)
    replay.run(at=event["seq"])
    if event["loop"] not in replay.world.loops:
        raise UsageError(f"event {seq} belongs to no loop", "gsd-fsm replay lists the events")
    decision, code, reason = explain_decision(event, replay.world.loops[event["loop"]], source)
    reason += aftermath(event, later[0] if later else None)
    if seq is None:
        reason += undecided(log, event["ts"])
    facts = {"loop": event["loop"], "seq": event["seq"], "type": event["type"]}
    words = {"block": "Blocked", "allow": "Allowed"}.get(decision, "No stop")
    call.answer(
        {**facts, "decision": decision, "code": code, "why": reason},
        display(f"{words} ({code}) at event {event['seq']}, {event['ts']}. {reason}"),
    )


def _hook_log(gsd: str) -> str:
    """What the hook could not do; "" when there is nothing to read."""
    try:
        directory = open_directory(gsd)
        try:
            with open(open_regular(directory, LOG_NAME, READ), "rb") as file:
                return file.read(1 << 20).decode("ascii", "replace")
        finally:
            close_directory(directory)
    except (OSError, GsdError):
        return ""

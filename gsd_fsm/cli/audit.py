"""`replay`: the journal as a timeline, or the state it leads to."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.flow import parse_time
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.projections import status_view
from gsd_fsm.render import status_word, timeline_line
from gsd_fsm.replay import COMPARED, Replay, compare_with_machine
from gsd_fsm.timeline import what_changed

Event = dict[str, Any]


class _Lines:
    """Prints each event once the world after it is known."""

    def __init__(self, loop: str | None, as_json: bool) -> None:
        self.loop = loop
        self.as_json = as_json
        self._pending: tuple[Event, str | None] | None = None

    def see(self, event: Event, world: World) -> None:
        self.flush(world)
        if self.loop is not None and event["loop"] != self.loop:
            return
        before = world.loops.get(event["loop"]) if event["loop"] else None
        source = before.status if before else "idle" if event["type"] == "start" else None
        self._pending = (event, source)

    def flush(self, world: World) -> None:
        if self._pending is None:
            return
        event, source = self._pending
        self._pending = None
        after = world.loops.get(event["loop"]) if event["loop"] else None
        dest = after.status if after else None
        if self.as_json:
            names = ("seq", "ts", "type", "by")
            row = {name: event[name] for name in names}
            click.echo(dumps({**row, "from": source, "to": dest, "data": event["data"]}))
        else:
            click.echo(timeline_line(event, source, dest, what_changed(event)))


@click.command()
@click.option("--at", "at", type=click.IntRange(1), metavar="SEQ", help="Stop after this event.")
@click.option("--until", metavar="TIME", help="Stop before the first event after this time (UTC).")
@click.option("--events", is_flag=True, help="One JSON line for each event.")
@click.option("--strict", is_flag=True, help="Compare fold and machine beyond 100,000 events too.")
@verb
def replay(call: Call, *, at: int | None, until: str | None, events: bool, strict: bool) -> None:
    """Replay the journal: verify every line, fold every event, show the timeline.

    Never writes. An illegal transition or damage is refused with its line (exit code 5).
    """
    found = Replay(call.journal())
    limit = parse_time(until) if until else None
    quiet = call.json and not events
    lines = _Lines(call.loop_id, events or call.json)
    found.run(None if quiet else lines.see, at, limit)
    lines.flush(found.world)
    if at is not None and found.world.seq < at and limit is None:
        raise UsageError(f"the journal ends at event {found.world.seq}", "gsd-fsm replay")
    if at is None and limit is None and (strict or found.world.seq <= COMPARED):
        compare_with_machine(found.journal)
    if events:
        return
    _close(call, found)


def _close(call: Call, found: Replay) -> None:
    world = found.world
    try:
        loop = call.look_at(world) if world.loops else None
    except UsageError:
        if call.json:
            raise
        loop = None  # several are live: the timeline has shown them all
    view = status_view(loop, found.head) if loop else None
    if call.json:
        status = loop.status if loop else None
        facts = {"head": found.head, "events": world.seq, "status": status, "state": view}
        click.echo(dumps(facts))
        return
    click.echo(
        f"{world.seq} events, head {found.head}"
        + (f", loop {loop.id} {status_word(loop.status)}" if loop else "")
    )
    if found.journal.at.torn:
        click.echo(
            f"{found.journal.at.torn} torn bytes at the end; the next append sets them aside",
            err=True,
        )
    if world.backwards:
        click.echo(f"the clock went back {world.backwards} times; order is by seq", err=True)

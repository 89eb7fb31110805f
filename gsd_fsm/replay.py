"""Replaying a journal: fold every event anew, and let the machine check the fold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from gsd_fsm.bulk import in_bulk, watching
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import loop_to_dict

Event = dict[str, Any]
COMPARED = 100_000


class _Enough(Exception):
    pass


class Replay:
    """The world after the replayed events, and the head it stands at."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.world = World()
        self.head = ""

    def run(
        self,
        see: Callable[[Event, World], None] | None = None,
        at: int | None = None,
        until: str | None = None,
    ) -> None:
        """Fold up to event `at`, or up to the last event before the first one after `until`.

        `see` is called with each event and the world before it.
        """
        last: list[Event] = []

        def visit(event: Event) -> None:
            self._stop_if_done(event, at, until)
            if see is not None:
                see(event, self.journal.world)
            last[:] = [event]

        watched = see is not None or at is not None or until is not None
        reader = watching(visit) if watched else in_bulk
        try:
            self.world = self.journal.read(reader, hashlib.sha256)
            self.head = f"{self.world.seq}:{self.journal.at.sum}"
        except _Enough:
            self.world = self.journal.world
            self.head = f"{self.world.seq}:{last[0]['sum']}" if last else ""

    def compare(self, *, always: bool = False) -> None:
        """Let the machine replay the whole journal too, up to 100,000 events unless `always`."""
        if always or self.world.seq <= COMPARED:
            _compare_with_machine(self.journal)

    def _stop_if_done(self, event: Event, at: int | None, until: str | None) -> None:
        if at is not None and event.get("seq", 0) > at:
            raise _Enough
        if until is not None and str(event.get("ts")) > until:
            raise _Enough


def _compare_with_machine(journal: Journal) -> None:
    """Drive the machine event by event beside the fold; they must agree at every step."""
    from gsd_fsm.machine import MachineWorld

    machine = MachineWorld(journal.keep)
    seen: list[Event] = []

    def agree(world: World) -> None:
        if not seen:
            return
        event = seen.pop()
        machine.apply(event)
        ours, theirs = world.loops.get(event["loop"]), machine.loops.get(event["loop"])
        if ours is not None and theirs is not None and ours.status != theirs.status:
            raise GsdError(
                f"event {event['seq']}: the fold says {ours.status}, the machine {theirs.status}",
                "this is a bug in gsd-fsm; please report it with the journal",
            )

    def visit(event: Event) -> None:
        agree(journal.world)
        seen.append(event)

    world = journal.read(watching(visit), hashlib.sha256)
    agree(world)
    for loop in world.loops.values():
        if loop_to_dict(loop) != loop_to_dict(machine.loops[loop.id]):
            raise GsdError(
                f"fold and machine disagree about loop {loop.id}",
                "this is a bug in gsd-fsm; please report it with the journal",
            )

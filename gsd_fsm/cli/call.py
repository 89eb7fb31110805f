"""One call of a verb: which project, which loop, who calls, and how it answers."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import click

from gsd_fsm.caller import Caller, caller
from gsd_fsm.cli.voice import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import CannotWrite, NotFound, Refused, UsageError
from gsd_fsm.core.events import draft
from gsd_fsm.core.fold import World
from gsd_fsm.core.guards import Spent
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.payloads import is_id
from gsd_fsm.core.places import find_gsd, is_registered
from gsd_fsm.core.sanitize import display

Event = dict[str, Any]
MANY = 10**9
COUNT = click.IntRange(0, MANY)
ONE_OR_MORE = click.IntRange(1, MANY)
ID_RULE = "an id has 1 to 64 letters, digits, dots, dashes or underscores"


class Amount(click.FloatRange):
    """A number that can be counted with: finite, and not below zero."""

    name = "number"

    def __init__(self, *, above_zero: bool = False) -> None:
        super().__init__(0, MANY, min_open=above_zero)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:  # noqa: PLR0124 - NaN passes every range
            self.fail(f"{value} is not a finite number", param, ctx)
        return int(number) if number == int(number) else number


class Call:
    """What every verb starts from."""

    def __init__(self, project: str | None, loop: str | None, json: bool) -> None:
        if loop is not None and not is_id(loop):
            raise UsageError(f"{display(loop)} is not a loop id", "'gsd-fsm ps' lists the loops")
        self.start_directory = project_directory(project)
        # How this very call would be written again, up to its verb.
        self.command = f"gsd-fsm --project {shlex.quote(project)}" if project else "gsd-fsm"
        self.loop_id = loop
        self.json = json
        self.caller: Caller = caller()

    def journal(self) -> Journal:
        return Journal(find_gsd(self.start_directory), keep=self.loop_id)

    def choose(self, world: World) -> Loop:
        """The loop that is meant, live or named."""
        found = self._named(world) or self._meant(world)
        if found is None:
            last = world.last_ended()
            ended = f"; the last one, {last.id}, is {last.status}" if last else ""
            raise NotFound(f"there is no live loop{ended}", "gsd-fsm start --help")
        return found

    def look_at(self, world: World) -> Loop:
        """The loop that is meant, or else the last one that ended."""
        found = self._named(world) or self._meant(world) or world.last_ended()
        if found is None:
            raise NotFound("there is no loop yet", "gsd-fsm start --help")
        return found

    def _named(self, world: World) -> Loop | None:
        if self.loop_id is None:
            return None
        found = world.loops.get(self.loop_id)
        if found is None and self.loop_id in world.ended:
            raise Refused(f"loop {self.loop_id} has ended", "it is final; gsd-fsm start --help")
        if found is None:
            known = ", ".join(loop.id for loop in world.loops.values()) or "none"
            raise NotFound(f"there is no loop {self.loop_id}", f"the loops here: {known}")
        return found

    def _meant(self, world: World) -> Loop | None:
        live = world.live()
        own = [loop for loop in live if self.caller.session and loop.owner == self.caller.session]
        if own:
            return own[0]
        if len(live) > 1:
            names = ", ".join(f"{loop.id} ({loop.kind}, {loop.status})" for loop in live)
            raise UsageError(f"which loop? {names}", "name it: gsd-fsm --loop ID …")
        return live[0] if live else None

    def glance(self) -> tuple[Journal, World]:
        """The world for a reader; the whole journal if an old loop is asked for."""
        journal = self.journal()
        world = journal.glance()
        if self.loop_id in world.ended:
            world = journal.read()
        return journal, world

    def event(self, kind: str, loop: Loop | None, data: dict[str, Any], by: str = "") -> Event:
        """A draft by this caller."""
        members = self.caller.members()
        return draft(kind, loop.id if loop else None, by or self.caller.by, data, **members)

    def pause(self, loop: Loop, spent: Spent) -> Event:
        """The draft of the pause that a spent limit ends in."""
        return self.event("pause", loop, {"code": spent.code, "reason": spent.reason}, by="cli")

    def append(self, build: Callable[[Loop, World, int], Iterable[Event]]) -> tuple[Journal, Loop]:
        """Append what `build` drafts for the chosen loop, under the lock.

        A generator sees the loop as each event it has yielded leaves it.
        """
        journal = self.journal()
        chosen: list[Loop] = []

        def decide(world: World, now: int) -> Iterable[Event]:
            chosen.append(self.choose(world))
            return build(chosen[0], world, now)

        journal.transact(decide, lambda world: require_trust(world, journal.path))
        return journal, chosen[0]

    def append_one(self, kind: str, data: dict[str, Any], said: str, by: str = "") -> None:
        """The common case: one event, one answer."""
        journal, loop = self.append(lambda loop, _world, _now: [self.event(kind, loop, data, by)])
        self.acknowledge(journal, loop, said)

    def acknowledge(self, journal: Journal, loop: Loop, said: str, **more: Any) -> None:
        """Tell that the event is durable."""
        self.answer(
            {
                "loop": loop.id,
                "seq": journal.world.seq,
                "status": loop.status,
                "head": head(journal),
                **more,
            },
            display(f"{said} Loop {loop.id} is {loop.status}."),
        )

    def answer(self, facts: dict[str, Any], words: str) -> None:
        """One JSON object for scripts, or words for people, line by line."""
        say(dumps(facts) if self.json else display(words, lines=True))


def project_directory(project: str | None) -> str:
    """Where to start looking; the current directory may have been deleted under us."""
    try:
        start = os.path.abspath(project) if project else os.getcwd()
    except OSError as error:
        raise NotFound("the current directory no longer exists", "change into a project") from error
    if not os.path.isdir(start):
        raise NotFound(f"{display(start)} is not a directory", "--project names a directory")
    return start


def head(journal: Journal) -> str:
    return f"{journal.world.seq}:{journal.at.sum}"


def require_trust(world: World, path: str) -> None:
    """A journal that this user neither made nor trusted is not written to."""
    if not world.seq:
        raise NotFound("the journal is empty", "gsd-fsm start --help")
    if not is_registered(world.journal, path):
        raise CannotWrite(
            "this journal is not trusted: it was not started by you at this place",
            "look at it with 'gsd-fsm replay'; 'gsd-fsm trust' accepts it",
        )


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--json` and `--loop`, and a Call as its first argument."""

    @click.option("--loop", "loop_id", metavar="ID", default=None, help="The loop that is meant.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @click.pass_context
    @functools.wraps(function)
    def run(context: click.Context, /, loop_id: str | None, as_json: bool, **options: Any) -> None:
        outer = context.find_root().params
        call = Call(outer.get("project"), loop_id or outer.get("loop_id"), as_json)
        function(call, **options)

    return run

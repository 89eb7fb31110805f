"""`criterion`, `exit-signal`: claims of being done."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, Event, verb
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.sanitize import clean
from gsd_fsm.texts import keep


def find_criterion(loop: Loop, wanted: str) -> str:
    """The criterion with this text or name, or with this number."""
    wanted = clean(wanted).strip()
    if wanted in loop.criteria:
        return wanted
    names = list(loop.criteria)
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(names):
        return str(names[int(wanted) - 1])
    listed = "; ".join(f"{number} {name}" for number, name in enumerate(names, 1)) or "none"
    raise UsageError(f"loop {loop.id} has no criterion {wanted!r}", f"its criteria: {listed}")


@click.command()
@click.argument("criterion_id", metavar="ID")
@click.argument("verdict", type=click.Choice(("met", "unmet")))
@verb
def criterion(call: Call, *, criterion_id: str, verdict: str) -> None:
    """Declare a criterion met or unmet; ID is its text, its name or its number.

    A criterion that has a check is met only by `gsd-fsm check`.
    """

    def build(loop: Loop, _world: World, _now: int) -> list[Event]:
        data = {"criterion": find_criterion(loop, criterion_id), "met": verdict == "met"}
        return [call.event("criterion", loop, data)]

    journal, loop = call.append(build)
    call.acknowledge(journal, loop, f"Criterion {criterion_id} is {verdict}.")


@click.command("exit-signal")
@click.option("--reason", metavar="TEXT", help="Why the work is done.")
@verb
def exit_signal(call: Call, *, reason: str | None) -> None:
    """Say that the work is done; refused while a criterion is unmet."""
    call.append_one("exit", {"reason": keep(reason)} if reason else {}, "Exit signal given.")

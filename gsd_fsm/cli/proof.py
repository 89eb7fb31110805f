"""`criterion`, `exit-signal`, `review`: claims of being done."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.call import COUNT, Amount, Call, Event, verb
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


@click.command()
@click.argument("action", type=click.Choice(("begun", "passed", "failed", "light")))
@click.option("--score", type=Amount(), metavar="N", help="The reviewers' score.")
@click.option("--issues", type=COUNT, metavar="N", help="Findings of any severity.")
@click.option("--blockers", type=COUNT, metavar="N", help="Findings that must be resolved.")
@click.option("--wave", type=COUNT, metavar="N", help="The wave of a light review.")
@click.option("--report", metavar="TEXT", help="The findings, in short.")
@verb
def review(call: Call, *, action: str, report: str | None, **numbers: float | None) -> None:
    """Record the thorough review (begun, then passed or failed), or a light one of a wave."""
    if action == "light" and numbers["wave"] is None:
        raise UsageError("a light review belongs to a wave", "gsd-fsm review light --wave N")
    data: dict[str, Any] = {"action": action}
    data.update({name: value for name, value in numbers.items() if value is not None})
    if report:
        data["report"] = keep(report)
    call.append_one("review", data, f"Review {action}.")

"""`gap`, `verified`: what verification finds, and whether it passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.cli.call import ID_RULE, Call, Event, verb
from gsd_fsm.cli.planned import asks
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.fold import World
from gsd_fsm.core.guards import oscillating
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.core.payloads import is_id
from gsd_fsm.core.table import ACTIVE
from gsd_fsm.texts import keep
from gsd_fsm.verification.gaps import free_id, same_gap
from gsd_fsm.verification.round import spent_rounds
from gsd_fsm.verification.strategy import STRATEGIES, require_kind

_ACTIONS = {"found": "found", "close": "closed", "reopen": "reopened"}


@click.command()
@click.argument("action", type=click.Choice(tuple(_ACTIONS)))
@click.argument("gap_id", metavar="[ID]", required=False)
@click.option(
    "--kind",
    default="other",
    show_default=True,
    help=", ".join(STRATEGIES),
)
@click.option("--file", "file", metavar="PATH", help="Where the gap is.")
@click.option("--description", metavar="TEXT", help="What is missing or wrong.")
@click.option("--evidence", metavar="TEXT", help="What shows it.")
@verb
def gap(call: Call, *, action: str, gap_id: str | None, kind: str, **found: str | None) -> None:
    """Record a gap that was found, or close or reopen it by its id.

    A gap keeps its id: the same kind, file and description found again is the same gap. One that
    was closed and came back twice pauses the loop.
    """
    if gap_id is not None and not is_id(gap_id):
        raise UsageError(f"{gap_id!r} is not a gap id", ID_RULE)
    require_kind(kind)
    if action == "found" and not (found["description"] or "").strip():
        raise UsageError(
            "a gap needs --description",
            "gsd-fsm gap found --kind stub --file a.py --description TEXT",
        )
    if action != "found" and gap_id is None:
        raise UsageError(f"which gap? gsd-fsm gap {action} ID", "gsd-fsm status lists them")
    data: dict[str, Any] = {name: keep(text, 4_000) for name, text in found.items() if text}
    named: list[str] = []

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        details, done = data, _ACTIONS[action]
        named.append(gap_id or "")
        if action == "found":
            details = {"kind": kind, **data}
            known = same_gap(loop, details, gap_id)
            named[0] = known or gap_id or free_id(loop)
            if known is not None and loop.gaps[known]["status"] == "closed":
                done = "reopened"
        yield call.event("gap", loop, {"action": done, "gap": named[0], **details})
        spent = oscillating(loop) if done == "reopened" else None
        if spent and loop.status in ACTIVE:
            yield call.pause(loop, spent)

    journal, loop = call.append(build)
    paused = f" {loop.pause_reason}." if loop.status == "paused" else ""
    call.acknowledge(journal, loop, f"Gap {named[0]}: {_ACTIONS[action]}.{paused}", gap=named[0])


@click.command()
@click.argument("verdict", type=click.Choice(("pass", "fail")))
@click.option("--report", metavar="TEXT", help="What was verified, in short.")
@verb
def verified(call: Call, *, verdict: str, report: str | None) -> None:
    """Record one verification round and its verdict.

    The last round that the limit allows pauses the loop, unless it can complete.
    """
    data: dict[str, Any] = {"passed": verdict == "pass"}
    if report:
        data["report"] = keep(report)

    def build(loop: Loop, _world: World, now: int) -> Iterator[Event]:
        event = call.event("verified", loop, data)
        if data["passed"] and is_planned(loop):
            needs_human(loop, event, "declare the plan verified in")
        yield event
        spent = spent_rounds(loop, now)
        if spent and loop.status in ACTIVE:
            yield call.pause(loop, spent)
        yield from asks(call, loop)

    journal, loop = call.append(build)
    call.acknowledge(journal, loop, f"Verification: {verdict}.")

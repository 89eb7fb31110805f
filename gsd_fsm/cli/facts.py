"""`spend`, `note`, `mode`: facts that leave the status as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.cli.answer import take_branch
from gsd_fsm.cli.call import COUNT, Amount, Call, Event, verb
from gsd_fsm.cli.checkpoints import open_gate
from gsd_fsm.cli.plan_change import accepts_change
from gsd_fsm.cli.planned import asks
from gsd_fsm.cli.spending import spends
from gsd_fsm.core.advice import next_step
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.flow import needs_human
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.payloads import MODES
from gsd_fsm.core.question import may_decline
from gsd_fsm.render import spent_words
from gsd_fsm.texts import keep, read_text


@click.command()
@click.argument("usd", type=Amount(), required=False)
@click.option("--tokens", type=COUNT, metavar="N", help="Tokens used, where there is no price.")
@click.option("--what", metavar="TEXT", help="What it was spent on.")
@verb
def spend(call: Call, *, usd: float | None, tokens: int | None, what: str | None) -> None:
    """Record money or tokens spent; a spent budget pauses the loop unless it can complete."""
    if usd is None and tokens is None:
        raise UsageError("how much was spent?", "gsd-fsm spend USD [--tokens N]")
    data: dict[str, Any] = {} if usd is None else {"usd": usd}
    if tokens is not None:
        data["tokens"] = tokens
    if what:
        data["what"] = keep(what, 1_000)

    def build(loop: Loop, _world: World, now: int) -> Iterator[Event]:
        yield from spends(loop, now, call.event("spend", loop, data), call.pause)

    journal, loop = call.append(build)
    more = f" To go on: {next_step(loop)[1]}." if loop.status == "paused" else ""
    call.acknowledge(journal, loop, f"{spent_words(loop) or 'Nothing'} spent.{more}")


@click.command()
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE|-", help="Read the note from a file or stdin.")
@verb
def note(call: Call, *, text: str | None, file: str | None) -> None:
    """Leave a note for the agent; the next block delivers it, once."""
    words = read_text(text, file, "the note")
    if not (words or "").strip():
        raise UsageError("a note needs its text", "gsd-fsm note TEXT")
    call.append_one("note", {"text": keep(words or "", 4_000)}, "Noted.")


@click.command()
@click.argument("name", type=click.Choice(MODES))
@verb
def mode(call: Call, *, name: str) -> None:
    """Switch between asking a human at decisions and going on alone."""

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        event = call.event("mode", loop, {"mode": name})
        if name == "yolo":
            needs_human(loop, event, "end the questions of")
        yield event
        answers = branch or (name == "yolo" and may_decline(loop.asked))
        if answers and loop.status == "waiting":
            yield call.event("answer", loop, {"text": "go on without asking"})
            if branch:
                yield from accepts_change(call, loop)
        yield from asks(call, loop)

    branch = take_branch(call, declined=False) if name == "yolo" else ""
    journal, loop = call.append(build)
    open_gate(call, journal, loop)
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    call.acknowledge(journal, loop, f"Mode {name}.{branch}{asked}")

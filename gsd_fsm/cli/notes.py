"""gsd-fsm spend, note: record facts that leave the status as it is."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import COUNT, Amount, Call, verb
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.engine import notes as engine
from gsd_fsm.render import spent_words
from gsd_fsm.texts import keep, read_text


@click.command()
@click.argument("usd", type=Amount(), required=False)
@click.option("--tokens", type=COUNT, metavar="N", help="Number of tokens used.")
@click.option("--what", metavar="TEXT", help="Purpose of the spending.")
@verb
def spend(call: Call, *, usd: float | None, tokens: int | None, what: str | None) -> None:
    """Record money or tokens spent; a used-up budget pauses the loop unless it can complete."""
    if usd is None and tokens is None:
        raise UsageError("no amount given", "Run: gsd-fsm spend USD [--tokens N]")
    proof = engine.spend(call.context, usd, tokens, keep(what, 1_000) if what else None)
    loop = proof.loop
    more = f" To continue: {next_step(loop)[1]}." if loop.status == "paused" else ""
    call.print_receipt(proof, f"{spent_words(loop) or 'Nothing'} spent.{more}")


@click.command()
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE|-", help="Read the note from a file or stdin.")
@verb
def note(call: Call, *, text: str | None, file: str | None) -> None:
    """Leave a note for the agent; the next block delivers it, once."""
    words = read_text(text, file, "the note") or ""
    if not words.strip():
        raise UsageError("a note needs its text", "Run: gsd-fsm note TEXT")
    call.print_receipt(engine.leave_note(call.context, keep(words, 4_000)), "Noted.")

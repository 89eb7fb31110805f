"""gsd-fsm note, spend: leave a note for the agent, record money and tokens."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import AMOUNT, COUNT, Call, command_options
from gsd_fsm.cli.output import spent_words
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.documents.journal_text import read_option


@click.command()
@click.argument("usd", type=AMOUNT, required=False)
@click.option("--tokens", type=COUNT, metavar="N", help="Number of tokens used.")
@click.option("--what", metavar="TEXT", help="Purpose of the spending.")
@command_options
def spend(call: Call, *, usd: float | None, tokens: int | None, what: str | None) -> None:
    """Record money or tokens spent.

    If the budget is used up, the loop pauses, unless it can complete.
    """
    if usd is None and tokens is None:
        raise UsageError("no amount given", "Run: gsd-fsm spend USD [--tokens N]")
    from gsd_fsm.engine.tasks import spend as spend_budget

    proof = spend_budget(call.context, usd, tokens, what)
    loop = proof.loop
    more = f" To continue: {next_step(loop)[1]}." if loop.status == "paused" else ""
    call.print_receipt(proof, f"{spent_words(loop) or 'Nothing'} spent.{more}")


@click.command()
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE|-", help="Read the note from a file or stdin.")
@command_options
def note(call: Call, *, text: str | None, file: str | None) -> None:
    """Leave a note for the agent; the next block delivers it."""
    words = read_option(text, file, "the note") or ""
    if not words.strip():
        raise UsageError("no note given", "Run: gsd-fsm note TEXT")
    from gsd_fsm.engine.tasks import leave_note

    call.print_receipt(leave_note(call.context, words), "Noted.")

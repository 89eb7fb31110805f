"""gsd-fsm wait, pause, cancel: stop a loop for a while, or for good."""

from __future__ import annotations

from dataclasses import asdict

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.core.clock import to_iso, to_ms
from gsd_fsm.core.errors import UsageError
from gsd_fsm.engine import lifecycle as stops
from gsd_fsm.texts import keep


@click.command()
@click.argument("question", required=False)
@click.option(
    "--until", metavar="TIME", help="Wait until this time (UTC), at which the client's limit ends."
)
@verb
def wait(call: Call, *, question: str | None, until: str | None) -> None:
    """Wait for the user's answer, or until a throttled client may continue."""
    text = keep(question, 4_000) if question else ""
    if until:
        proof = stops.wait_until(call.context, parse_time(until), text or None)
    elif text.strip():
        proof = stops.ask(call.context, text)
    else:
        raise UsageError("no question given", "Run: gsd-fsm wait QUESTION")
    call.print_receipt(proof, "Waiting.")


def parse_time(text: str) -> str:
    """Return a time as the journal writes it, from any ISO 8601 text; without a zone it is UTC."""
    from datetime import datetime, timezone

    try:
        return to_iso(to_ms(text))
    except (ValueError, IndexError):
        pass
    try:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        if found.tzinfo is None:
            found = found.replace(tzinfo=timezone.utc)
        return to_iso(int(found.timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time", "Example: 2026-11-15T23:00:07Z") from error


@click.command()
@click.option("--reason", metavar="TEXT", help="Reason for the pause.")
@verb
def pause(call: Call, *, reason: str | None) -> None:
    """Pause a loop: the agent may stop, nothing is lost."""
    call.print_receipt(
        stops.pause(call.context, keep(reason, 2_000) if reason else None), "Paused."
    )


@click.command()
@click.option("--reason", metavar="TEXT", help="Reason for the cancellation.")
@verb
def cancel(call: Call, *, reason: str | None) -> None:
    """End a loop for good; report what was done and what remains."""
    ended = stops.cancel(call.context, keep(reason, 2_000) if reason else None)
    report = "".join(
        f" {what.capitalize()} done: {', '.join(share.done) or 'none'}; "
        f"remaining: {', '.join(share.remaining) or 'none'}."
        for what, share in ended.shares.items()
        if share.done or share.remaining
    )
    shares = {what: asdict(share) for what, share in ended.shares.items()}
    call.print_receipt(ended.receipt, f"Cancelled.{report}", **shares)

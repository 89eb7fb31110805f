"""`criterion`, `exit-signal`: declare the work done."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.engine import criteria


@click.command()
@click.argument("criterion_id", metavar="ID")
@click.argument("verdict", type=click.Choice(("met", "unmet")))
@verb
def criterion(call: Call, *, criterion_id: str, verdict: str) -> None:
    """Declare a criterion met or unmet; ID is its text, its name or its number.

    A criterion that has a check is met only by `gsd-fsm check`.
    """
    receipt = criteria.declare_criterion(call.context, criterion_id, met=verdict == "met")
    call.print_receipt(receipt, f"Criterion {criterion_id} is {verdict}.")


@click.command("exit-signal")
@click.option("--reason", metavar="TEXT", help="Why the work is done.")
@verb
def exit_signal(call: Call, *, reason: str | None) -> None:
    """Say that the work is done; refused while a criterion is unmet."""
    call.print_receipt(criteria.give_exit_signal(call.context, reason), "Exit signal given.")

"""`gap`, `verified`: record what verification finds, and whether it passed."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.core.errors import UsageError
from gsd_fsm.engine import verify as gaps
from gsd_fsm.verification.strategy import STRATEGIES, require_kind


@click.command()
@click.argument("action", type=click.Choice(("found", "close", "reopen")))
@click.argument("gap_id", metavar="[ID]", required=False)
@click.option("--kind", default="other", show_default=True, help=", ".join(STRATEGIES))
@click.option("--file", "file", metavar="PATH", help="The file with the gap.")
@click.option("--description", metavar="TEXT", help="What is missing or wrong.")
@click.option("--evidence", metavar="TEXT", help="Evidence for the gap.")
@verb
def gap(
    call: Call,
    *,
    action: str,
    gap_id: str | None,
    kind: str,
    description: str | None,
    **details: str | None,
) -> None:
    """Record a gap that was found, or close or reopen it by its id.

    A gap keeps its id: the same kind, file and description found again is the same gap. A gap that
    is reopened for the second time pauses the loop.
    """
    require_kind(kind)
    if action == "found":
        change = gaps.report_gap(
            call.context, description or "", kind=kind, gap_id=gap_id, **details
        )
    elif gap_id is None:
        raise UsageError(f"gap {action} needs the id of a gap", "Run: gsd-fsm status")
    else:
        act = gaps.close_gap if action == "close" else gaps.reopen_gap
        change = act(call.context, gap_id, description=description, **details)
    loop = change.receipt.loop
    paused = f" {loop.pause_reason}." if loop.status == "paused" else ""
    words = f"Gap {change.gap}: {change.action}.{paused}"
    call.print_receipt(change.receipt, words, gap=change.gap)


@click.command()
@click.argument("verdict", type=click.Choice(("pass", "fail")))
@click.option("--report", metavar="TEXT", help="A summary of what was verified.")
@verb
def verified(call: Call, *, verdict: str, report: str | None) -> None:
    """Record one verification round and its verdict.

    The last round that the limit allows pauses the loop, unless it can complete.
    """
    receipt = gaps.record_verdict(call.context, passed=verdict == "pass", report=report)
    call.print_receipt(receipt, f"Verification: {verdict}.")

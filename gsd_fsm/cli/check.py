"""gsd-fsm check, criterion, exit-signal: prove criteria and declare the work done."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, command_options, timeout_option
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.text.questions import plural
from gsd_fsm.engine import criteria


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@timeout_option
@command_options
def check(call: Call, *, names: tuple[str, ...], timeout: int | None) -> None:
    """Run the checks of a loop and record the evidence.

    Without NAME all checks run. Exit code 7 if one fails. The end of the output is redacted and
    recorded. A check that is interrupted records nothing.
    """
    run = criteria.run_checks(call.context, names, timeout=timeout, watch=call.screen)
    loop, failed = run.receipt.loop, run.failed
    if failed and not call.json:
        raise CheckFailed(
            f"{'check' if len(failed) == 1 else 'checks'} failed: {', '.join(failed)}",
            f"Fix the cause, then run: gsd-fsm --loop {loop.id} check",
        )
    checks = {
        name: {"exit_code": outcome.exit_code, "timed_out": outcome.timed_out}
        for name, outcome in run.outcomes.items()
    }
    words = f"{plural(len(run.outcomes), 'check')} passed."
    facts = {"checks": checks, "failed": failed}
    call.print_checked(run.receipt, words, facts, is_passed=not failed)


@click.command()
@click.argument("criterion_id", metavar="ID")
@click.argument("verdict", type=click.Choice(("met", "unmet")))
@command_options
def criterion(call: Call, *, criterion_id: str, verdict: str) -> None:
    """Declare a criterion met or unmet.

    ID is its text, name or number. A criterion with a check is met only by `gsd-fsm check`.
    """
    receipt = criteria.declare_criterion(call.context, criterion_id, met=verdict == "met")
    call.print_receipt(receipt, f"Criterion {criterion_id} is {verdict}.")


@click.command("exit-signal")
@click.option("--reason", metavar="TEXT", help="Why the work is done.")
@command_options
def exit_signal(call: Call, *, reason: str | None) -> None:
    """Declare the work done; refused while a criterion is unmet."""
    call.print_receipt(criteria.give_exit_signal(call.context, reason), "Exit signal given.")

"""`review`: light after a wave, thorough before the end; blockers become tasks."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import COUNT, Amount, Call, verb
from gsd_fsm.engine import goals


@click.command()
@click.argument("action", type=click.Choice(("begun", "passed", "failed", "light")))
@click.option("--score", type=Amount(), metavar="N", help="The reviewers' score.")
@click.option("--issues", type=COUNT, metavar="N", help="Findings of any severity.")
@click.option("--blockers", type=COUNT, metavar="N", help="Findings that must be resolved.")
@click.option(
    "--finding",
    "findings",
    multiple=True,
    metavar="SEVERITY:TEXT",
    help="A finding, BLOCKER, WARNING or SUGGESTION (repeatable).",
)
@click.option("--wave", type=COUNT, metavar="N", help="The wave of a light review.")
@click.option("--report", metavar="TEXT", help="The findings, in short.")
@verb
def review(
    call: Call,
    *,
    action: str,
    findings: tuple[str, ...],
    report: str | None,
    **numbers: float | None,
) -> None:
    """Record the thorough review (begun, then passed or failed), or a light one of a wave.

    A light review informs. A thorough one decides: each blocker that it leaves becomes a task.
    """
    done = goals.review(
        call.context,
        action,
        findings=[goals.parse_finding(text) for text in findings],
        report=report,
        **numbers,
    )
    tasks = f" To be resolved: {', '.join(done.tasks)}." if done.tasks else ""
    more = {"tasks": done.tasks} if done.tasks else {}
    call.print_receipt(done.receipt, f"Review {action}.{tasks}", **more)

"""gsd-fsm stage, score, review: take a goal from intent to its final review."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gsd_fsm.cli.call import AMOUNT, COUNT, Call, Number, command_options
from gsd_fsm.core.loop.events.goals import STAGES
from gsd_fsm.engine import goals
from gsd_fsm.engine.goals import DIMENSIONS, MOST_FAMILIARITY, MOST_POINTS

_WORDS = {
    "tool": "It continues on its own until it is complete.",
    "tool-review": "It waits for your decision after the light review of each wave.",
    "colleague": "It waits for your review after each step.",
    "blocked": "It does not start until the goal is clearer.",
}


def _dimensions(function: Callable[..., None]) -> Callable[..., None]:
    for name, words in reversed(DIMENSIONS.items()):
        points = Number(0, MOST_POINTS)
        option = click.option(f"--{name}", type=points, required=True, metavar="0-2", help=words)
        function = option(function)
    return function


@click.command()
@_dimensions
@click.option(
    "--familiarity",
    type=Number(0, MOST_FAMILIARITY),
    default=0,
    metavar="0-10",
    help="How familiar this kind of work is (default: 0).",
)
@command_options
def score(call: Call, *, familiarity: int, **points: int) -> None:
    """Record how clear the goal is, in five scores of 0 to 2.

    The spec score is the sum; below 5 the goal stays in intent. The fit score is spec × 5, plus 5
    for each of constraints, success and done with 2 points, plus familiarity. Shape: tool from 40,
    tool-review from 30, colleague from 25, otherwise blocked.
    """
    receipt = goals.score(call.context, points, familiarity)
    loop = receipt.loop
    # An unclear goal does not continue in any shape.
    asked = loop.question if loop.status == "waiting" else _WORDS[loop.shape or ""]
    words = f"Spec {loop.spec_score}/10, fit {loop.fit_score}: {loop.shape}. {asked}"
    facts: dict[str, Any] = {
        "spec_score": loop.spec_score,
        "fit_score": loop.fit_score,
        "shape": loop.shape,
    }
    call.print_receipt(receipt, words, **facts, stage=loop.stage)


@click.command()
@click.argument("name", type=click.Choice(STAGES), required=False)
@click.option(
    "--shape-file",
    metavar="FILE",
    help="Add the criteria, must-nots and verification of a SHAPE.md to the goal.",
)
@command_options
def stage(call: Call, *, name: str | None, shape_file: str | None) -> None:
    """Enter a stage of a goal loop (default: the next one)."""
    entered = goals.enter_stage(call.context, name, shape_file)
    stage = entered.receipt.loop.stage
    words = " ".join([f"Stage {stage}.", *(entered.notes or [])])
    more = {} if entered.notes is None else {"notes": entered.notes}
    call.print_receipt(entered.receipt, words, stage=stage, **more)


@click.command()
@click.argument("action", type=click.Choice(("begun", "passed", "failed", "light")))
@click.option("--score", type=AMOUNT, metavar="N", help="Score given by the reviewers.")
@click.option("--issues", type=COUNT, metavar="N", help="Number of findings of any severity.")
@click.option(
    "--blockers", type=COUNT, metavar="N", help="Number of findings that must be resolved."
)
@click.option(
    "--finding",
    "findings",
    multiple=True,
    metavar="SEVERITY:TEXT",
    help="Finding; severity BLOCKER, WARNING or SUGGESTION (repeatable).",
)
@click.option("--wave", type=COUNT, metavar="N", help="Wave of a light review.")
@click.option("--report", metavar="TEXT", help="Summary of the findings.")
@command_options
def review(
    call: Call,
    *,
    action: str,
    findings: tuple[str, ...],
    report: str | None,
    **numbers: float | None,
) -> None:
    """Record a thorough review, or a light one of a wave.

    A thorough review begins, then passes or fails; each of its blockers becomes a task. A light
    review only informs.
    """
    done = goals.review(
        call.context,
        action,
        findings=[goals.parse_finding(text) for text in findings],
        report=report,
        **numbers,
    )
    tasks = f" To resolve: {', '.join(done.tasks)}." if done.tasks else ""
    loop = done.receipt.loop
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    more = {"tasks": done.tasks} if done.tasks else {}
    call.print_receipt(done.receipt, f"Review {action}.{tasks}{asked}", **more)

"""gsd-fsm score, stage, review: lead a goal from intent to its last review."""

from __future__ import annotations

from collections.abc import Callable

import click

from gsd_fsm.cli.call import COUNT, Amount, Call, verb
from gsd_fsm.core.loop.events.goals import STAGES
from gsd_fsm.engine import goals
from gsd_fsm.engine.goals import DIMENSIONS, MOST_FAMILIARITY, MOST_POINTS

_WORDS = {
    "tool": "It goes on alone; you see it when it is complete.",
    "tool-review": "It waits for you after each wave.",
    "colleague": "It waits for you after each step.",
    "blocked": "It does not begin before the goal is clearer.",
}


def _dimensions(function: Callable[..., None]) -> Callable[..., None]:
    for name, words in reversed(DIMENSIONS.items()):
        points = click.IntRange(0, MOST_POINTS)
        option = click.option(f"--{name}", type=points, required=True, metavar="0-2", help=words)
        function = option(function)
    return function


@click.command()
@_dimensions
@click.option(
    "--familiarity",
    type=click.IntRange(0, MOST_FAMILIARITY),
    default=0,
    metavar="0-10",
    help="How well known this kind of work is.",
)
@verb
def score(call: Call, *, familiarity: int, **points: int) -> None:
    """Record how well the goal is understood, from 0 (open) to 2 (clear) in five respects.

    Spec score: the sum; below 5 the goal stays in intent. Fit score: spec × 5, and 5 for each of
    constraints, success and done that is clear, and familiarity. Shape: tool from 40, tool-review
    from 30, colleague from 25, else blocked.
    """
    scored = goals.score(call.context, points, familiarity)
    found, loop = scored.score, scored.receipt.loop
    # An unclear goal does not continue in any shape.
    asked = loop.question if loop.status == "waiting" else _WORDS[found.shape]
    words = f"Spec {found.spec}/10, fit {found.fit}: {found.shape}. {asked}"
    facts = {"spec_score": found.spec, "fit_score": found.fit, "shape": found.shape}
    call.print_receipt(scored.receipt, words, **facts, stage=loop.stage)


@click.command()
@click.argument("name", type=click.Choice(STAGES), required=False)
@click.option(
    "--shape-file",
    metavar="FILE",
    help="Add the criteria, must-nots and verification of a SHAPE.md to the goal.",
)
@verb
def stage(call: Call, *, name: str | None, shape_file: str | None) -> None:
    """Enter a stage of a goal loop, by default the next one; no stage is skipped."""
    entered = goals.enter_stage(call.context, name, shape_file)
    words = " ".join([f"Stage {entered.stage}.", *(entered.notes or [])])
    more = {} if entered.notes is None else {"notes": entered.notes}
    call.print_receipt(entered.receipt, words, stage=entered.stage, **more)


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

"""gsd-fsm history: list the loops that have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.cli.call import COUNT, Call, project_options
from gsd_fsm.cli.display.page import (
    Command,
    Fields,
    Line,
    Moment,
    Part,
    Piece,
    Short,
    Styled,
    Words,
    status_word,
)
from gsd_fsm.cli.display.people import duration
from gsd_fsm.cli.display.progress import progress
from gsd_fsm.cli.output import flat
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.loop.spending import money
from gsd_fsm.core.text.notices import counted
from gsd_fsm.core.text.questions import plural
from gsd_fsm.engine.history import History, PastLoop, event_count
from gsd_fsm.engine.history import history as read_history


@click.command()
@click.option(
    "--limit",
    type=COUNT,
    default=20,
    metavar="N",
    help="Show the last N loops (default: 20; 0: all).",
)
@project_options
def history(call: Call, *, limit: int) -> None:
    """List the loops that have ended, the latest first.

    Show the outcome, duration and cost of each, and what was proven or claimed.
    """
    context = call.context
    with progress("Reading the journal", event_count(context)) as advance:
        found = read_history(context, limit, advance)
    facts: dict[str, Any] = {"total": found.total, "loops": [it._asdict() for it in found.loops]}
    call.show(facts, _page(found))


def _page(found: History) -> Iterator[Part]:
    if not found.total:
        none = "No loop has ended yet. To see live loops, run: "
        yield Line([none, Command(command_line("status"))])
        return
    yield Fields([(it.loop, _lines(it)) for it in found.loops])
    earlier = found.total - len(found.loops)
    if earlier:
        words = f"{plural(earlier, 'earlier loop')}; to list all, run: "
        yield Line([Styled(words, "faint"), Command(command_line("history --limit 0"))])


def _lines(past: PastLoop) -> list[Words]:
    took = [duration(past.duration_ms), plural(past.iterations, "iteration")]
    if past.rounds:
        took.append(plural(past.rounds, "round"))
    if past.spent_usd:
        took.append(("~" if past.is_estimate else "") + money(past.spent_usd))
    elif past.spent_tokens:
        took.append(plural(past.spent_tokens, "token"))
    facts: list[Piece] = [f"{past.kind} · ", status_word(past.status), " ", Moment(past.ended)]
    goal, found = flat(past.goal), {"proven": past.proven, "claimed": past.claimed}
    proof = "; ".join(f"{word}: {counted(counts)}" for word, counts in found.items() if counts)
    return [
        [*facts, f" after {', '.join(took)}"],
        *([Short([Styled(goal, "strong")])] if goal else []),
        *([proof] if proof else []),
    ]

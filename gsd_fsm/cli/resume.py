"""gsd-fsm resume: continue after a pause, a question or an interruption."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from gsd_fsm.cli.answer import switch_words
from gsd_fsm.cli.call import ONE_OR_MORE, Amount, Call, verb
from gsd_fsm.cli.voice import counted
from gsd_fsm.engine import lifecycle as engine

_NAMES = {
    "max_iterations": "iterations",
    "max_retries": "retries",
    "max_rounds": "rounds",
    "budget_usd": "money",
    "max_tokens": "tokens",
    "max_minutes": "minutes",
}


@click.command()
@click.option(
    "--add-iterations",
    "max_iterations",
    type=ONE_OR_MORE,
    metavar="N",
    help="Add this many iterations to the limit.",
)
@click.option(
    "--add-retries",
    "max_retries",
    type=ONE_OR_MORE,
    metavar="N",
    help="Add this many retries of each task.",
)
@click.option(
    "--add-rounds",
    "max_rounds",
    type=ONE_OR_MORE,
    metavar="N",
    help="Add this many verification rounds.",
)
@click.option(
    "--add-budget",
    "budget_usd",
    type=Amount(above_zero=True),
    metavar="USD",
    help="Add this many US dollars to the budget.",
)
@click.option(
    "--add-tokens",
    "max_tokens",
    type=ONE_OR_MORE,
    metavar="N",
    help="Add this many tokens to the budget.",
)
@click.option(
    "--add-minutes",
    "max_minutes",
    type=Amount(above_zero=True),
    metavar="N",
    help="Add this many minutes of active time.",
)
@verb
def resume(call: Call, **more: float | None) -> None:
    """Continue a loop, in this session; counters and history stay.

    The whole journal is verified and replayed by the state machine first.
    """
    add = {name: value for name, value in more.items() if value is not None}
    done = engine.resume(call.context, add)
    loop = done.receipt.loop
    words = f"Resumed.{_limit_words(done, add)}{_interruption_words(done)}"
    words += switch_words(done.switch) if done.switch else ""
    words += f" {loop.question}" if loop.status == "waiting" else ""
    words += "" if loop.owner else " The next session that gets a prompt here will own it."
    call.print_receipt(done.receipt, words, **_facts(done))


def _facts(done: engine.Resumed) -> dict[str, Any]:
    if not done.receipt.loop.is_planned:
        return {}
    return {
        "running": [asdict(task) for task in done.running],
        "verified_commits": done.verified_commits,
        "missing_commits": done.missing_commits,
    }


def _limit_words(done: engine.Resumed, add: dict[str, float]) -> str:
    limits = done.receipt.loop.limits
    most = limits.max_iterations
    words = f" {most} iterations now." if "max_iterations" in add and most else ""
    unlimited = [word for name, word in _NAMES.items() if name in add and not getattr(limits, name)]
    if unlimited:
        words += f" It has no limit of {', '.join(unlimited)}: nothing was added."
    return words


def _interruption_words(done: engine.Resumed) -> str:
    words = ""
    if done.verified_commits:
        words += f" Commits of {counted(done.verified_commits, 'task')} verified."
    if done.missing_commits:
        words += f" Not on this branch any more: the commits of {', '.join(done.missing_commits)}."
    for task in done.running:
        ref = f" ({task.ref})" if task.ref else ""
        words += f" Task {task.task}{ref} was running: report it, or run it again."
    return words

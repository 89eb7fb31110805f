"""gsd-fsm answer, mode: decide for a loop."""

from __future__ import annotations

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.events.lifecycle import MODES
from gsd_fsm.engine import lifecycle as answers
from gsd_fsm.engine.branches import Switch
from gsd_fsm.texts import keep, read_text


@click.command()
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE|-", help="Read the answer from a file or stdin.")
@verb
def answer(call: Call, *, text: str | None, file: str | None) -> None:
    """Answer the question that a loop is waiting for; it continues where it was."""
    words = read_text(text, file, "the answer")
    if words is None:
        raise UsageError("an answer needs its text", "Run: gsd-fsm answer TEXT")
    _print(call, "Answered.", answers.answer(call.context, keep(words, 4_000)))


@click.command()
@click.argument("name", type=click.Choice(MODES))
@verb
def mode(call: Call, *, name: str) -> None:
    """Choose whether the loop asks the user at decisions (interactive) or not (yolo)."""
    _print(call, f"Mode {name}.", answers.set_mode(call.context, name))


def _print(call: Call, words: str, decision: answers.Decision) -> None:
    loop = decision.receipt.loop
    if decision.stays_on is not None:
        words += f" Continuing on {decision.stays_on}. Changes will be on base branch."
    if decision.switch is not None:
        words += switch_words(decision.switch)
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    call.print_receipt(decision.receipt, words + asked)


def switch_words(switch: Switch) -> str:
    if switch.problem:
        return f" {switch.problem[:1].upper()}{switch.problem[1:]}."
    if switch.branch is None:
        return " There is no git work tree here any more."
    return f" Switched to {switch.branch}."

"""`recall`: what earlier loops have to teach this one, accepted or dismissed by whoever knows."""

from __future__ import annotations

import shlex

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.output import counted
from gsd_fsm.engine import lessons as engine
from gsd_fsm.engine.lessons import Recalled, decide_lessons, is_number

_DECISIONS = ("--accept", "--dismiss")


class Numbers(click.Command):
    """A command whose decisions take every number that follows them: `--accept 1 3`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        told: list[str] = []
        option = ""
        for arg in args:
            if option and told[-1] != option and is_number(arg):
                told += [option, arg]
            else:
                name = arg.partition("=")[0]
                option = name if name in _DECISIONS else option if is_number(arg) else ""
                told.append(arg)
        return super().parse_args(ctx, told)


@click.command(cls=Numbers)
@click.argument("goal", required=False)
@click.option(
    "--accept", multiple=True, metavar="N…|all", help="Keep these lessons in mind in this loop."
)
@click.option("--dismiss", multiple=True, metavar="N…|all", help="These do not matter here.")
@command_options
def recall(
    call: Call, *, goal: str | None, accept: tuple[str, ...], dismiss: tuple[str, ...]
) -> None:
    """Show what went wrong in earlier loops and what ended it, for the goal of the loop or GOAL.

    Without an option nothing is recorded. An accepted lesson is told to the agent; one that is
    accepted or dismissed is not shown again, and the others keep their numbers.

    Example: gsd-fsm recall --accept 1 3 --dismiss 2
    """
    if accept or dismiss:
        done = decide_lessons(call.context, goal, list(accept), list(dismiss))
        words = f"Accepted: {_listed(done.accepted)}. Dismissed: {_listed(done.dismissed)}."
        loop = done.receipt.loop
        call.print_receipt(done.receipt, words, recalled=loop.recalled, dismissed=loop.dismissed)
    else:
        _show(call, engine.recall(call.context, goal), goal)


def _show(call: Call, found: Recalled, goal: str | None) -> None:
    loop = found.loop
    facts = {
        "lessons": [
            {
                "number": number,
                "loop": lesson.loop,
                "error": lesson.error,
                "ended": lesson.ended,
                "text": lesson.text,
            }
            for number, lesson in found.open.items()
        ],
        "recalled": [] if loop is None else loop.recalled,
        "dismissed": [] if loop is None else loop.dismissed,
    }
    lines = [f"{number:>2}  {lesson.text}" for number, lesson in found.open.items()]
    if not found.lessons:
        lines = ["No failure of an earlier loop is related to this goal."]
    elif not found.open:
        lines = [f"Already decided: {counted(len(found.lessons), 'lesson')}."]
    elif loop is None:
        lines.append("To accept them, start a loop: gsd-fsm start goal --help")
    else:
        again = f"{call.command} --loop {loop.id} recall"
        again += "" if goal is None else f" {shlex.quote(goal)}"
        lines.append(f"To accept one: {again} --accept N; to dismiss it: {again} --dismiss N")
    call.answer(facts, "\n".join(lines))


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"

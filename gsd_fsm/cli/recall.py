"""gsd-fsm recall: show lessons from earlier loops, and accept or dismiss them."""

from __future__ import annotations

import shlex

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.output import flat, quoted
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.text.questions import plural
from gsd_fsm.engine import lessons as engine
from gsd_fsm.engine.lessons import is_number

_DECISIONS = ("--accept", "--dismiss")


class Numbers(click.Command):
    """A command whose options take all numbers that follow: `--accept 1 3`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        expanded: list[str] = []
        option = ""
        for arg in args:
            if option and expanded[-1] != option and is_number(arg):
                expanded += [option, arg]
            else:
                name = arg.partition("=")[0]
                option = name if name in _DECISIONS else option if is_number(arg) else ""
                expanded.append(arg)
        return super().parse_args(ctx, expanded)


@click.command(cls=Numbers)
@click.argument("goal", required=False)
@click.option("--accept", multiple=True, metavar="N…|all", help="Show these lessons to the agent.")
@click.option("--dismiss", multiple=True, metavar="N…|all", help="Do not show these lessons again.")
@command_options
def recall(
    call: Call, *, goal: str | None, accept: tuple[str, ...], dismiss: tuple[str, ...]
) -> None:
    """Show lessons of earlier loops; accept or dismiss them.

    A lesson is a failure and how it ended; those related to the goal are shown. GOAL defaults to
    the goal of the loop. Accepted lessons are shown to the agent. Decided lessons are not shown
    again; the others keep their numbers.
    """
    if accept or dismiss:
        done = engine.decide_lessons(call.context, goal, list(accept), list(dismiss))
        accepted, dismissed = (", ".join(map(str, it)) or "none" for it in done[1:])
        words = f"Accepted: {accepted}. Dismissed: {dismissed}."
        loop = done.receipt.loop
        call.print_receipt(done.receipt, words, recalled=loop.recalled, dismissed=loop.dismissed)
    else:
        _show(call, engine.recall(call.context, goal), goal)


def _show(call: Call, found: engine.Recalled, goal: str | None) -> None:
    loop = found.loop
    facts = {
        "lessons": [
            {"number": number, **lesson._asdict()} for number, lesson in found.open.items()
        ],
        "recalled": [] if loop is None else loop.recalled,
        "dismissed": [] if loop is None else loop.dismissed,
    }
    shown = "\n".join(f"{number:>2}  {flat(lesson.text)}" for number, lesson in found.open.items())
    lines = [quoted("Learned in earlier loops here", shown, len(shown))]
    if not found.lessons:
        lines = ["No failure of an earlier loop is related to this goal."]
    elif not found.open:
        lines = [f"Already decided: {plural(len(found.lessons), 'lesson')}."]
    elif loop is None:
        lines.append("To accept them, start a loop: gsd-fsm start goal --help")
    else:
        again = command_line("recall", loop.id, "" if goal is None else shlex.quote(goal))
        lines.append(f"To accept one: {again} --accept N; to dismiss it: {again} --dismiss N")
    call.answer(facts, "\n".join(lines))

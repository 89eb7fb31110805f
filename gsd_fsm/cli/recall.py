"""`recall`: what earlier loops have to teach this one, accepted or dismissed by whoever knows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gsd_fsm.cli.call import Call, Event, require_trust, verb
from gsd_fsm.cli.voice import counted
from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop
from gsd_fsm.recall import Lesson, lessons
from gsd_fsm.texts import keep

_DECISIONS = ("--accept", "--dismiss")
_ALL = "all"


class Numbers(click.Command):
    """A command whose decisions take every number that follows them: `--accept 1 3`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        told: list[str] = []
        option = ""
        for arg in args:
            if option and told[-1] != option and _is_number(arg):
                told += [option, arg]
            else:
                name = arg.partition("=")[0]
                option = name if name in _DECISIONS else option if _is_number(arg) else ""
                told.append(arg)
        return super().parse_args(ctx, told)


def _is_number(text: str) -> bool:
    parts = text.split(",")
    return all(part == _ALL or (part.isdecimal() and len(part) < 10) for part in parts)


@click.command(cls=Numbers)
@click.argument("goal", required=False)
@click.option(
    "--accept", multiple=True, metavar="N…|all", help="Keep these lessons in mind in this loop."
)
@click.option("--dismiss", multiple=True, metavar="N…|all", help="These do not matter here.")
@verb
def recall(
    call: Call, *, goal: str | None, accept: tuple[str, ...], dismiss: tuple[str, ...]
) -> None:
    """Show what went wrong in earlier loops and what ended it, for the goal of the loop or GOAL.

    Without an option nothing is recorded. An accepted lesson is told to the agent; one that is
    accepted or dismissed is not shown again, and the others keep their numbers.

    Example: gsd-fsm recall --accept 1 3 --dismiss 2
    """
    journal, world = call.glance()
    require_trust(world, journal.path)
    loop = _loop(call, world, needed=goal is None or bool(accept or dismiss))
    wanted = goal if goal is not None else _goal(loop)
    found = lessons(Path(journal.journal_path()), wanted, before=loop.id if loop else None)
    numbered = dict(enumerate(found, 1))
    if loop is not None and (accept or dismiss):
        _decide(call, loop, numbered, accept, dismiss)
    else:
        _show(call, loop, numbered, wanted, asked=goal)


def _loop(call: Call, world: World, *, needed: bool) -> Loop | None:
    try:
        return call.choose(world)
    except NotFound:
        if needed:
            raise
        return None


def _goal(loop: Loop | None) -> str:
    goal = "" if loop is None else loop.goal or (loop.plan or {}).get("title")
    if not goal:
        raise UsageError("this loop has no goal", "name what is wanted: gsd-fsm recall GOAL")
    return str(goal)


def _decided(loop: Loop | None) -> set[str]:
    return set() if loop is None else {*loop.recalled, *loop.dismissed}


def _text(lesson: Lesson) -> str:
    """The lesson as the journal keeps it."""
    return keep(lesson.text, 2_000)


def _show(
    call: Call, loop: Loop | None, numbered: dict[int, Lesson], goal: str, *, asked: str | None
) -> None:
    decided = _decided(loop)
    left = {n: lesson for n, lesson in numbered.items() if _text(lesson) not in decided}
    facts = {
        "lessons": [
            {
                "number": n,
                "loop": lesson.loop,
                "error": lesson.error,
                "ended": lesson.ended,
                "text": lesson.text,
            }
            for n, lesson in left.items()
        ],
        "recalled": [] if loop is None else loop.recalled,
        "dismissed": [] if loop is None else loop.dismissed,
    }
    lines = [f"{n:>2}  {lesson.text}" for n, lesson in left.items()]
    if not numbered:
        lines = ["No failure of an earlier loop bears on this goal."]
    elif not left:
        lines = [f"Decided already: {counted(len(numbered), 'lesson')}."]
    elif loop is None:
        lines.append("A loop can accept them: gsd-fsm start goal --help")
    else:
        again = f"{call.command} --loop {loop.id} recall"
        again += "" if asked is None else f" {shlex.quote(goal)}"
        lines.append(f"To keep one in mind: {again} --accept N; to drop it: {again} --dismiss N")
    call.answer(facts, "\n".join(lines))


def _decide(
    call: Call,
    loop: Loop,
    numbered: dict[int, Lesson],
    accept: tuple[str, ...],
    dismiss: tuple[str, ...],
) -> None:
    decided = _decided(loop)
    accepted = _chosen(numbered, accept, decided)
    dismissed = _chosen(numbered, dismiss, decided)
    both = sorted({*accepted} & {*dismissed})
    if both:
        named = ", ".join(map(str, both))
        raise UsageError(f"lesson {named} is both accepted and dismissed", "choose one of the two")

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        for n in sorted([*accepted, *dismissed]):
            lesson = numbered[n]
            data: dict[str, Any] = {"kind": "recall", "text": _text(lesson), "source": lesson.loop}
            if n in dismissed:
                data["dismissed"] = True
            if data["text"] not in _decided(loop):  # somebody else may have been faster
                yield call.event("note", loop, data)

    call.loop_id = loop.id
    journal, loop = call.append(build)
    said = f"Accepted: {_listed(accepted)}. Dismissed: {_listed(dismissed)}."
    call.acknowledge(journal, loop, said, recalled=loop.recalled, dismissed=loop.dismissed)


def _chosen(numbered: dict[int, Lesson], given: tuple[str, ...], decided: set[str]) -> list[int]:
    """The numbers that are meant; each must be of a lesson that is not decided yet."""
    chosen: list[int] = []
    for part in ",".join(given).split(",") if given else ():
        if part.strip() == _ALL:
            chosen += [n for n, lesson in numbered.items() if _text(lesson) not in decided]
            continue
        number = int(part) if _is_number(part.strip()) else 0
        if number not in numbered:
            raise UsageError(f"there is no lesson {part.strip()}", "gsd-fsm recall lists them")
        if _text(numbered[number]) in decided:
            raise Refused(f"lesson {number} is decided already", "gsd-fsm recall lists the others")
        chosen.append(number)
    return list(dict.fromkeys(chosen))


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"

"""Recall what earlier loops learned, and accept or dismiss it for this loop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Receipt, receipt
from gsd_fsm.recall import Lesson, lessons
from gsd_fsm.texts import keep

ALL = "all"


@dataclass(frozen=True)
class Recalled:
    """The lessons for a goal by number; `open` are those not yet accepted or dismissed."""

    loop: Loop | None
    lessons: dict[int, Lesson]
    open: dict[int, Lesson]


@dataclass(frozen=True)
class Decided:
    """The numbers of the lessons that were accepted and dismissed."""

    receipt: Receipt
    accepted: list[int]
    dismissed: list[int]


def recall(context: Context, goal: str | None = None) -> Recalled:
    """Return the lessons of earlier loops for this goal, by default for that of the loop."""
    loop, numbered = _lessons(context, goal, needs_loop=goal is None)
    decided = _decided(loop)
    left = {number: it for number, it in numbered.items() if _text(it) not in decided}
    return Recalled(loop, numbered, left)


def decide_lessons(
    context: Context, goal: str | None, accept: list[str], dismiss: list[str]
) -> Decided:
    """Accept and dismiss lessons by number (or "all"); accepted ones reach the agent."""
    loop, numbered = _lessons(context, goal, needs_loop=True)
    decided = _decided(loop)
    accepted = _chosen(numbered, accept, decided)
    dismissed = _chosen(numbered, dismiss, decided)
    both = sorted({*accepted} & {*dismissed})
    if both:
        named = ", ".join(map(str, both))
        raise UsageError(f"lesson {named} is both accepted and dismissed", "Choose one of the two.")
    with context.transaction() as tx:
        loop = tx.loops.by_id[loop.id] if loop else context.loop(tx.loops)
        for number in sorted([*accepted, *dismissed]):
            lesson = numbered[number]
            data: dict[str, Any] = {"kind": "recall", "text": _text(lesson), "source": lesson.loop}
            if number in dismissed:
                data["dismissed"] = True
            if data["text"] not in _decided(loop):  # another process may have been faster
                tx.append(loop, "note", data)
    return Decided(receipt(tx, loop), accepted, dismissed)


def is_number(text: str) -> bool:
    """Return whether this selects lessons: numbers separated by commas, or `all`."""
    parts = text.split(",")
    return all(part == ALL or (part.isdecimal() and len(part) < 10) for part in parts)


def _lessons(
    context: Context, goal: str | None, *, needs_loop: bool
) -> tuple[Loop | None, dict[int, Lesson]]:
    journal, loops = context.read_trusted()
    loop = _loop(context, loops, needs_loop)
    wanted = goal if goal is not None else _goal(loop)
    found = lessons(Path(journal.journal_path()), wanted, before=loop.id if loop else None)
    return loop, dict(enumerate(found, 1))


def _loop(context: Context, loops: Loops, needed: bool) -> Loop | None:
    try:
        return context.loop(loops)
    except NotFound:
        if needed:
            raise
        return None


def _goal(loop: Loop | None) -> str:
    goal = "" if loop is None else loop.goal or loop.plan.title
    if not goal:
        raise UsageError("this loop has no goal", "Name the goal: gsd-fsm recall GOAL")
    return goal


def _decided(loop: Loop | None) -> set[str]:
    return set() if loop is None else {*loop.recalled, *loop.dismissed}


def _text(lesson: Lesson) -> str:
    """Return the lesson as the journal keeps it."""
    return keep(lesson.text, 2_000)


def _chosen(numbered: dict[int, Lesson], given: list[str], decided: set[str]) -> list[int]:
    """Return the selected numbers; raise unless each is of a lesson that is not decided yet."""
    chosen: list[int] = []
    for part in ",".join(given).split(",") if given else ():
        if part.strip() == ALL:
            chosen += [number for number, it in numbered.items() if _text(it) not in decided]
            continue
        number = int(part) if is_number(part.strip()) else 0
        if number not in numbered:
            raise UsageError(f"there is no lesson {part.strip()}", "Run: gsd-fsm recall")
        if _text(numbered[number]) in decided:
            raise Refused(f"lesson {number} is already decided", "Run: gsd-fsm recall")
        chosen.append(number)
    return list(dict.fromkeys(chosen))

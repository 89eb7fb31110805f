"""`start`: make a loop, with its limits frozen into its first event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gsd_fsm import settings
from gsd_fsm.cli.beginning import Beginning
from gsd_fsm.cli.call import COUNT, Amount, Call, Event, require_trust, verb
from gsd_fsm.cli.new_loop import (
    budget_notes,
    cancellation,
    journal_id_of,
    keep_state,
    locate,
    make_journal,
    new_id,
    others_running,
    owner_words,
    require_fit,
    require_on,
)
from gsd_fsm.cli.planning import phase_of, plan_file
from gsd_fsm.cli.start_options import block, limits_of, take_ways, work_of
from gsd_fsm.cli.voice import say
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import JOURNAL_NAME, Journal
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.payloads import KINDS, MODES
from gsd_fsm.core.places import is_registered
from gsd_fsm.core.sanitize import display
from gsd_fsm.texts import read_text, whole


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("goal", required=False)
@click.option("--goal-file", metavar="FILE|-", help="Read the goal from a file or stdin.")
@click.option("--phase", metavar="N", help="The phase this loop carries out.")
@click.option("--plan", metavar="FILE", help="The plan; its digest is frozen into the journal.")
@click.option("--mode", type=click.Choice(MODES), help="Ask a human at decisions, or go on.")
@click.option("--max-iterations", type=COUNT, metavar="N", help="0 is unlimited.")
@click.option("--max-retries", type=COUNT, metavar="N", help="Retries of each task.")
@click.option(
    "--stuck-limit", type=COUNT, metavar="N", help="Iterations without progress; 0 is off."
)
@click.option("--idle-limit", type=COUNT, metavar="N", help="Blocks without activity; 0 is off.")
@click.option("--budget", type=Amount(), metavar="USD", help="Pause when this much is spent.")
@click.option("--max-minutes", type=Amount(), metavar="N", help="Pause after this active time.")
@click.option("--max-tokens", type=COUNT, metavar="N", help="Pause when this many are used.")
@click.option(
    "--criterion", "criteria", multiple=True, metavar="TEXT", help="What must be true (repeatable)."
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="NAME=CMD",
    help="A criterion that a command proves (repeatable).",
)
@click.option("--task", "tasks", multiple=True, metavar="ID[:TITLE]", help="A task (repeatable).")
@click.option(
    "--step", "steps", multiple=True, metavar="TEXT", help="A step of the work (repeatable)."
)
@click.option(
    "--must-not",
    "must_not",
    multiple=True,
    metavar="TEXT",
    help="What must not happen (repeatable).",
)
@click.option(
    "--blocked-by",
    "blocked_by",
    multiple=True,
    metavar="ID=ID,…",
    help="Tasks or steps (S1, S2 …) that must be done before one (repeatable).",
)
@click.option(
    "--shape-file", metavar="FILE", help="Read criteria, must-nots and checks from a SHAPE.md."
)
@click.option(
    "--task-list",
    metavar="ID",
    help="Mirror this task list of the client; auto: the session's own; none: not even a named one.",
)
@click.option("--session-only", is_flag=True, help="Cancel the loop when its session ends.")
@click.option("--fresh", is_flag=True, help="Cancel the live loop that stands in the way.")
@verb
def start(
    call: Call, *, kind: str, goal: str | None, goal_file: str | None, fresh: bool, **options: Any
) -> None:
    """Start a loop: execute tasks, verify until no gap is left, or pursue a goal.

    Example: gsd-fsm start goal "All tests pass" --check tests="pytest -q"
    """
    start = Path(call.start_directory)
    data = _said(kind, read_text(goal, goal_file, "the goal"), options)
    by_hand = kind == "goal" or "tasks" in data
    if by_hand and options["plan"] is not None:
        data["plan"] = plan_file(start, options["plan"])
    gsd = locate(call)
    require_on(gsd)
    known = journal_id_of(gsd)
    found = _settings(gsd, known)
    begin = Beginning(kind, Path(gsd).parent, found, options["mode"] or found["mode"])
    if not by_hand:
        begin.choose(start, options["plan"], data.get("phase"))
        if begin.switch is not None:
            _require_room(call, gsd, known, kind, fresh)
            begin.change_branch(start, options["plan"])
        data.update(begin.data())
    tasks = data.get("tasks", ()) if begin.plan is None else begin.plan.tasks
    data.update(limits_of(found, options, len(tasks) if kind == "execute" else 0))
    begin.notes += budget_notes(call.start_directory, data["limits"])
    if kind == "goal":
        begin.notes += take_ways(data, found, options, start) + others_running(gsd, known)
    loop_id = new_id("lp", 6)
    event = {**call.event("start", None, data), "loop": loop_id}
    require_fit(event)
    if not known:
        make_journal(gsd)
    journal = Journal(gsd)
    cancelled: list[str] = []

    def decide(world: World, _now: int) -> Iterator[Event]:
        foreign = not world.live()
        for draft in cancellation(call, world, "start") if fresh else ():
            cancelled.append(draft["loop"])
            yield draft
        yield event
        begin.notes += keep_state(gsd, loop_id) if foreign else []
        yield from begin.events(call, world.loops[loop_id])

    journal.transact(decide, lambda world: require_trust(world, gsd))
    loop = journal.world.loops[loop_id]
    begin.finish(call, journal, loop)
    learnt = recalled(gsd, loop) if known and kind == "goal" else []
    made = ("" if known else f"Made the journal of {gsd}. ") + "".join(
        f"Cancelled loop {name}. " for name in cancelled
    )
    said = f"{made}Started {kind} loop {loop_id}.{begin.said(loop)}{owner_words(call, loop)}"
    facts = begin.facts(loop) if kind != "goal" else {"recall": learnt, "notes": begin.notes}
    call.acknowledge(journal, loop, said, **facts)
    if learnt and not call.json:
        say(display("\n".join(_recall_lines(learnt, loop)), lines=True))


def _settings(gsd: str, known: str) -> dict[str, Any]:
    """What the settings say here; those of a journal that is not trusted are not even read."""
    # A project without a journal is new to this user, who starts the loop by hand: it is obeyed.
    trusted = not known or is_registered(known, gsd)
    return {name: s.value for name, s in settings.load(Path(gsd), trusted=trusted).items()}


def _recall_lines(learnt: list[str], loop: Loop) -> list[str]:
    run = f"gsd-fsm --loop {loop.id} recall"
    return [
        "Learnt in earlier loops here:",
        *(f"  {number}. {text}" for number, text in enumerate(learnt, 1)),
        f"To keep them in mind: {run} --accept all. If they do not apply: {run} --dismiss all",
    ]


def _said(kind: str, goal: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """What the options say of the loop, whatever its project is."""
    if kind != "goal" and (options["shape_file"] or options["task_list"]):
        raise UsageError("a shape and a task list belong to a goal", "gsd-fsm start goal --help")
    if kind == "goal" and not (goal or "").strip():
        raise UsageError("a goal loop needs a goal", 'gsd-fsm start goal "All tests pass"')
    data: dict[str, Any] = {"kind": kind}
    if goal and goal.strip():
        data["goal"] = whole(goal, "the goal")
    work = ("criteria", "checks", "tasks", "steps")
    data.update(work_of(**{name: options[name] for name in work}))
    phase = phase_of(options["phase"])
    if phase is not None:
        data["phase"] = phase
    if options["must_not"]:
        data["must_not"] = [whole(text, "a must-not", 2_000) for text in options["must_not"]]
    if options["session_only"]:
        data["session_only"] = True
    if options["blocked_by"]:
        block(data.get("tasks", []), options["blocked_by"])
    return data


def recalled(gsd: str, loop: Loop) -> list[str]:
    """What earlier loops of this project have learnt about such a goal."""
    from gsd_fsm.recall import lessons

    found = lessons(Path(gsd) / JOURNAL_NAME, loop.goal, before=loop.id)
    return [lesson.text for lesson in found]


def _require_room(call: Call, gsd: str, known: str, kind: str, fresh: bool) -> None:
    """Refuse what the journal would refuse, before git is asked to change anything."""
    if not known:
        return
    world = Journal(gsd).glance()
    require_trust(world, gsd)
    if not fresh:
        rehearsal = call.event("start", None, {"kind": kind, "mode": "yolo", "limits": {}})
        rehearsal.update(
            {"v": 1, "seq": world.seq + 1, "ts": to_iso(now_ms()), "loop": "rehearsal"}
        )
        world.apply(rehearsal)

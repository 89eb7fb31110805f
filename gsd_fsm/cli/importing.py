"""`import`: take over the running loop of another tool, as it stands."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click

from gsd_fsm import settings
from gsd_fsm.cli.call import Call, Event, head, require_trust, verb
from gsd_fsm.cli.new_loop import (
    STATE_MD,
    cancellation,
    journal_id_of,
    keep_state,
    locate,
    make_journal,
    new_id,
    owner_words,
    require_fit,
    require_on,
    shows,
)
from gsd_fsm.cli.start_options import limits_of, ways_of
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.events import VERSION, draft
from gsd_fsm.core.fold import World
from gsd_fsm.core.guards import guard
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.loop_views import is_untouched
from gsd_fsm.core.places import is_registered
from gsd_fsm.core.sanitize import clean, display
from gsd_fsm.imports.load import load_loop
from gsd_fsm.imports.old_loop import EventData, OldLoop


@click.command("import")
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Show the events, and write nothing.")
@click.option("--fresh", is_flag=True, help="Cancel the live loop that stands in the way.")
@verb
def import_(call: Call, *, file: str, dry_run: bool, fresh: bool) -> None:
    """Take over a running loop of another tool, with all that it has counted.

    FILE is what that tool keeps it in: a STATE.md, a workflow-state.json or state.json of .loop,
    or a ralph-loop.local.md. Its content tells which; what it is called does not matter.
    """
    gsd = locate(call)
    path = Path(call.start_directory, file)
    name = _name(path, Path(gsd).parent)
    old = load_loop(path, display(name))
    known = journal_id_of(gsd)
    events = _events(old, name, gsd, trusted=not known or is_registered(known, gsd))
    loop_id = "ID" if dry_run else new_id("lp", 6)
    drafts = [{**call.event(kind, None, data), "loop": loop_id} for kind, data in events]
    whole = _rehearse(drafts, loop_id)
    notes = [*old.notes, *_notes(whole, name)]
    if dry_run:
        _show(call, old, events, notes)
        return
    require_on(gsd)
    if not known:
        make_journal(gsd)
    journal = Journal(gsd)
    cancelled: list[str] = []

    def decide(world: World, _now: int) -> Iterator[Event]:
        foreign = not world.live()
        for cancel in cancellation(call, world, "import") if fresh else ():
            cancelled.append(cancel["loop"])
            yield cancel
        for other in world.live():
            if other.carried.get("file") == name and _was_interrupted(other, whole):
                cancelled.append(other.id)
                why = {"reason": "its import was interrupted"}
                yield call.event("cancel", other, why, by="cli")
        _require_room(world, name, call.caller.session)
        yield from drafts
        kept = keep_state(gsd, loop_id) if foreign else []
        notes.extend(kept if name != STATE_MD else [])

    journal.transact(decide, lambda world: require_trust(world, gsd))
    loop = journal.world.loops[loop_id]
    made = "" if known else f"Made the journal of {gsd}. "
    made += "".join(f"Cancelled loop {other}. " for other in cancelled)
    said = f"{made}Imported {display(name)} as {loop.kind} loop {loop_id}.{owner_words(call, loop)}"
    call.answer(
        {
            "loop": loop_id,
            "seq": journal.world.seq,
            "status": loop.status,
            "head": head(journal),
            "format": old.format,
            "notes": notes,
        },
        _lines(f"{said} Loop {loop_id} is {loop.status}.", notes),
    )


def _name(path: Path, project: Path) -> str:
    """What the journal calls the file: its path in the project, else its whole path."""
    real = Path(os.path.realpath(path))
    try:
        name = real.relative_to(os.path.realpath(project)).as_posix()
    except ValueError:
        name = str(real)
    return clean(name)


def _events(old: OldLoop, name: str, gsd: str, *, trusted: bool) -> list[EventData]:
    """Type and data of each event; what the file does not say, the settings do."""
    found = {key: s.value for key, s in settings.load(Path(gsd), trusted=trusted).items()}
    kind, tasks = old.start["kind"], len(old.start.get("tasks", ()))
    frozen = limits_of(found, defaultdict(lambda: None), tasks if kind == "execute" else 0)
    if kind == "goal":
        frozen.update(ways_of(found, None))
    (_, start), *later = old.events(frozen)
    if start["auto_loop"] != frozen["auto_loop"]:
        old.notes.append("auto_loop is off in the settings, and on for this loop: it has gaps.")
    start["carried"] = {"from": old.format, "file": name, **start["carried"]}
    return [("start", start), *later]


def _rehearse(drafts: list[Event], loop_id: str) -> Loop:
    """The loop that these events make; what cannot be journalled is refused before a byte is."""
    world = World()
    header = draft("journal", None, "cli", {"id": "rehearsal", "incompat": [], "compat": []})
    ts = to_iso(now_ms())
    for seq, fields in enumerate((header, *drafts), 1):
        require_fit(fields)
        world.apply({"v": VERSION, "seq": seq, "ts": ts, **fields})
    return world.loops[loop_id]


def _notes(loop: Loop, name: str) -> list[str]:
    """What follows from the import, besides what the file itself gave to note."""
    file = display(name)
    notes = [
        f"{file} shows this loop from now on; what it was is kept beside it, as ….before-LOOP."
        if shows(loop, name)
        else f"{file} is left as it is.",
        f"Switch off the hook of the tool that wrote {file}: one agent, one loop.",
    ]
    spent = guard(loop, now_ms())
    if spent is not None:
        notes.append(f"A limit is spent already: {spent.reason}. To go on: {spent.remedy}")
    return notes


def _was_interrupted(loop: Loop, whole: Loop) -> bool:
    """Whether this loop is only the beginning of the import that would make the whole one."""
    facts = ("status", "stage", "spec_score", "fit_score", "shape", "reviews", "recalled", "gaps")
    same = all(getattr(loop, name) == getattr(whole, name) for name in facts)
    return is_untouched(loop) and not (same and loop.tasks.keys() == whole.tasks.keys())


def _require_room(world: World, name: str, session: str | None) -> None:
    """Refuse a file that a live loop was taken from, or only shows, and a second loop of a session."""
    for loop in world.live():
        run = f"gsd-fsm --loop {loop.id}"
        taken = loop.carried.get("file") == name
        if taken or shows(loop, name):
            what = "was imported already as" if taken else "only shows"
            raise Refused(
                f"{display(name)} {what} live loop {loop.id} ({loop.status})",
                f"{run} status · {run} resume · {run} cancel",
            )
        if loop.owner == session:
            whose = "this session" if session else "no session yet"
            raise Refused(
                f"live loop {loop.id} ({loop.status}) belongs to {whose}",
                f"{run} status · {run} resume · 'import … --fresh' cancels it",
            )


def _show(call: Call, old: OldLoop, events: list[EventData], notes: list[str]) -> None:
    listed = [{"type": kind, "data": data} for kind, data in events]
    lines = "\n".join(f"{kind} {dumps(data)}" for kind, data in events)
    call.answer({"format": old.format, "events": listed, "notes": notes}, _lines(lines, notes))


def _lines(said: str, notes: list[str]) -> str:
    return "\n".join([said, *(f"- {note}" for note in notes)])

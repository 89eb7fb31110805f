"""Import the live loop of another tool, with everything that it has counted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.journal.journal import Author, Transaction
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.limits import reached_limit
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import is_registered
from gsd_fsm.core.text.sanitize import clean, display
from gsd_fsm.core.views.loop_json import is_untouched
from gsd_fsm.core.views.write import STATE_PATH
from gsd_fsm.engine.context import Context, Receipt
from gsd_fsm.engine.start import (
    StartRequest,
    cancel_conflicting,
    create,
    current_hook,
    frozen_goal_settings,
    frozen_limits,
    kept_state_notes,
    known_loops,
    new_id,
    rehearsal,
    require_enabled,
    shows,
)
from gsd_fsm.imports.findings import EventData, OldLoop
from gsd_fsm.imports.load import load_loop

# What differs between an import and its beginning, if a crash cut it short.
_IMPORTED = ("status", "stage", "spec_score", "fit_score", "shape", "reviews", "recalled", "gaps")


class ImportPreview(NamedTuple):
    """The events that an import would append."""

    file: str  # relative to the project, if it is inside
    format: str
    events: list[EventData]
    notes: list[str]
    loop: Loop  # as it will be


class Imported(NamedTuple):
    """An imported loop, and what else happened."""

    receipt: Receipt
    file: str
    format: str
    new_journal: str | None  # the `.gsd` directory in which a journal was created
    cancelled: list[str]
    notes: list[str]


def preview_import(context: Context, file: str) -> ImportPreview:
    """Return what `import_loop` would append, from a dry run; write nothing."""
    return _preview(context, known_loops(context), file, "ID")


def import_loop(context: Context, file: str, *, fresh: bool = False) -> Imported:
    """Append the events of the loop in this file; raise Refused if a live loop conflicts.

    An import that a crash cut short is cancelled and repeated.
    """
    loops = known_loops(context)
    preview = _preview(context, loops, file, new_id("lp", 6))
    require_enabled(context)
    hook_notes = current_hook(context, loops)
    if loops is None:
        create(context)
    cancelled: list[str] = []
    with context.transaction() as tx:
        if fresh:
            cancelled = cancel_conflicting(tx, context, "import --fresh")
        cancelled += _cancel_interrupted(tx, preview)
        _require_room(tx, preview.file, context.author)
        loop = _append(tx, preview.loop.id, preview.events)
    notes = [] if preview.file == STATE_PATH else kept_state_notes(context, loop)
    return Imported(
        context.receipt(loop),
        preview.file,
        preview.format,
        context.gsd if loops is None else None,
        cancelled,
        [*preview.notes, *hook_notes, *notes],
    )


def _preview(context: Context, loops: Loops | None, file: str, loop_id: str) -> ImportPreview:
    path = Path(context.directory, file)
    name = _name(path, context.project)
    old = load_loop(path, display(name))
    trusted = loops is None or is_registered(loops.journal_id, context.gsd)
    events = _events(old, name, context.settings(trusted=trusted), context)
    with rehearsal(context.author) as tx:
        loop = _append(tx, loop_id, events)
    return ImportPreview(name, old.format, events, [*old.notes, *_notes(loop, name)], loop)


def _append(tx: Transaction, loop_id: str, events: list[EventData]) -> Loop:
    (_, start), *later = events
    loop = tx.start(loop_id, start)
    for kind, data in later:
        tx.append(loop, kind, data)
    return loop


def _name(path: Path, project: Path) -> str:
    """Return the path of the file relative to the project, or absolute if it is outside."""
    real = Path(os.path.realpath(path))
    try:
        name = real.relative_to(os.path.realpath(project)).as_posix()
    except ValueError:
        name = str(real)
    return clean(name)


def _events(
    old: OldLoop, name: str, settings: Mapping[str, Any], context: Context
) -> list[EventData]:
    """Return type and data of each event; settings decide where the file says nothing."""
    kind, tasks = old.start["kind"], len(old.start.get("tasks", ()))
    counted = tasks if kind == "execute" else 0
    frozen = frozen_limits(settings, StartRequest(kind), counted, context)
    if kind == "goal":
        frozen.update(frozen_goal_settings(settings, None))
    (_, start), *later = old.events(frozen)
    if start["auto_loop"] != frozen["auto_loop"]:
        old.notes.append(
            "auto_loop is off in the settings but on for this loop, because it has gaps."
        )
    start["carried"] = {"from": old.format, "file": name, **start["carried"]}
    return [("start", start), *later]


def _notes(loop: Loop, name: str) -> list[str]:
    """Return the notes about the import itself, apart from those about the file."""
    file = display(name)
    notes = [
        f"{file} shows this loop from now on; the old content is saved as {file}.before-LOOP."
        if shows(loop, name)
        else f"{file} is not changed.",
        f"Disable the hook of the tool that wrote {file}: only one loop may control an agent.",
    ]
    reached = reached_limit(loop, now_ms())
    if reached is not None:
        notes.append(f"A limit is already used up: {reached.reason}. To continue: {reached.remedy}")
    return notes


def _cancel_interrupted(tx: Transaction, preview: ImportPreview) -> list[str]:
    """Cancel a loop that is only the beginning of this import; return the ids."""
    interrupted = [
        loop
        for loop in tx.loops.live()
        if loop.imported.get("file") == preview.file and _is_beginning(loop, preview.loop)
    ]
    for loop in interrupted:
        tx.append(loop, "cancel", {"reason": "its import was interrupted"}, by="cli")
    return [loop.id for loop in interrupted]


def _is_beginning(loop: Loop, whole: Loop) -> bool:
    same = all(getattr(loop, name) == getattr(whole, name) for name in _IMPORTED)
    return is_untouched(loop) and not (same and loop.tasks.keys() == whole.tasks.keys())


def _require_room(tx: Transaction, name: str, author: Author) -> None:
    """Refuse a file that a live loop came from or is shown in, and a second loop of a session."""
    for loop in tx.loops.live():
        show, take, end = (command_line(it, loop.id) for it in ("status", "resume", "cancel"))
        imported = loop.imported.get("file") == name
        if imported or shows(loop, name):
            what = "was already imported as" if imported else "is a view of"
            raise Refused(
                f"{display(name)} {what} live loop {loop.id} ({loop.status})",
                f"Run: {show}, {take}, or {end}",
            )
        if loop.owner == author.session:
            whose = "this session" if author.session else "no session yet"
            raise Refused(
                f"live loop {loop.id} ({loop.status}) belongs to {whose}",
                f"Run: {show}, or {take}. 'import … --fresh' cancels it.",
            )

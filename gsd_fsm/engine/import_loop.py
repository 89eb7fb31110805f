"""Import the live loop of another tool, with everything that it has counted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.config.prices import frozen_prices
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.journal.journal import Author, Transaction
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.limits import reached_limit
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.project import is_registered
from gsd_fsm.core.text.sanitize import clean, display
from gsd_fsm.core.views.loop_json import is_untouched
from gsd_fsm.core.views.write import STATE_PATH
from gsd_fsm.engine.context import Context, Receipt
from gsd_fsm.engine.planned.plan import frozen, portions
from gsd_fsm.engine.planned.state_file import STATE_FILE
from gsd_fsm.engine.protection.freeze import frozen_surroundings
from gsd_fsm.engine.protection.protect import protected_anew, settings_commands
from gsd_fsm.engine.start import (
    StartRequest,
    cancel_conflicting,
    create,
    frozen_goal_settings,
    frozen_limits,
    known_loops,
    new_id,
    place_checks,
    rehearsal,
    require_enabled,
)
from gsd_fsm.engine.start_notes import budget_notes, current_hook, kept_state_notes, shows
from gsd_fsm.engine.work_specs import criterion_specs, masked_checks
from gsd_fsm.imports.findings import EventData, Findings, OldLoop
from gsd_fsm.imports.load import load_loop
from gsd_fsm.imports.position import Position, task_facts

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan

# Yields what shows how many of a number of events are durable, None if nobody watches.
Watch = Callable[[int], AbstractContextManager[Callable[[int], None] | None]]
# What differs between an import and its beginning, if a crash cut it short.
_IMPORTED = ("status", "stage", "spec_score", "fit_score", "shape", "reviews", "recalled", "gaps")


class ImportRequest(NamedTuple):
    """A file to import, and what takes precedence over it and over the settings.

    `checks` are written NAME=CMD, and are for goal loops.
    """

    file: str
    mode: str | None = None
    checks: tuple[str, ...] = ()
    budget: float | None = None
    fresh: bool = False


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


def preview_import(context: Context, request: ImportRequest) -> ImportPreview:
    """Return what `import_loop` would append, from a dry run; write nothing."""
    return _preview(context, known_loops(context), request, "ID")


def import_loop(
    context: Context, request: ImportRequest, watch: Watch = lambda _total: nullcontext()
) -> Imported:
    """Append the events of the loop in this file; raise Refused if a live loop conflicts.

    An import that a crash cut short is cancelled and repeated. `watch` gets the number of events,
    and yields what is called with how many are durable.
    """
    loops = known_loops(context)
    preview = _preview(context, loops, request, new_id("lp", 6))
    require_enabled(context)
    hook_notes = current_hook(context, loops)
    if loops is None:
        create(context)
    cancelled: list[str] = []
    with watch(len(preview.events)) as advance, context.transaction() as tx:
        if request.fresh:
            cancelled = cancel_conflicting(tx, context, "import --fresh")
        cancelled += _cancel_interrupted(tx, preview)
        _require_room(tx, preview.file, context.author)
        first = tx.seq
        loop = _append(tx, preview.loop.id, preview.events)
        if advance is not None:
            tx.on_write = _counting(advance, first)
    protected = protected_anew(context, loop)
    with context.writing(loop) as later:
        for data in protected:
            later.append("plan", data, by="cli")
    notes = [] if preview.file == STATE_PATH else kept_state_notes(context, loop)
    return Imported(
        context.receipt(loop),
        preview.file,
        preview.format,
        context.gsd if loops is None else None,
        cancelled,
        [*preview.notes, *hook_notes, *notes],
    )


def _counting(advance: Callable[[int], None], first: int) -> Callable[[int], None]:
    """Return what calls `advance` with the number of events after the first, whatever it raises."""

    def on_write(seq: int) -> None:
        with contextlib.suppress(Exception):  # the events matter more than what is shown of them
            advance(seq - first)

    return on_write


def _preview(
    context: Context, loops: Loops | None, request: ImportRequest, loop_id: str
) -> ImportPreview:
    path = Path(context.directory, request.file)
    name = _name(path, context.project)
    old = load_loop(path, display(name))
    if old.position is not None:
        old = _placed(context, old, old.position, display(name))
    if request.checks:
        _add_checks(context, old, request.checks)
    trusted = loops is None or is_registered(loops.journal_id, context.gsd)
    events = _events(context, old, name, request, context.settings(trusted=trusted))
    with rehearsal(context.author) as tx:
        loop = _append(tx, loop_id, events)
    wave = old.position and old.position.wave
    if loop.is_planned and wave not in (None, current_wave(loop)):
        old.notes.append(f"loop.wave: {wave} in the file, {current_wave(loop)} by the plan.")
    return ImportPreview(name, old.format, events, [*old.notes, *_notes(loop, name)], loop)


def _placed(context: Context, old: OldLoop, position: Position, name: str) -> OldLoop:
    """Return the loop with the tasks of the plan of its phase, or else those that its file names.

    Raise Mistakes with every task that the plan does not have.
    """
    start, phase, findings = dict(old.start), old.start.get("phase"), Findings(name)
    from gsd_fsm.verify.run import runs_commands

    plan = _plan_of(context, phase, findings)
    if plan is not None:
        if runs_commands(plan):
            context.check_shell()
        start["plan"] = frozen(plan, context.project)
    later: list[EventData] = []
    if start["kind"] == "execute":
        facts = task_facts(position, phase, plan, context.repository_or_none(), findings)
        parts = [[{"id": name, **fact} for name, fact in facts.items()]]
        if plan is not None:
            parts = portions(plan, facts)
            later = [("plan", {"tasks": part, "carried": True}) for part in parts[1:]]
            begun = {task.wave for task in plan.tasks if "status" in facts.get(task.id, {})}
            # What their files were before is not known, so that no check may compare them.
            later += [("plan", {"wave": wave, "modified": {}}) for wave in sorted(begun)]
        if parts[0]:
            start["tasks"] = parts[0]
    elif position.background:
        references = ", ".join(task.reference for task in position.background)
        findings.note(f"Not imported: the fixes under way as {references}; get their results.")
    findings.finish()
    return old._replace(
        start=start, later=[*later, *old.later], notes=[*old.notes, *findings.notes]
    )


def _plan_of(context: Context, phase: Any, findings: Findings) -> Plan | None:
    from gsd_fsm.plans.find import find_plan
    from gsd_fsm.plans.load import load_plan

    if phase is None:
        findings.note("The file names no phase, so its tasks have no plan.")
        return None
    try:
        path = find_plan(context.project, phase)
    except NotFound as error:
        findings.note(
            f"{error.message}: the loop has only the tasks that the file names. To add one, run: "
            "gsd-fsm task ID pending"
        )
        return None
    plan = load_plan(path)
    for warning in plan.warnings:
        findings.note(warning)
    return plan


def _add_checks(context: Context, old: OldLoop, checks: tuple[str, ...]) -> None:
    """Add these criteria to a goal loop; one that it has already gets the check."""
    if old.start["kind"] != "goal":
        raise UsageError(
            f"--check is for goal loops, and this is a loop to {old.start['kind']} a phase",
            "Run: gsd-fsm import --help",
        )
    context.check_shell()  # or refuse what could not be run
    data: dict[str, Any] = {"criteria": criterion_specs((), checks)}
    place_checks(data, context)
    known = {spec["name"]: spec for spec in old.start.get("criteria", ())}
    known.update((spec["name"], spec) for spec in data["criteria"])
    old.start["criteria"] = list(known.values())
    old.notes.extend(f"warning: {it}" for it in masked_checks(data["criteria"]))
    if old.start["carried"].pop("exit_signal", False):
        old.notes.append("exit_signal: not imported, because the checks have not passed yet.")


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
    context: Context, old: OldLoop, name: str, request: ImportRequest, settings: Mapping[str, Any]
) -> list[EventData]:
    """Return type and data of each event; the request decides, then the file, then the settings."""
    kind = old.start["kind"]
    count = old.start.get("plan", {}).get("tasks", len(old.start.get("tasks", ())))
    if request.budget is not None:
        old.limits["budget_usd"] = request.budget
    wanted = StartRequest(kind, mode=request.mode, budget=old.limits.get("budget_usd"))
    counted = count if kind == "execute" else 0
    defaults = frozen_limits(settings, wanted, counted, context)
    if kind == "goal":
        defaults.update(frozen_goal_settings(settings, None))
    (_, start), *later = old.events(defaults)
    if start["auto_loop"] != defaults["auto_loop"]:
        old.notes.append(
            "auto_loop is off in the settings but on for this loop, because it has gaps."
        )
    start.update(frozen_prices(settings, start["limits"]))
    old.notes.extend(budget_notes(start))
    commands = settings_commands(context, kind, None, settings)
    start["frozen"] = frozen_surroundings(commands, os.environ)
    start["carried"] = {"from": old.format, "file": name, **start["carried"]}
    return [("start", start), *later]


def _notes(loop: Loop, name: str) -> list[str]:
    """Return the notes about the import itself, apart from those about the file."""
    file = display(name)
    notes = [
        _fate(loop, name, file),
        f"Disable the hook of the tool that wrote {file}: only one loop may control an agent.",
    ]
    reached = reached_limit(loop, now_ms())
    if reached is not None:
        notes.append(f"A limit is already used up: {reached.reason}. To continue: {reached.remedy}")
    return notes


def _fate(loop: Loop, name: str, file: str) -> str:
    """Return what becomes of the file."""
    if name == STATE_FILE and shows(loop, name):
        return f"{file} shows this loop from now on; its other members stay as they are."
    if shows(loop, name):
        return (
            f"{file} shows this loop from now on; the old content is saved as {file}.before-LOOP."
        )
    return f"{file} is not changed."


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

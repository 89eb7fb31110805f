"""What every new loop needs before its first event: a place, a journal, and room in both."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from pathlib import Path
from typing import Any

from gsd_fsm.cli.call import MANY, Call, Event
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.errors import GsdError, NotFound, Refused, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import JOURNAL_NAME, Journal, create_journal
from gsd_fsm.core.loop import Loop
from gsd_fsm.core.places import find_gsd, make_gsd, new_gsd, register

_ALPHABET = "abcdefghjkmnpqrstvwxyz0123456789"
# Files that we write ourselves, and the view of a loop that each of them is.
_VIEWS = {".loop/workflow-state.json": "workflow-state", ".loop/state.json": "state"}
STATE_MD = ".gsd/STATE.md"
# Where other tools keep a loop that may still run.
_OTHERS = (*_VIEWS, ".claude/ralph-loop.local.md")


def shows(loop: Loop, name: str) -> bool:
    """Whether this file is a view of this loop."""
    return name == STATE_MD or _VIEWS.get(name) in loop.views


def others_running(gsd: str, known: str) -> list[str]:
    """What to say of loops of other tools that are left here, so that nobody runs both."""
    notes = []
    project = Path(gsd).parent
    loops = Journal(gsd).glance().loops.values() if known else ()
    ours = [n for n in _OTHERS for it in loops if shows(it, n) or it.carried.get("file") == n]
    for name in _OTHERS:
        if (project / name).is_file() and name not in ours:
            from gsd_fsm.imports.load import load_loop

            with contextlib.suppress(GsdError, OSError):
                load_loop(project / name, name)
                notes.append(f"{name} keeps a running loop: 'gsd-fsm import {name}' takes it over.")
    return notes


def keep_state(gsd: str, loop_id: str) -> list[str]:
    """Keep a STATE.md in which a loop of another tool runs, and say where: it shows ours from now on."""
    from gsd_fsm.files import Change, carry_out
    from gsd_fsm.imports.load import load_loop

    path = Path(gsd).parent / STATE_MD
    kept = f"{STATE_MD}.before-{loop_id}"
    try:
        load_loop(path, STATE_MD)
        content = path.read_bytes()
    except (GsdError, OSError):
        return []  # no loop runs there
    carry_out(Change(Path(gsd).parent / kept, None, content))
    taken = f"'gsd-fsm import {kept}' takes it over"
    return [f"{STATE_MD} kept a running loop: it is in {kept} now, and {taken}."]


def budget_notes(start: str, limits: dict[str, Any]) -> list[str]:
    """What to say of a budget in money that nothing would be counted against."""
    if not limits.get("budget_usd"):
        return []
    from gsd_fsm.installer import survey
    from gsd_fsm.status_line import our_status_line

    if any(our_status_line(place.document) for place in survey(start)):
        return []
    counting = (
        "'gsd-fsm init --status-line' counts it, or 'gsd-fsm spend'; --max-tokens needs neither"
    )
    return [f"Claude Code tells its cost in its status line: {counting}."]


def new_id(prefix: str, length: int) -> str:
    return prefix + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(length))


def require_on(gsd: str) -> None:
    stop = os.path.join(gsd, "STOP")
    if os.path.lexists(stop):
        raise Refused(f"{stop} switches all loops off", f"remove it first: rm {shlex.quote(stop)}")


def owner_words(call: Call, loop: Loop) -> str:
    if loop.owner:
        return ""
    if not call.json and not _is_held(call.start_directory):
        return " No settings here name the hook: 'gsd-fsm init' lets it hold an agent."
    return " The next session that gets a prompt here will own it."


def _is_held(start: str) -> bool:
    """Whether the settings that Claude Code would read here start the hook."""
    from gsd_fsm.installer import survey
    from gsd_fsm.registration import ours

    return any(ours(place.document) for place in survey(start))


def locate(call: Call) -> str:
    try:
        return find_gsd(call.start_directory)
    except NotFound:
        return new_gsd(call.start_directory)


def journal_id_of(gsd: str) -> str:
    """The id of the journal there, "" when it must be made first."""
    path = os.path.join(gsd, JOURNAL_NAME)
    return Journal(gsd).glance().journal if os.path.lexists(path) else ""


def make_journal(gsd: str) -> None:
    make_gsd(gsd)
    journal_id = new_id("j", 12)
    register(journal_id, gsd, now_ms())
    create_journal(gsd, journal_id, now_ms())


def require_fit(event: Event) -> None:
    """UsageError, before anything is made, for what the journal could not hold."""
    try:
        encode_event({"v": 1, "seq": MANY, "ts": to_iso(0), **event}, "")
    except ValueError as error:
        raise UsageError(
            f"the loop cannot be journalled: {error}", "keep long texts in files that it names"
        ) from error


def cancellation(call: Call, world: World, verb: str) -> list[Event]:
    """The end of the loops that stand in the way of a new one."""
    owner = call.caller.session
    return [
        call.event("cancel", loop, {"reason": f"{verb} --fresh"})
        for loop in world.live()
        if loop.owner == owner
    ]

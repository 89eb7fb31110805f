"""Prepare a project for a new loop: its journal, room for the loop, and loops of other tools."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.errors import GsdError, Refused
from gsd_fsm.core.journal.journal import JOURNAL_NAME, Journal, create_journal
from gsd_fsm.core.journal.transaction import Author, Transaction
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.names import kept_name
from gsd_fsm.core.project import make_gsd
from gsd_fsm.core.trust import is_registered, register
from gsd_fsm.core.views.state_md import shows_other_loop
from gsd_fsm.core.views.write import STATE_PATH
from gsd_fsm.engine.context import Context

_ALPHABET = "abcdefghjkmnpqrstvwxyz0123456789"
# The views that are files in which other tools keep a loop of theirs.
_VIEWS = {".loop/workflow-state.json": "workflow-state", ".loop/state.json": "state"}
_OTHER_TOOLS = (*_VIEWS, ".claude/ralph-loop.local.md")


def new_id(prefix: str, length: int) -> str:
    return prefix + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(length))


def new_loop_id() -> str:
    return new_id("lp", 6)


@dataclass(frozen=True)
class Place:
    """The `.gsd` directory of a new loop; `journal_id` is empty if there is no journal yet."""

    gsd: str
    journal_id: str

    @property
    def project(self) -> Path:
        return Path(self.gsd).parent

    @property
    def has_journal(self) -> bool:
        return bool(self.journal_id)

    def settings(self) -> dict[str, Any]:
        """Return the settings in force here, without those of a project that is not trusted."""
        from gsd_fsm import settings

        # A project without a journal is new, and the user starts the loop there on purpose.
        trusted = not self.has_journal or is_registered(self.journal_id, self.gsd)
        found = settings.load(Path(self.gsd), trusted=trusted)
        return {name: setting.value for name, setting in found.items()}

    def require_enabled(self) -> None:
        """Raise Refused if `.gsd/STOP` disables all loops."""
        stop = os.path.join(self.gsd, "STOP")
        if os.path.lexists(stop):
            raise Refused(f"{stop} disables all loops", f"Remove it: rm {shlex.quote(stop)}")

    def open_journal(self) -> Journal:
        """Return the journal; create and register it if there is none."""
        if not self.has_journal:
            make_gsd(self.gsd)
            journal_id = new_id("j", 12)
            register(journal_id, self.gsd, now_ms())
            create_journal(self.gsd, journal_id, now_ms())
        return Journal(self.gsd)


def find_place(context: Context) -> Place:
    """Return where a loop that is started here belongs."""
    gsd = context.gsd_or_new
    exists = os.path.lexists(os.path.join(gsd, JOURNAL_NAME))
    return Place(gsd, Journal(gsd).read_cached().journal_id if exists else "")


@contextlib.contextmanager
def rehearsal(author: Author) -> Iterator[Transaction]:
    """Yield a dry run on an empty journal, so that a loop can be refused before one is created."""
    with Journal("").dry_run(author, empty=True) as tx:
        tx.append(None, "journal", {"id": "rehearsal", "incompat": [], "compat": []}, by="cli")
        yield tx


def cancel_conflicting(tx: Transaction, author: Author, reason: str) -> list[str]:
    """Cancel the live loops of this session; return their ids."""
    conflicting = [loop for loop in tx.loops.live() if loop.owner == author.session]
    for loop in conflicting:
        tx.append(loop, "cancel", {"reason": reason})
    return [loop.id for loop in conflicting]


# notes for the user


def shows(loop: Loop, name: str) -> bool:
    """Return whether this file is a view of this loop."""
    return name == STATE_PATH or _VIEWS.get(name) in loop.views


def other_loop_notes(place: Place) -> list[str]:
    """Return a note for each file in which a loop of another tool still runs."""
    from gsd_fsm.imports.load import load_loop

    loops = Journal(place.gsd).read_cached().by_id.values() if place.has_journal else ()
    notes = []
    for name in _OTHER_TOOLS:
        ours = any(shows(loop, name) or loop.imported.get("file") == name for loop in loops)
        if (place.project / name).is_file() and not ours:
            with contextlib.suppress(GsdError, OSError):
                load_loop(place.project / name, name)
                notes.append(f"{name} has a live loop. To take it over: gsd-fsm import {name}")
    return notes


def kept_state_notes(place: Place, loop: Loop) -> list[str]:
    """Return a note if STATE.md showed a loop of another tool, and where it was saved."""
    from gsd_fsm.imports.load import load_loop

    kept = kept_name(STATE_PATH, loop.id)
    with contextlib.suppress(GsdError, OSError):
        load_loop(place.project / kept, kept)
        note = f"{STATE_PATH} showed a live loop of another tool; the file was saved as {kept}."
        return [f"{note} To take that loop over: gsd-fsm import {kept}"]
    with contextlib.suppress(OSError, ValueError):
        text = (place.project / STATE_PATH).read_text("utf-8")
        if shows_other_loop(text, [loop]):
            return [f"{STATE_PATH} still shows a live loop of another tool: it cannot be replaced."]
    return []


def budget_notes(directory: str, limits: Mapping[str, Any]) -> list[str]:
    """Return a note if there is a budget in money, and no status line that counts the cost."""
    if not limits.get("budget_usd"):
        return []
    from gsd_fsm.installer import survey
    from gsd_fsm.status_line import our_status_line

    if any(our_status_line(place.document) for place in survey(directory)):
        return []
    counting = "run gsd-fsm init --status-line, or gsd-fsm spend; --max-tokens needs neither"
    return [f"Claude Code reports its cost only to a status line: {counting}."]


def is_hook_installed(directory: str) -> bool:
    """Return whether settings that Claude Code reads in this directory run the hook."""
    from gsd_fsm.installer import survey
    from gsd_fsm.registration import ours

    return any(ours(place.document) for place in survey(directory))

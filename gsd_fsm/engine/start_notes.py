"""Tell the user what a new loop meets: an older hook, loops of other tools, the count of money."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gsd_fsm.config.program import keep_program
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.loop.events.sessions import HOOK_VERSION
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop, kept_name, listed
from gsd_fsm.core.views.state_md import shows_other_loop
from gsd_fsm.core.views.write import STATE_PATH
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.state_file import STATE_FILE, is_shown

# The views that are files in which other tools keep a loop of theirs.
_VIEWS = {".loop/workflow-state.json": "workflow-state", ".loop/state.json": "state"}
_OTHER_TOOLS = (*_VIEWS, STATE_FILE, ".claude/ralph-loop.local.md")


def current_hook(context: Context, loops: Loops | None) -> list[str]:
    """Replace an installed hook that is older, and keep our path for its texts; return notes.

    An older hook cannot read the new loop, and lets every agent stop. Raise CannotWrite if the
    file cannot be replaced. The client of another loop may have an older copy: warn about it.
    """
    from gsd_fsm.install.hook_file import is_outdated

    keep_program()
    notes = []
    if is_outdated():
        from gsd_fsm.install.installer import refresh_hook

        notes.append(f"Updated the installed hook: {refresh_hook()}.")
    others = [it for it in loops.live() if it.owner != context.session] if loops else []
    held = [it.id for it in others if it.last_answer and it.last_answer.hook < HOOK_VERSION]
    if held:
        notes.append(
            f"An older hook decided the last stop of {listed(held)}. It cannot read this journal "
            "any more, and lets that agent stop. To find it, run: gsd-fsm doctor."
        )
    return notes


def shows(loop: Loop, name: str) -> bool:
    """Return whether this file is a view of this loop."""
    return (
        name == STATE_PATH
        or _VIEWS.get(name) in loop.views
        or (name == STATE_FILE and is_shown(loop))
    )


def other_loop_notes(context: Context, known: Loops | None) -> list[str]:
    """Return a note for each file in which a loop of another tool still runs."""
    loops = known.by_id.values() if known else ()
    return [
        f"{name} has a live loop. To import it, run: gsd-fsm import {name}"
        for name in _OTHER_TOOLS
        if not any(shows(loop, name) or loop.imported.get("file") == name for loop in loops)
        and _has_live_loop(context.project, name)
    ]


def kept_state_notes(context: Context, loop: Loop) -> list[str]:
    """Return a note if a state file showed a loop of another tool, and where it was saved."""
    for name in (STATE_PATH, STATE_FILE):
        kept = kept_name(name, loop.id)
        if _has_live_loop(context.project, kept):
            note = f"{name} showed a live loop of another tool; the file was saved as {kept}."
            return [f"{note} To import that loop, run: gsd-fsm import {kept}"]
    with contextlib.suppress(OSError, ValueError):
        text = (context.project / STATE_PATH).read_text("utf-8")
        if shows_other_loop(text, [loop]):
            return [f"{STATE_PATH} still shows a live loop of another tool: it cannot be replaced."]
    return []


def _has_live_loop(project: Path, name: str) -> bool:
    """Return whether this file holds a loop of another tool that can be imported."""
    if not (project / name).is_file():
        return False
    from gsd_fsm.imports.load import load_loop

    with contextlib.suppress(GsdError, OSError):
        load_loop(project / name, name)
        return True
    return False


def budget_notes(data: Mapping[str, Any]) -> list[str]:
    """Return a note on how the money of this loop is counted."""
    if not data["limits"].get("budget_usd"):
        return []
    words = (
        "Spending is the client's own total or, where that is smaller or missing, its tokens at the "
        f"prices of {data['prices_of']}. It is tested at each stop, so the work between two stops "
        "can exceed the budget."
    )
    return [words]

"""Keep `.opti-gsd/state.json` current while a loop follows a plan of that tool.

The file is a view: after each event of a command it is written from the journal, and never read as
state. A write that fails is noted, and the next command repeats it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop, kept_name
from gsd_fsm.engine.context import Context

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ".opti-gsd/"
STATE_FILE = FOLDER + "state.json"
IMPORTED = "phase-state"  # the format of the file, for `import`


def is_shown(loop: Loop) -> bool:
    """Return whether the file shows this loop: its plan is beside it, or it was imported from it."""
    if loop.is_planned and loop.kind != "goal" and loop.plan.file.startswith(FOLDER):
        return True
    return (loop.imported.get("from"), loop.imported.get("file")) == (IMPORTED, STATE_FILE)


def shown_loop(loops: Loops) -> Loop | None:
    """Return the live loop that the file shows: of several, the one that started last."""
    return next((loop for loop in reversed(loops.live()) if is_shown(loop)), None)


def show_loops(context: Context) -> None:
    """Update the file if it exists; a failure is only noted in `context`."""
    loops = context.journal.loops
    if not any(map(is_shown, loops.live())) and not _last_shown(loops):
        return
    if not os.path.lexists(context.project / STATE_FILE):
        return
    try:
        with context.showing() as is_held:
            problem = "another command is writing it"
            if is_held:
                _update(context, context.read(), context.project / STATE_FILE)
                return
    except GsdError as error:
        problem = error.message
    notice = f"{STATE_FILE} is not updated: {problem}"
    if notice not in context.notices:
        context.notices.append(notice)


def _last_shown(loops: Loops) -> Loop | None:
    """Return the loop that ended last, if the file may still show it.

    What the end of a phase changes in the file is an effect of its own.
    """
    last = loops.last_ended()
    if last is None or not is_shown(last):
        return None
    ends_phase = last.kind == "execute" and last.is_planned and last.phase is not None
    return None if ends_phase and last.status == "completed" else last


def _update(context: Context, loops: Loops, path: Path) -> None:
    from gsd_fsm.documents.files import Change, open_text, write_change
    from gsd_fsm.documents.read import decode
    from gsd_fsm.phase.state_files import hide_loop, show_loop, shows_foreign_loop
    from gsd_fsm.plans.find import MOST_BYTES

    loop = shown_loop(loops)
    if loop is not None and _awaits_git(context, loop):
        return
    file = open_text(context.project, path, MOST_BYTES)
    if file.content is None:
        return
    decode(file.content, path)
    if loop is None:
        last = _last_shown(loops)
        changes = file.changes(hide_loop(file.text, last)) if last else []
    else:
        changes = file.changes(show_loop(file.text, loop))
        known = [it for it in loops.by_id.values() if is_shown(it)]
        is_ours = len(known) > 1 or loop.imported.get("file") == STATE_FILE
        kept = path.with_name(kept_name(path.name, loop.id))
        if shows_foreign_loop(file.text, known, is_ours=is_ours) and not os.path.lexists(kept):
            write_change(Change(kept, None, file.content))
    for change in changes:
        write_change(change)


def _awaits_git(context: Context, loop: Loop) -> bool:
    """Return whether git is about to restore files or check out a branch: the file must not differ."""
    if loop.rollback is not None:
        return True
    if loop.status == "waiting" and (loop.asked or "").startswith("branch:"):
        return True
    from gsd_fsm.engine.planned.branches import branch_effects

    return any(branch_effects(context, loop))

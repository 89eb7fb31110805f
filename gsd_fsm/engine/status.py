"""Read the state of a loop."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from gsd_fsm.core.loop.state import ACTIVE, Loop
from gsd_fsm.core.trust import is_registered
from gsd_fsm.engine.context import Context
from gsd_fsm.projections import status_view

# The exit code of `status --check`, by status.
CHECK_CODES = {
    "completed": 0,
    **dict.fromkeys(ACTIVE, 10),
    "waiting": 11,
    "paused": 12,
    "cancelled": 13,
}


@dataclass(frozen=True)
class Status:
    """A loop with its view for scripts; whether its journal is trusted and the hook enabled."""

    loop: Loop
    view: dict[str, Any]
    is_trusted: bool
    is_stopped: bool


def status(context: Context) -> Status:
    """Return the state of the selected loop, or else of the one that ended last."""
    journal, loops = context.read()
    loop = context.loop_or_last(loops)
    return Status(
        loop,
        status_view(loop, f"{loops.seq}:{journal.at.sum}"),
        is_registered(loops.journal_id, journal.path),
        os.path.lexists(os.path.join(journal.path, "STOP")),
    )

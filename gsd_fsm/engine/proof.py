"""Show what was asked of a loop, and what proved it."""

from __future__ import annotations

from typing import Any

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.engine.context import Context
from gsd_fsm.history.proof import Evidence, proof_facts
from gsd_fsm.history.replay import Advance, Replay


def proof(context: Context, advance: Advance = None) -> dict[str, Any]:
    """Return the proof of the selected loop, or of the one that ended last, from the whole journal.

    `advance` is called with the number of events that have been read.
    """
    loop = context.loop_or_last(context.read(trusted=False))
    found = Evidence(loop.id)
    replay = Replay(Journal(context.gsd, keep=loop.id))
    replay.run(found.see, advance=advance)
    return proof_facts(replay.loops.by_id[loop.id], found, replay.head)

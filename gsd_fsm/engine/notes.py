"""Leave a note for the agent."""

from __future__ import annotations

from gsd_fsm.engine.context import Context, Receipt, receipt


def leave_note(context: Context, text: str) -> Receipt:
    """Append a note; the next block delivers it."""
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        tx.append(loop, "note", {"text": text})
    return receipt(tx, loop)

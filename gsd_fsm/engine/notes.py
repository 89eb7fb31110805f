"""Record notes for the agent, and money and tokens spent."""

from __future__ import annotations

from collections.abc import Mapping

from gsd_fsm.core.journal.journal import Transaction
from gsd_fsm.core.loop.completion import latest_tree, missing
from gsd_fsm.core.loop.limits import BUDGET, used_up_limit
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, Receipt, receipt
from gsd_fsm.engine.planned.plan import append_pause


def leave_note(context: Context, text: str) -> Receipt:
    """Append a note; the next block delivers it."""
    return context.append("note", {"text": text})


def append_spending(tx: Transaction, loop: Loop, data: Mapping[str, object]) -> None:
    """Append a `spend` event; pause a loop that is not done and has used up its budget."""
    tx.append(loop, "spend", data)
    limit = used_up_limit(loop, loop.limits, tx.now, BUDGET)
    if limit and loop.is_active and missing(loop, latest_tree(loop)):
        append_pause(tx, loop, limit)


def spend(
    context: Context, usd: float | None = None, tokens: int | None = None, what: str | None = None
) -> Receipt:
    """Record money or tokens spent on a loop."""
    given = {"usd": usd, "tokens": tokens, "what": what}
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        append_spending(tx, loop, {name: it for name, it in given.items() if it is not None})
    return receipt(tx, loop)

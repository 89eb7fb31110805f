"""Report, close and reopen gaps, and record verdicts of verification."""

from __future__ import annotations

from dataclasses import dataclass

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.journal.transaction import Transaction
from gsd_fsm.core.loop.completion import latest_tree, missing
from gsd_fsm.core.loop.limits import LimitReached, oscillation, used_up_limit
from gsd_fsm.core.loop.state import Loop, open_gaps
from gsd_fsm.engine.context import Context, Receipt, receipt, require_id
from gsd_fsm.engine.follow_plan import append_pause, append_question, require_human
from gsd_fsm.texts import keep
from gsd_fsm.verification.gaps import MAX_DESCRIPTION, MAX_EVIDENCE, free_id, same_gap
from gsd_fsm.verification.strategy import require_kind

_MOST_NAMED = 20


@dataclass(frozen=True)
class GapChange:
    """The action that was recorded about one gap."""

    gap: str
    action: str
    receipt: Receipt


def report_gap(
    context: Context,
    description: str,
    *,
    kind: str = "other",
    file: str | None = None,
    evidence: str | None = None,
    gap_id: str | None = None,
) -> GapChange:
    """Record a gap. One that is reported again keeps its id, and is reopened if it was closed."""
    require_kind(kind)
    if not description.strip():
        raise UsageError(
            "a gap needs a description",
            "Run: gsd-fsm gap found --kind stub --file a.py --description TEXT",
        )
    if gap_id is not None:
        require_id(gap_id, "gap")
    details = {"kind": kind, **_texts(description, file, evidence)}
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        known = same_gap(loop, details, gap_id)
        action = "found" if known is None or loop.gaps[known].is_open else "reopened"
        found = known or gap_id or free_id(loop)
        _append_gap(tx, loop, found, action, details)
    return GapChange(found, action, receipt(tx, loop))


def close_gap(
    context: Context,
    gap_id: str,
    *,
    evidence: str | None = None,
    file: str | None = None,
    description: str | None = None,
) -> GapChange:
    """Close a gap that was fixed."""
    return _change_gap(context, gap_id, "closed", _texts(description, file, evidence))


def reopen_gap(
    context: Context,
    gap_id: str,
    *,
    evidence: str | None = None,
    file: str | None = None,
    description: str | None = None,
) -> GapChange:
    """Reopen a closed gap; pause the loop if the gap keeps coming back."""
    return _change_gap(context, gap_id, "reopened", _texts(description, file, evidence))


def _change_gap(context: Context, gap_id: str, action: str, details: dict[str, str]) -> GapChange:
    require_id(gap_id, "gap")
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        _append_gap(tx, loop, gap_id, action, details)
    return GapChange(gap_id, action, receipt(tx, loop))


def _append_gap(
    tx: Transaction, loop: Loop, gap_id: str, action: str, details: dict[str, str]
) -> None:
    tx.append(loop, "gap", {"action": action, "gap": gap_id, **details})
    limit = oscillation(loop) if action == "reopened" else None
    if limit is not None and loop.is_active:
        append_pause(tx, loop, limit)


def _texts(description: str | None, file: str | None, evidence: str | None) -> dict[str, str]:
    """Return the texts that were given, redacted."""
    given = (
        ("file", file, MAX_DESCRIPTION),
        ("description", description, MAX_DESCRIPTION),
        ("evidence", evidence, MAX_EVIDENCE),
    )
    return {name: keep(text, most) for name, text, most in given if text}


def record_verdict(context: Context, *, passed: bool, report: str | None = None) -> Receipt:
    """Record one round of verification; the last round that the limit allows pauses the loop."""
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        if passed and loop.is_planned:
            require_human(loop, context.author, "declare the plan verified in")
        tx.append(
            loop, "verified", {"passed": passed, **({"report": keep(report)} if report else {})}
        )
        limit = used_up_rounds(loop, tx.now)
        if limit is not None and loop.is_active:
            append_pause(tx, loop, limit)
        append_question(tx, loop)
    return receipt(tx, loop)


def used_up_rounds(loop: Loop, now: int) -> LimitReached | None:
    """Return the limit that forbids another round: a gap that keeps coming back, or the rounds."""
    limit = oscillation(loop)
    if limit is not None:
        return limit
    limit = used_up_limit(loop, loop.limits, now, ("rounds",))
    if limit is None or not missing(loop, latest_tree(loop)):
        return None
    left = named(open_gaps(loop))
    reason = limit.reason + (f"; gaps left: {left}" if left else "")
    return LimitReached(limit.code, reason, limit.remedy)


def named(gap_ids: list[str]) -> str:
    """Return a list of gaps that fits into a message."""
    more = len(gap_ids) - _MOST_NAMED
    return ", ".join(gap_ids[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

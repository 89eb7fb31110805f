"""Record, close and reopen single gaps."""

from __future__ import annotations

from typing import NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.decisions import free_gap_id
from gsd_fsm.core.loop.limits import oscillation
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, require_id
from gsd_fsm.verify.gaps import MAX_DESCRIPTION, MAX_EVIDENCE, same_gap
from gsd_fsm.verify.strategy import require_kind


class GapChange(NamedTuple):
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
    details = {"kind": kind, **texts_of_gap(description, file, evidence)}
    with context.writing() as tx:
        known = same_gap(tx.loop, details, gap_id)
        action = "found" if known is None or tx.loop.gaps[known].is_open else "reopened"
        found = known or gap_id or free_gap_id(set(tx.loop.gaps))
        _append_gap(tx, found, action, details)
    return GapChange(found, action, tx.receipt)


def change_gap(
    context: Context,
    gap_id: str,
    action: str,
    *,
    evidence: str | None = None,
    file: str | None = None,
    description: str | None = None,
) -> GapChange:
    """Record that a gap was `closed` or `reopened`; pause if it keeps coming back."""
    require_id(gap_id, "gap")
    with context.writing() as tx:
        _append_gap(tx, gap_id, action, texts_of_gap(description, file, evidence))
    return GapChange(gap_id, action, tx.receipt)


def _append_gap(tx: LoopTransaction, gap_id: str, action: str, details: dict[str, str]) -> None:
    tx.append("gap", {"action": action, "gap": gap_id, **details})
    tx.pause_at(oscillation(tx.loop) if action == "reopened" else None)


def texts_of_gap(description: str | None, file: str | None, evidence: str | None) -> dict[str, str]:
    """Return the texts that were given, redacted."""
    given = (
        ("file", file, MAX_DESCRIPTION),
        ("description", description, MAX_DESCRIPTION),
        ("evidence", evidence, MAX_EVIDENCE),
    )
    return {name: redact_and_truncate(text, most) for name, text, most in given if text}

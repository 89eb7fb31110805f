"""Find the events that follow from decisions: skipped tasks, and gaps from failed verdicts.

Decisions are recorded as facts, also while the loop waits; what follows needs an active loop.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.records import Verdict
    from gsd_fsm.core.loop.state import Loop


def due_events(loop: Loop) -> list[tuple[str, dict[str, Any]]]:
    """Return type and data of each event that a decision calls for and that is missing."""
    if not loop.is_active:
        return []
    skipped: list[tuple[str, dict[str, Any]]] = [
        ("task", {"task": task.id, "status": "skipped", "summary": "skipped by the user"})
        for task in loop.tasks.values()
        if task.skips and not task.is_done
    ]
    failed = [it for it in loop.verdicts.values() if it.passed is False] if loop.verified else []
    taken = set(loop.gaps)
    return skipped + [("gap", _gap(loop, verdict, taken)) for verdict in failed]


def _gap(loop: Loop, verdict: Verdict, taken: set[str]) -> dict[str, Any]:
    """Return the data of the event that opens the gap of a failed verdict."""
    more = {"evidence": verdict.evidence} if verdict.evidence else {}
    known = next((gap for gap in loop.gaps.values() if verdict.id in (gap.id, gap.check)), None)
    if known is not None:
        action = "found" if known.is_open else "reopened"
        return {"action": action, "gap": known.id, **more}
    gap_id = free_gap_id(taken)
    taken.add(gap_id)
    about = {"kind": "other", "description": verdict.text or verdict.id, "check": verdict.id}
    return {"action": "found", "gap": gap_id, **about, **more}


def free_gap_id(taken: set[str]) -> str:
    """Return the next id for a gap."""
    number = len(taken) + 1
    while "G%d" % number in taken:
        number += 1
    return "G%d" % number

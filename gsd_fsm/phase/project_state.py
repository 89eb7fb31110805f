"""`state.json`: a phase moves among the complete ones, and all else in the file keeps its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.json_text import append, drop, find, put, root
from gsd_fsm.phase.name import Phase, plainly, same

FILE_NAME = "state.json"
FLAT = ("phases_complete", "phases_in_progress", "phases_pending")
NESTED = ("complete", "in_progress", "pending")
TIMES = ("last_active", "last_updated")
MOST_PHASES = 500
# A loop of nobody, as it is before the first one; limits and history stay.
RESET: dict[str, Any] = {
    "active": False, "type": None, "phase": None, "wave": None, "iteration": 0,
    "background_tasks": [], "task_retries": {}, "gaps_remaining": 0, "last_error": None,
    "started": None, "last_iteration": None, "paused": False, "pause_reason": None,
}  # fmt: skip
_UNDER_WAY = ("executing", "in_progress", "running")
Place = tuple[str, ...]


def with_phase_complete(text: str, phase: Phase, now_iso: str, later: Sequence[int] = ()) -> str:
    """The state in which the phase is complete; the very same text if it was already.

    UsageError if this is no JSON object, or its phases are no lists.
    """
    document = root(text).value
    if not isinstance(document, dict):
        raise UsageError("not a JSON object", 'it looks like this: {"phases_complete": []}')
    changed = text
    for complete, *others in _shapes(document):
        for place in others:
            changed = _without(changed, place, phase)
        changed = _with(changed, complete, phase)
    if changed == text and not _shapes(document):
        for name, value in zip(FLAT, ([plainly(phase)], [], list(later)), strict=True):
            changed = put(changed, (name,), value)
    changed = _at_rest(changed, document, phase)
    for name in TIMES:
        if changed != text and name in document:
            changed = put(changed, (name,), now_iso)
    return changed


def _shapes(document: dict[str, Any]) -> list[list[Place]]:
    """Where the lists of phases stand: each on its own, or all in one object."""
    found: list[list[Place]] = []
    if any(name in document for name in FLAT):
        found.append([(name,) for name in FLAT])
    phases = document.get("phases")
    if isinstance(phases, dict) and (not phases or any(name in phases for name in NESTED)):
        found.append([("phases", name) for name in NESTED])
    return found


def _entries(text: str, place: Place) -> list[Any] | None:
    """The list there; None where there is none."""
    part = find(text, place)
    if part is None or part.value is None:
        return None
    if not isinstance(part.value, list):
        raise UsageError(f"{'.'.join(place)} is not a list", "make it one, such as [1, 2]")
    if len(part.value) > MOST_PHASES:
        raise UsageError(f"{'.'.join(place)} has more than {MOST_PHASES} entries", "mend the file")
    return part.value


def _with(text: str, place: Place, phase: Phase) -> str:
    entries = _entries(text, place)
    if entries is not None and any(same(entry, phase) for entry in entries):
        return text
    in_words = bool(entries) and all(isinstance(entry, str) for entry in entries or ())
    name = str(plainly(phase)) if in_words else plainly(phase)
    return put(text, place, [name]) if entries is None else append(text, place, name)


def _without(text: str, place: Place, phase: Phase) -> str:
    entries = _entries(text, place) or []
    for number in reversed(range(len(entries))):
        if same(entries[number], phase):
            text = drop(text, (*place, number))
    return text


def _at_rest(text: str, document: dict[str, Any], phase: Phase) -> str:
    """The state without what was true only while this phase was under way."""
    loop = document.get("loop")
    if isinstance(loop, dict) and _is_of(loop.get("phase"), phase):
        for name, value in RESET.items():
            if name in loop and loop[name] != value:
                text = put(text, ("loop", name), value)
    if same(document.get("phase"), phase):
        if document.get("task") is not None:
            text = put(text, ("task",), None)
        if document.get("status") in _UNDER_WAY:
            text = put(text, ("status",), "executed")
    return text


def _is_of(named: object, phase: Phase) -> bool:
    return named is None or same(named, phase)

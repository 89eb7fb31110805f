"""Mark a phase complete in the project's state: `.opti-gsd/state.json` or `.gsd/STATE.md`.

Both are edited in place: bytes that do not concern the phase stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.front_matter import front_matter_lines
from gsd_fsm.documents.json_text import append, drop, find, put, root
from gsd_fsm.documents.markdown import line_end, split_lines
from gsd_fsm.plans.phase_name import Phase, same_phase, shortest_name

JSON_FILE = "state.json"
FLAT = ("phases_complete", "phases_in_progress", "phases_pending")
NESTED = ("complete", "in_progress", "pending")
TIMES = ("last_active", "last_updated")
MOST_PHASES = 500
# The state of a loop before the first one; limits and history stay.
RESET: dict[str, Any] = {
    "active": False, "type": None, "phase": None, "wave": None, "iteration": 0,
    "background_tasks": [], "task_retries": {}, "gaps_remaining": 0, "last_error": None,
    "started": None, "last_iteration": None, "paused": False, "pause_reason": None,
}  # fmt: skip
_IN_PROGRESS = ("executing", "in_progress", "running")
Place = tuple[str, ...]

_LIST = re.compile(
    r"phases_(complete|in_progress|pending)[ \t]*:[ \t]+\[([^\[\]{}\r\n]*)\](?=[ \t]*(?:#|\r?\n|$))"
)
_TIME = re.compile(r"last_(?:active|updated)[ \t]*:[ \t]+(?=[^\s#])")
_QUOTES = "\"'"


def complete_in_json(text: str, phase: Phase, now_iso: str, later: Sequence[int] = ()) -> str:
    """Return the JSON text with the phase complete; the same text if it is already.

    `later` are the pending phases for a state without lists. Raise UsageError if the text is not
    a JSON object, or its phases are not lists.
    """
    document = root(text).value
    if not isinstance(document, dict):
        raise UsageError("not a JSON object", 'Begin with: {"phases_complete": []}')
    changed = text
    lists = _phase_lists(document)
    for complete, *others in lists:
        for place in others:
            changed = _without(changed, place, phase)
        changed = _with(changed, complete, phase)
    if not lists:
        for name, value in zip(FLAT, ([shortest_name(phase)], [], list(later)), strict=True):
            changed = put(changed, (name,), value)
    changed = _reset(changed, document, phase)
    for name in TIMES:
        if changed != text and name in document:
            changed = put(changed, (name,), now_iso)
    return changed


def _phase_lists(document: dict[str, Any]) -> list[list[Place]]:
    """Return where the lists of phases are: at the top, or in the object "phases", or both."""
    found: list[list[Place]] = []
    if any(name in document for name in FLAT):
        found.append([(name,) for name in FLAT])
    phases = document.get("phases")
    if isinstance(phases, dict) and (not phases or any(name in phases for name in NESTED)):
        found.append([("phases", name) for name in NESTED])
    return found


def _entries(text: str, place: Place) -> list[Any] | None:
    part = find(text, place)
    if part is None or part.value is None:
        return None
    name = ".".join(place)
    if not isinstance(part.value, list):
        raise UsageError(f"{name} is not a list", "Make it a list, such as [1, 2].")
    if len(part.value) > MOST_PHASES:
        raise UsageError(f"{name} has more than {MOST_PHASES} entries", "Remove some of them.")
    return part.value


def _with(text: str, place: Place, phase: Phase) -> str:
    entries = _entries(text, place)
    if entries is None:
        return put(text, place, [shortest_name(phase)])
    if any(same_phase(entry, phase) for entry in entries):
        return text
    all_text = bool(entries) and all(isinstance(entry, str) for entry in entries)
    return append(text, place, str(shortest_name(phase)) if all_text else shortest_name(phase))


def _without(text: str, place: Place, phase: Phase) -> str:
    entries = _entries(text, place) or []
    for number in reversed(range(len(entries))):
        if same_phase(entries[number], phase):
            text = drop(text, (*place, number))
    return text


def _reset(text: str, document: dict[str, Any], phase: Phase) -> str:
    """Reset the members that describe the work on this phase."""
    loop = document.get("loop")
    if isinstance(loop, dict) and (loop.get("phase") is None or same_phase(loop["phase"], phase)):
        for name, value in RESET.items():
            if name in loop and loop[name] != value:
                text = put(text, ("loop", name), value)
    if same_phase(document.get("phase"), phase):
        if document.get("task") is not None:
            text = put(text, ("task",), None)
        if document.get("status") in _IN_PROGRESS:
            text = put(text, ("status",), "executed")
    return text


def complete_in_markdown(text: str, phase: Phase, now_iso: str) -> str:
    """Return the text with the phase complete in the lists of its front matter, if it has any."""
    lines = split_lines(text)
    within = front_matter_lines(lines) or range(0)
    for at in within:
        lines[at] = _moved(lines[at], phase)
    if "".join(lines) == text:
        return text
    for at in within:
        lines[at] = _dated(lines[at], now_iso)
    return "".join(lines)


def _moved(line: str, phase: Phase) -> str:
    found = _LIST.match(line)
    if found is None:
        return line
    edit = _added if found[1] == "complete" else _removed
    return line[: found.start(2)] + edit(found[2], phase) + line[found.end(2) :]


def _is(item: str, phase: Phase) -> bool:
    return same_phase(item.strip().strip(_QUOTES), phase)


def _added(inner: str, phase: Phase) -> str:
    if any(_is(item, phase) for item in inner.split(",")):
        return inner
    listed = inner.rstrip(" \t,")
    last = listed.rpartition(",")[2].strip()
    quote = last[0] if last and last[0] in _QUOTES else ""
    return f"{listed}{', ' if listed else ''}{quote}{shortest_name(phase)}{quote}"


def _removed(inner: str, phase: Phase) -> str:
    items = inner.split(",")
    kept = [item for item in items if not _is(item, phase)]
    return inner if kept == items else ",".join(kept).strip()


def _dated(line: str, now_iso: str) -> str:
    found = _TIME.match(line)
    if found is None:
        return line
    value, hash_, comment = line[found.end() :].rstrip("\r\n").partition(" #")
    quote = value[0] if value[0] in _QUOTES else ""
    return f"{found[0]}{quote}{now_iso}{quote}{hash_}{comment}{line_end(line)}"

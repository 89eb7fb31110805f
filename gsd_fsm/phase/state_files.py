"""Mark a phase complete in the project's state, `.opti-gsd/state.json` or `.gsd/STATE.md`.

In `state.json` also show the loop that works on the phase. Both files are edited in place: bytes that
do not concern phase or loop stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.state import Loop, open_gaps
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.documents.front_matter import front_matter_lines
from gsd_fsm.documents.json_text import append, drop, find, put, root
from gsd_fsm.documents.markdown import line_end, split_lines
from gsd_fsm.documents.times import parse_time
from gsd_fsm.plans.phase_name import Phase, same_phase, shortest_name
from gsd_fsm.plans.plan import task_numbers

JSON_FILE = "state.json"
FLAT = ("phases_complete", "phases_in_progress", "phases_pending")
NESTED = ("complete", "in_progress", "pending")
TIMES = ("last_active", "last_updated")
MOST_PHASES = 500
_IN_PROGRESS = ("executing", "in_progress", "running")
Place = tuple[str, ...]

_LIST = re.compile(
    r"phases_(complete|in_progress|pending)[ \t]*:[ \t]+\[([^\[\]{}\r\n]*)\](?=[ \t]*(?:#|\r?\n|$))"
)
_TIME = re.compile(r"last_(?:active|updated)[ \t]*:[ \t]+(?=[^\s#])")
_QUOTES = "\"'"


# the loop


def loop_members(loop: Loop, listed: Collection[str] = ()) -> dict[str, Any]:
    """Return the members of the object `loop` that show this loop; of a new Loop, that there is none.

    `task_retries` has the tasks that were begun or retried, and those in `listed`.
    """
    paused = loop.status == "paused"
    numbers = task_numbers(loop.tasks)
    return {
        "active": loop.is_live and not paused,
        "type": loop.kind or None,
        "phase": loop.phase,
        "wave": current_wave(loop),
        # The iterations of a verify loop are its rounds.
        "iteration": loop.round if loop.kind == "verify" else loop.iteration,
        "background_tasks": [
            {
                "task_id": task.ref,
                "task_num": numbers[task.id] if loop.kind == "execute" else task.id,
                "status": "running",
            }
            for task in loop.tasks.values()
            if task.ref and task.status == "running"
        ],
        "task_retries": {
            task.id: task.retries
            for task in loop.tasks.values()
            if task.retries or task.status != "pending" or task.id in listed
        },
        "gaps_remaining": len(open_gaps(loop)),
        "last_error": loop.last_error,
        "started": loop.started,
        "last_iteration": loop.last_iteration,
        "paused": paused,
        "pause_reason": loop.pause_reason or loop.pause_code,
    }


def show_loop(text: str, loop: Loop) -> str:
    """Return the JSON text with this live loop and its task counter; the same if it has them.

    The counter is the number of the last task up to which all are done, or reported with a commit:
    its commits are what the other tool looks for. Raise UsageError if the text is not a JSON object,
    or its member `loop` is not one.
    """
    document = _document(text)
    section = document.get("loop")
    if section is None:
        text = put(text, ("loop",), loop_members(loop))
    elif not isinstance(section, dict):
        raise UsageError("loop is not an object", "Make it an object, such as {}.")
    else:
        retries = section.get("task_retries")
        listed = retries if isinstance(retries, dict) else {}
        text = _with_members(text, section, loop_members(loop, listed), add=True)
    if loop.kind == "execute" and _names_phase(document, loop.phase):
        counter = _counter(loop)
        if (document.get("task") or 0) != counter:
            text = put(text, ("task",), counter)
    return text


def hide_loop(text: str, loop: Loop) -> str:
    """Return the JSON text without a loop if it shows this one; the task counter stays."""
    section = _document(text).get("loop")
    if not isinstance(section, dict) or not _is_same(
        "started", section.get("started"), loop.started
    ):
        return text
    return _with_members(text, section, loop_members(Loop()))


def shows_foreign_loop(text: str, known: Iterable[Loop], *, is_ours: bool) -> bool:
    """Return whether the JSON text shows a loop that is none of these, or has a task counter.

    `is_ours`: one of them has set the counter.
    """
    document = _document(text)
    section = document.get("loop")
    if isinstance(section, dict) and (section.get("active") or section.get("paused")):
        return not any(_is_same("started", section.get("started"), it.started) for it in known)
    return bool(document.get("task")) and not is_ours


def _with_members(
    text: str, section: dict[str, Any], values: dict[str, Any], *, add: bool = False
) -> str:
    """Put these values into the object `loop`; a missing one is added only if it says something."""
    nothing = loop_members(Loop())
    for name, value in values.items():
        is_wanted = name in section or add
        if is_wanted and not _is_same(name, section.get(name, nothing[name]), value):
            text = put(text, ("loop", name), value)
    return text


def _is_same(name: str, old: Any, new: Any) -> bool:
    """Return whether the old value says the same as the new one, however it is written."""
    if name in ("started", "last_iteration") and isinstance(old, str) and new is not None:
        return bool(parse_time(old) == new)
    return bool(old == new or (name == "phase" and same_phase(old, new)))


def _counter(loop: Loop) -> int:
    numbers = task_numbers(loop.tasks)
    last = 0
    for name in sorted(numbers, key=numbers.__getitem__):
        task = loop.tasks[name]
        if not task.is_done and not (task.status == "reported" and task.commit):
            break
        last = numbers[name]
    return last


def _names_phase(document: dict[str, Any], phase: Phase | None) -> bool:
    """Return whether the task counter is about this phase."""
    return phase is not None and same_phase(document.get("phase"), phase)


# the end of a phase


def complete_in_json(
    text: str, phase: Phase, now_iso: str, later: Sequence[int] = (), *, keeps_loop: bool = False
) -> str:
    """Return the JSON text with the phase complete; the same text if it is already.

    `later` are the pending phases for a state without lists; `keeps_loop`: the loop in it is
    another one, which is live. Raise UsageError if the text is not a JSON object, or its phases are
    not lists.
    """
    document = _document(text)
    changed = text
    lists = _phase_lists(document)
    for complete, *others in lists:
        for place in others:
            changed = _without(changed, place, phase)
        changed = _with(changed, complete, phase)
    if not lists:
        for name, value in zip(FLAT, ([shortest_name(phase)], [], list(later)), strict=True):
            changed = put(changed, (name,), value)
    if not keeps_loop:
        changed = _reset(changed, document, phase)
    for name in TIMES:
        if changed != text and name in document:
            changed = put(changed, (name,), now_iso)
    return changed


def _document(text: str) -> dict[str, Any]:
    document = root(text).value
    if not isinstance(document, dict):
        raise UsageError("not a JSON object", 'Begin with: {"phases_complete": []}')
    return document


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
        text = _with_members(text, loop, loop_members(Loop()))
    if _names_phase(document, phase):
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

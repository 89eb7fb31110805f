"""The front matter of `STATE.md`: its lists of phases, edited within their lines."""

from __future__ import annotations

import re

from gsd_fsm.phase.markdown import end_of, lines_of
from gsd_fsm.phase.name import Phase, plainly, same

FILE_NAME = "STATE.md"
_LIST = re.compile(
    r"phases_(complete|in_progress|pending)[ \t]*:[ \t]+\[([^\[\]{}\r\n]*)\](?=[ \t]*(?:#|\r?\n|$))"
)
_TIME = re.compile(r"last_(?:active|updated)[ \t]*:[ \t]+(?=[^\s#])")
_FENCES = ("---", "...")
_QUOTES = "\"'"


def with_phase_complete(text: str, phase: Phase, now_iso: str) -> str:
    """The text in which the phase is complete; the very same text if it has no such lists."""
    lines = lines_of(text)
    within = range(1, _end_of_front_matter(lines))
    for number in within:
        lines[number] = _moved(lines[number], phase)
    if "".join(lines) == text:
        return text
    for number in within:
        lines[number] = _dated(lines[number], now_iso)
    return "".join(lines)


def _end_of_front_matter(lines: list[str]) -> int:
    if not lines or lines[0].rstrip() != "---":
        return 0
    ends = (number for number, line in enumerate(lines) if number and line.rstrip() in _FENCES)
    return next(ends, 0)


def _moved(line: str, phase: Phase) -> str:
    found = _LIST.match(line)
    if found is None:
        return line
    edit = _with if found[1] == "complete" else _without
    return line[: found.start(2)] + edit(found[2], phase) + line[found.end(2) :]


def _is(item: str, phase: Phase) -> bool:
    return same(item.strip().strip(_QUOTES), phase)


def _with(inner: str, phase: Phase) -> str:
    items = inner.split(",")
    if any(_is(item, phase) for item in items):
        return inner
    listed = inner.rstrip(" \t,")
    last = listed.rpartition(",")[2].strip()
    quote = last[:1] if last[:1] and last[0] in _QUOTES else ""
    return f"{listed}{', ' if listed else ''}{quote}{plainly(phase)}{quote}"


def _without(inner: str, phase: Phase) -> str:
    items = inner.split(",")
    kept = [item for item in items if not _is(item, phase)]
    return inner if kept == items else ",".join(kept).strip()


def _dated(line: str, now_iso: str) -> str:
    found = _TIME.match(line)
    if found is None:
        return line
    value, hash_, comment = line[found.end() :].rstrip("\r\n").partition(" #")
    quote = value[0] if value[0] in _QUOTES else ""
    return f"{found[0]}{quote}{now_iso}{quote}{hash_}{comment}{end_of(line)}"

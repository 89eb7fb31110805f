"""How a roadmap says what has become of a phase: a box, a status, or a word in its heading.

Each function makes one line say that the phase is complete, and returns None for a line that says
nothing of the kind.
"""

from __future__ import annotations

import re

MARK = "- [x] Complete"
_BOX = re.compile(r"([ \t]*[-*+][ \t]+\[)([ xX])(\][ \t]+)")
_STATUS = re.compile(
    r"([ \t]*(?:[-*+][ \t]+)?(?:\*\*Status:\*\*|\*\*Status\*\*:|Status:))([ \t]*)", re.IGNORECASE
)
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_DONE = re.compile(r"[\W_]*(?:completed?|done)(?:\s*\(.*\))?[\W\d_]*", re.IGNORECASE)
_UNDONE = re.compile(
    r"[\W_]*(?:not[ _-]started|to[ _-]?do|pending|planned|planning|discussed|ready|next|upcoming|"
    r"active|current|started|in[ _-]progress|executing|executed|wip|blocked|paused|incomplete)"
    r"(?![^\W_])",
    re.IGNORECASE,
)
_LONGEST = 200


def ticked(line: str) -> str | None:
    """The line with its box ticked, if it is the box of the whole phase."""
    box = _BOX.match(line)
    if box is None:
        return None
    rest = line[box.end() :]
    words = rest.strip(" \t\r\n*_.")
    if words.lower() in ("complete", "completed"):
        return line if box[2] != " " else f"{box[1]}x{box[3]}{rest}"
    if box[2] == " " and len(words) <= _LONGEST and _UNDONE.fullmatch(words):
        return f"{box[1]}x{box[3]}{rest.replace(words, 'Complete', 1)}"
    return None


def with_status(line: str) -> str | None:
    """The line with the status COMPLETE, if it tells a status."""
    found = _STATUS.match(line)
    if found is None:
        return None
    rest = line[found.end() :]
    value = rest.rstrip()
    if len(value) <= _LONGEST and _DONE.fullmatch(value):
        return line
    return f"{found[1]}{found[2] or ' '}COMPLETE{rest[len(value) :]}"


def with_state(heading: str) -> str | None:
    """The heading with [COMPLETE] at its end, if it ends in such a state."""
    shown = heading.rstrip("#*_ \t\r\n")
    start = shown.rfind("[")
    inner = shown[start + 1 : -1]
    if start < 0 or not shown.endswith("]") or len(inner) > _LONGEST:
        return None
    if _DONE.fullmatch(inner):
        return heading
    if _UNDONE.match(inner):
        return f"{shown[:start]}[COMPLETE]{heading[len(shown) :]}"
    return None


def is_item(line: str) -> bool:
    return bool(_ITEM.match(line))

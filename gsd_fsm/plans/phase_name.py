"""Names of phases: 1, "01" and "phase-1" are one phase."""

from __future__ import annotations

import re

Phase = int | str
_PREFIX = re.compile(r"phase[ \t_-]*(?=[^ \t_-])|[ \t]+", re.IGNORECASE)
_ZEROS = re.compile(r"0+(?=[0-9])")


def phase_of(value: object) -> Phase | None:
    """Return the phase that a document names, as a number if it is one; None if it names none."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    text = str(value).strip()
    if text.lower() in ("", "null", "~", "none"):
        return None
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else text


def is_phase(phase: Phase) -> bool:
    """Return whether this can name a phase: a number, or one or more words; never a path."""
    name = str(phase)
    return len(name) <= 100 and re.fullmatch(r"\w[\w.\- ]*", name) is not None and ".." not in name


def phase_key(name: object) -> str | None:
    """Return what all spellings of one phase have in common; None if this cannot be a name."""
    if isinstance(name, float) and name.is_integer():
        name = int(name)  # the JSON editor reads all numbers as floats
    if not isinstance(name, int | str):
        return None
    text = str(name)[:100].strip()
    text = text[found.end() :] if (found := _PREFIX.match(text)) else text
    text = text[found.end() :] if (found := _ZEROS.match(text)) else text
    return text.lower() or None


def same_phase(one: object, other: object) -> bool:
    key = phase_key(one)
    return key is not None and key == phase_key(other)


def phase_number(name: object) -> int | None:
    """Return the number of the phase; None if its name is not a number."""
    key = phase_key(name) or ""
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 16 else None


def shortest_name(phase: Phase) -> Phase:
    """Return the number of the phase if it has one, else its name."""
    number = phase_number(phase)
    return str(phase).strip() if number is None else number

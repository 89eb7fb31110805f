"""What a phase is called: 1, "01" and "phase-1" are one phase."""

from __future__ import annotations

import re

Phase = int | str
_PREFIX = re.compile(r"phase[ \t_-]*(?=[^ \t_-])|[ \t]+", re.IGNORECASE)
_ZEROS = re.compile(r"0+(?=[0-9])")


def key_of(name: object) -> str | None:
    """What all names of one phase have in common; None for what cannot be a name."""
    if isinstance(name, float) and name.is_integer():
        name = int(name)  # as a JSON text that is edited in place gives it
    if not isinstance(name, int | str):
        return None
    text = str(name)[:100].strip()
    text = text[found.end() :] if (found := _PREFIX.match(text)) else text
    text = text[found.end() :] if (found := _ZEROS.match(text)) else text
    return text.lower() or None


def same(one: object, other: object) -> bool:
    key = key_of(one)
    return key is not None and key == key_of(other)


def number_of(name: object) -> int | None:
    """The number of a phase that has one."""
    key = key_of(name) or ""
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 16 else None


def plainly(phase: Phase) -> Phase:
    """The phase as it is written: a number where it has one."""
    number = number_of(phase)
    return str(phase).strip() if number is None else number

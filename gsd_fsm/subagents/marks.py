"""One line of a report: what it begins with, once its Markdown is set aside.

A *mark* is written in capitals (`TASK COMPLETE`), a *label* as one likes (`Files modified:`), an
*option* is `A) …`. Everything else is text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

VERDICTS = {"TASK COMPLETE": "complete", "TASK FAILED": "failed", "CHECKPOINT": "checkpoint"}
ISSUE, FIX, OPTION = "NEW ISSUE", "AUTO-FIX", "option"
DETAIL = "detail"  # a label whose line is a detail like any other, but ends what stands before it
LABELS = {
    "files": "files",
    "files modified": "files",
    "files changed": "files",
    "tests": "tests",
    "test status": "tests",
    "commit": "commit",
    "commit message": "commit",
    "blocker": DETAIL,
    "analysis": "analysis",
    "root cause": "analysis",
    "suggested fix": "suggested_fix",
    "fix": "suggested_fix",
    "attempts": DETAIL,
    "attempts made": DETAIL,
    "options": "options",
    "recommendation": "recommendation",
}

_DECORATION = " \t\xa0#*->_`"
_EMPHASIS = "*_`"
_NUMBER = re.compile(r"\d{1,9}[.)](?=[ \t\xa0*_`])")
_MARK = re.compile(f"({'|'.join([*VERDICTS, ISSUE, FIX])})(?![^\\W_])")
_LABEL = re.compile(f"({'|'.join(sorted(LABELS, key=len, reverse=True))})(?!\\w)", re.IGNORECASE)
_OPTION = re.compile(r"\(?([A-Z])\)|[Oo]ption ([A-Z]|\d{1,2})(?=[:.)*_`]| [—–-] )")
_SEPARATOR = re.compile(r"[ \t]*(?::|[—–-](?=\s))[ \t]*")
_FENCE = re.compile(r"[ \t>]*(`{3,}(?=[^`]*\Z)|~{3,})")
_HEADING = re.compile(r"[ \t>]*#{1,6}[ \t]")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+")


class Mark(NamedTuple):
    """What a line begins with, the text after it, and the emphasis that is still open there."""

    name: str
    text: str
    emphasis: str = ""


def mark_of(line: str) -> Mark | None:
    """The mark, label or option that this line begins with; None for text."""
    before, rest = _undecorated(line)
    emphasis = before[len(before.rstrip(_EMPHASIS)) :][::-1]
    found = _MARK.match(rest)
    if found:
        mark, separated = _after(found[1], rest[found.end() :], emphasis, before)
        needs_more = found[1] not in ("TASK COMPLETE", "TASK FAILED")
        if separated or not needs_more or _may_do_without(mark):
            return mark
        return None
    found = _LABEL.match(rest)
    if found:
        mark, separated = _after(LABELS[found[1].lower()], rest[found.end() :], emphasis, before)
        alone = not mark.text and bool("#" in before or emphasis)
        return mark if separated == ":" or alone else None
    found = _OPTION.match(rest)
    if found:
        mark, _ = _after(OPTION, rest[found.end() :].lstrip(").: \t"), emphasis, before)
        text = closed(mark.text, mark.emphasis)
        return Mark(OPTION, f"{found[1] or found[2]}) {text}") if text else None
    return None


def _may_do_without(mark: Mark) -> bool:
    """Whether it is meant without a colon: these words may begin a sentence too."""
    return not mark.text if mark.name == "CHECKPOINT" else mark.text.startswith("[")


def _undecorated(line: str) -> tuple[str, str]:
    """The Markdown before the first word of a line, and the rest."""
    rest = line.lstrip(_DECORATION)
    number = _NUMBER.match(rest)
    if number:
        rest = rest[number.end() :].lstrip(_DECORATION)
    return line[: len(line) - len(rest)], rest


def _after(name: str, rest: str, emphasis: str, before: str) -> tuple[Mark, str]:
    """The mark with the text after it, and what separates them."""
    rest = rest.strip()
    if "#" in before:
        bare = rest.rstrip("#")
        rest = bare.rstrip() if not bare or bare[-1] in " \t" else rest
    rest, emphasis = _closed_here(rest, emphasis)
    separator = _SEPARATOR.match(rest)
    if separator:
        rest, emphasis = _closed_here(rest[separator.end() :], emphasis)
    return Mark(name, rest, emphasis), separator[0].strip() if separator else ""


def _closed_here(text: str, emphasis: str) -> tuple[str, str]:
    if emphasis and text.startswith(emphasis):
        return text[len(emphasis) :].lstrip(), ""
    return text, emphasis


def closed(text: str, emphasis: str) -> str:
    """The text without the end of an emphasis that began before it."""
    if emphasis and text.endswith(emphasis):
        return text[: -len(emphasis)].rstrip()
    return text.replace(emphasis, "", 1) if emphasis else text


def fence_of(line: str) -> str:
    """The code fence that this line opens, "" for none."""
    found = _FENCE.match(line)
    return found[1] if found else ""


def closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t>")
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def is_heading(line: str) -> bool:
    return bool(_HEADING.match(line))


def item_of(line: str) -> str:
    """The text of a list item, "" for any other line."""
    found = _ITEM.match(line)
    return line[found.end() :].strip() if found else ""

"""Open issues: what a project's own list of issues leaves once the settled ones are gone."""

from __future__ import annotations

import re

_SETTLED = r"(?:closed|resolved|fixed)"
# A word of these settles a line only where it is a remark on it: "must be fixed" is none.
_REMARK = re.compile(
    rf"""
    ^\W* {_SETTLED} (?= \s*[:\])|*_~] | \s+[—–-]\s | \s*$ )
  | [\[(|*_~:,;—–]\s* {_SETTLED} (?![\w-])
  | (?<!\bbe\ )(?<!\bnot\ ) \b{_SETTLED} \W*$
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BOX = re.compile(r"[ \t>]*[-*+][ \t]+\[([ xX])\][ \t]+\S")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_RULE = re.compile(r"[\s|:=-]*")
_STATUS = re.compile(rf"\W*status\W+(?:{_SETTLED}|done)\b", re.IGNORECASE)
_OPEN = re.compile(r"^[^\w\n]*status[^\w\n]+open\b", re.IGNORECASE | re.MULTILINE)
_FRONT = re.compile(r"---\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)


def open_issues(text: str) -> str:
    """The unchecked items of a list of issues; of one without boxes, whatever is not settled."""
    lines = text.split("\n")
    if any(_BOX.match(line) for line in lines):
        return "\n".join(_unchecked(lines))
    return "\n".join(_unsettled(lines)).strip()


def _unchecked(lines: list[str]) -> list[str]:
    kept: list[str] = []
    inside = False
    for line in lines:
        box = _BOX.match(line)
        if box:
            inside = box[1] == " " and not _is_settled(line)
        elif not line.startswith((" ", "\t")):
            inside = False
        if inside and line.strip():
            kept.append(line.rstrip())
    return kept


def _unsettled(lines: list[str]) -> list[str]:
    """The lines of every section that is not settled as a whole."""
    kept: list[str] = []
    settled_above = 0  # the level of the settled heading that we are below
    for heading, body in _sections(lines):
        found = _HEADING.match(heading)
        level = len(found[1]) if found else 0
        if settled_above and level > settled_above:
            continue
        settled_above = 0
        if found and (_is_settled(found[2]) or any(_STATUS.match(line) for line in body)):
            settled_above = level
            continue
        left = [line.rstrip() for line in body if not (_RULE.fullmatch(line) or _is_settled(line))]
        if level > 1 and left:
            kept.append(heading.rstrip())
        kept += left
    return kept


def _is_settled(line: str) -> bool:
    bare = line.strip(" \t-*+>")
    return (bare.startswith("~~") and bare.endswith("~~")) or bool(_REMARK.search(line))


def _sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if _HEADING.match(line):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return found


def is_open(text: str) -> bool:
    """Whether a file about one issue says that it is open."""
    return bool(_OPEN.search(text))


def without_front_matter(text: str) -> str:
    found = _FRONT.match(text)
    return text[found.end() :].strip() if found else text

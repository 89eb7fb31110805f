"""Tables of a Markdown text: which column names the entry, and which one says how it is proved."""

from __future__ import annotations

import re

from gsd_fsm.shapes.command import SPAN
from gsd_fsm.shapes.entry import CRITERIA, VERIFICATION, Entry

_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_WIDEST = 2_000
_PART = re.compile(r"(``(?:(?!``).)+``|`[^`]*`|\\.|\|)")
_NAMES = re.compile(
    r"criteri|constraint|must|what|requirement|condition|name|rule|item|goal", re.IGNORECASE
)
_COUNTS = re.compile(
    r"#|no\.?|nr\.?|id|num.*|status|done|met|✓|✔|priority|wave|aspect", re.IGNORECASE
)
_METHODS = (
    re.compile(r"command|cmd", re.IGNORECASE),
    re.compile(r"method|\bhow\b|\brun\b|proof|proved|verified|verify", re.IGNORECASE),
    re.compile(r"verification|check|test|evidence", re.IGNORECASE),
)


def begins_table(line: str, following: str) -> bool:
    """Whether this line is the head of a table."""
    rule = following.strip()
    return "|" in line and "|" in rule and len(rule) <= _WIDEST and bool(_RULE.fullmatch(rule))


def table_entries(section: str, lines: list[str], first: int) -> list[Entry]:
    """An entry for each row, with what its row says about how it is proved."""
    head = _cells(lines[0])
    name = next(
        (at for at, title in enumerate(head) if _NAMES.search(title)),
        next((at for at, title in enumerate(head) if not _COUNTS.fullmatch(title.strip())), 0),
    )
    method = _method_column(head, name)
    found = []
    for number, line in enumerate(lines[2:], first + 2):
        cells = _cells(line)
        text = cells[name].strip() if name < len(cells) else ""
        others = [cell for at, cell in enumerate(cells) if at != name and SPAN.search(cell)]
        said = cells[method] if 0 <= method < len(cells) else (others or [""])[0]
        proves = section == CRITERIA and bool(said)
        found.append(Entry(VERIFICATION if proves else section, text, number, said))
    return found


def _method_column(head: list[str], name: int) -> int:
    for pattern in _METHODS:
        for at, title in enumerate(head):
            if at != name and pattern.search(title) and "type" not in title.lower():
                return at
    return -1


def _cells(line: str) -> list[str]:
    """The cells of a row; a bar that is escaped, or stands in a code span, divides nothing."""
    cells = [""]
    for part in _PART.split(line.strip().removeprefix("|")):
        if part == "|":
            cells.append("")
        else:
            cells[-1] += part.replace("\\|", "|")
    return [cell.strip() for cell in (cells if cells[-1].strip() else cells[:-1] or cells)]

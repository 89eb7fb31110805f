"""The roadmap: a phase is marked complete where its heading stands, and nothing else is touched."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import GsdError, UsageError
from gsd_fsm.documents.files import Change
from gsd_fsm.phase.document import Document, read
from gsd_fsm.phase.markdown import end_of, lines_of, newline_of, prose
from gsd_fsm.phase.name import Phase, number_of, plainly, same
from gsd_fsm.plans.find import planning_root

FILE_NAME = "roadmap.md"  # its letters may be small or large
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]")
_PHASE = re.compile(
    r"[\W_]*phase[ \t]+(\d+(?:\.\d+)*[a-z]?|[a-z][\w.-]*)(?![^\W_]|\.\d)", re.IGNORECASE
)
_WORD = re.compile(r"[ \t]*[^\W_]")
# "Phase 1-3" and "Phase 1 & 2:" name several phases at once, thus none.
_RANGE = re.compile(r"[-–—/&,+]\d|\s*[-–—/&,+]\s*\d+[\s*_]*(?::|$)")
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


class Heading(NamedTuple):
    """A heading outside of code: where it stands, how high, and which phase it names."""

    line: int
    level: int
    words: str
    phase: str | None


def roadmaps(project: Path) -> list[Document]:
    """The roadmaps of a project: usually one, in small or in large letters."""
    root = planning_root(project)
    try:
        paths = sorted(path for path in root.iterdir() if path.name.lower() == FILE_NAME)
    except OSError:
        return []
    found = [read(project, path) for path in paths]
    return list({it.path: it for it in found if it.content is not None}.values())


def roadmap_changes(project: Path, phase: Phase, title: str = "") -> list[Change]:
    """What makes every roadmap that names the phase say that it is complete."""
    found = [(it, completed(it.text, phase, title)) for it in roadmaps(project)]
    if found and all(text is None for _, text in found):
        path, name = found[0][0].path, plainly(phase)
        raise UsageError(
            f"{path.name} has no heading for phase {name}",
            f"add a line to {path}: ### Phase {name}: {title or 'Title'}",
        )
    return [change for it, text in found if text is not None for change in it.become(text)]


def roadmap_warning(project: Path, phase: Phase) -> str | None:
    """What would stand in the way at the end of this phase, told at its beginning."""
    try:
        roadmap_changes(project, phase)
    except GsdError as error:
        return f"{error.message}; {error.hint}"
    return None


def later_phases(text: str, phase: Phase) -> list[int]:
    """The numbers of the phases that a roadmap names beyond this one, in its order."""
    number = number_of(phase)
    named = [number_of(it.phase) for it in _headings(lines_of(text))[0] if it.phase]
    later = [it for it in named if it is not None and number is not None and it > number]
    return list(dict.fromkeys(later))


def completed(text: str, phase: Phase, title: str = "") -> str | None:
    """The roadmap with this phase complete; None if no heading names the phase.

    Of several such headings the one with the title is meant, else the first.
    """
    lines = lines_of(text)
    headings, readable = _headings(lines)
    found = [it for it in headings if same(it.phase, phase)]
    if not found:
        return None
    entitled = [it for it in found if title and title.lower() in it.words.lower()]
    heading = (entitled or found)[0]
    end = next((it.line for it in headings if _ends(heading, it)), len(lines))
    body = [number for number in readable if heading.line < number < end]
    marks = [
        _first(lines, [heading.line], with_state),
        _first(lines, body, ticked),
        _first(lines, body, with_status),
    ]
    if not any(marks):
        lines[heading.line] += _mark_below(lines, heading.line, newline_of(text))
    return "".join(lines)


def _headings(lines: list[str]) -> tuple[list[Heading], list[int]]:
    """All headings, and the numbers of all lines that are no code."""
    readable = list(prose(lines))
    found = []
    for number in readable:
        opening = _HEADING.match(lines[number])
        if opening:
            words = lines[number][opening.end() :].strip()
            found.append(Heading(number, len(opening[1]), words, _phase_in(words)))
    return found, readable


def _phase_in(words: str) -> str | None:
    named = _PHASE.match(words)
    if named is None or _WORD.match(words, named.end()) or _RANGE.match(words, named.end()):
        return None
    return named[1]


def _ends(section: Heading, other: Heading) -> bool:
    """Whether a section is over where the other heading stands: also at a phase within a phase."""
    return other.line > section.line and (other.level <= section.level or other.phase is not None)


def _first(lines: list[str], numbers: list[int], mark: Callable[[str], str | None]) -> bool:
    """Mark the first line that can be marked; whether there was one."""
    for number in numbers:
        marked = mark(lines[number])
        if marked is not None:
            lines[number] = marked
            return True
    return False


def _mark_below(lines: list[str], number: int, newline: str) -> str:
    """The mark as a line of its own, and a blank one if a paragraph would run into it."""
    end = end_of(lines[number])
    if not end:
        return newline + MARK
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return MARK + end + (end if below.strip() and not is_item(below) else "")


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

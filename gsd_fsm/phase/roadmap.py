"""Mark a phase complete in the roadmap, below its heading; all other bytes stay as they are.

A line that a check of the plan names is left as it is: the check must pass after the phase, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.core.errors import GsdError, UsageError
from gsd_fsm.documents.files import Change, TextFile, open_text
from gsd_fsm.documents.markdown import (
    Heading,
    headings,
    item_of,
    line_end,
    newline_of,
    prose,
    quotations,
    split_lines,
)
from gsd_fsm.plans.find import planning_root
from gsd_fsm.plans.phase_name import Phase, phase_number, same_phase, shortest_name

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan

FILE_NAME = "roadmap.md"  # in upper or lower case
MOST_BYTES = 4 << 20
_PHASE = re.compile(
    r"[\W_]*phase[ \t]+(\d+(?:\.\d+)*[a-z]?|[a-z][\w.-]*)(?![^\W_]|\.\d)", re.IGNORECASE
)
_WORD = re.compile(r"[ \t]*[^\W_]")
# "Phase 1-3" and "Phase 1 & 2:" name several phases, so they mark none.
_RANGE = re.compile(r"[-–—/&,+]\d|\s*[-–—/&,+]\s*\d+[\s*_]*(?::|$)")
MARK = "- [x] Complete"
_BOX = re.compile(r"([ \t]*[-*+][ \t]+\[)([ xX])(\][ \t]+)")
_STATUS = re.compile(
    r"([ \t]*(?:[-*+][ \t]+)?(?:\*\*Status:\*\*|\*\*Status\*\*:|Status:))([ \t]*)", re.IGNORECASE
)
_DONE = re.compile(r"[\W_]*(?:completed?|done)(?:\s*\(.*\))?[\W\d_]*", re.IGNORECASE)
_UNDONE = re.compile(
    r"[\W_]*(?:not[ _-]started|to[ _-]?do|pending|planned|planning|discussed|ready|next|upcoming|"
    r"active|current|started|in[ _-]progress|executing|executed|wip|blocked|paused|incomplete)"
    r"(?![^\W_])",
    re.IGNORECASE,
)
_LONGEST = 200
_NAMED_WORD = re.compile(r"\w{3,}")


def roadmaps(project: Path) -> list[TextFile]:
    """Return the roadmaps of a project: usually one, in upper or lower case."""
    root = planning_root(project)
    try:
        paths = sorted(path for path in root.iterdir() if path.name.lower() == FILE_NAME)
    except OSError:
        return []
    found = [open_text(project, path, MOST_BYTES) for path in paths]
    return list({it.path: it for it in found if it.content is not None}.values())


def named_texts(plan: Plan) -> set[str]:
    """Return the texts that checks of the plan name in the roadmap: quotations, words of commands."""
    texts: set[str] = set()
    for task in plan.tasks:
        changes_it = any(file.path.lower().endswith(FILE_NAME) for file in task.files)
        for check in task.checks:
            text = check.command or check.text
            if changes_it or FILE_NAME in text.lower():
                texts.update(_NAMED_WORD.findall(text) if check.command else quotations(text))
    return texts


def roadmap_changes(
    project: Path, phase: Phase, title: str = "", named: Collection[str] = ()
) -> list[Change]:
    """Return the changes that mark the phase complete; raise UsageError if no roadmap names it."""
    found = [(it, completed(it.text, phase, title, named)) for it in roadmaps(project)]
    if found and all(text is None for _, text in found):
        path, name = found[0][0].path, shortest_name(phase)
        raise UsageError(
            f"{path.name} has no heading for phase {name}",
            f"Add a line to {path}: ### Phase {name}: {title or 'Title'}",
        )
    return [change for it, text in found if text is not None for change in it.changes(text)]


def roadmap_warning(project: Path, phase: Phase) -> str | None:
    """Return what would keep the end of this phase from marking it complete, if anything."""
    try:
        roadmap_changes(project, phase)
    except GsdError as error:
        return f"{error.message}; {error.hint}"
    return None


def later_phases(text: str, phase: Phase) -> list[int]:
    """Return the numbers of the later phases in a roadmap, in its order."""
    number = phase_number(phase)
    named = [phase_number(_phase_in(it.title)) for it in headings(split_lines(text))]
    later = [it for it in named if it is not None and number is not None and it > number]
    return list(dict.fromkeys(later))


def completed(text: str, phase: Phase, title: str = "", named: Collection[str] = ()) -> str | None:
    """Return the roadmap with this phase complete; None if no heading names the phase.

    Of several headings, take the one with the title, else the first. No line loses a `named` text.
    """
    lines = split_lines(text)
    every = list(headings(lines))
    found = [it for it in every if same_phase(_phase_in(it.title), phase)]
    if not found:
        return None
    titled = [it for it in found if title and title.lower() in it.title.lower()]
    heading = (titled or found)[0]
    end = next((it.line for it in every if _ends(heading, it)), len(lines))
    body = [at for at in prose(lines) if heading.line < at < end]
    marks = [
        _mark_first(lines, [heading.line], with_state, named),
        _mark_first(lines, body, ticked, named),
        _mark_first(lines, body, with_status, named),
    ]
    if not any(marks):
        lines[heading.line] += _mark_below(lines, heading.line, newline_of(text))
    return "".join(lines)


def _phase_in(words: str) -> str | None:
    named = _PHASE.match(words)
    if named is None or _WORD.match(words, named.end()) or _RANGE.match(words, named.end()):
        return None
    return named[1]


def _ends(section: Heading, other: Heading) -> bool:
    """Return whether a section ends at the other heading, which may be a phase inside it."""
    is_phase = _phase_in(other.title) is not None
    return other.line > section.line and (other.level <= section.level or is_phase)


def _mark_first(
    lines: list[str],
    numbers: list[int],
    mark: Callable[[str], str | None],
    named: Collection[str],
) -> bool:
    """Mark the first line that can be marked; return whether there was one."""
    for number in numbers:
        line = lines[number]
        marked = mark(line)
        if marked is not None and not any(it in line and it not in marked for it in named):
            lines[number] = marked
            return True
    return False


def _mark_below(lines: list[str], number: int, newline: str) -> str:
    """Return the mark as a line, with a blank line after it if a paragraph follows."""
    end = line_end(lines[number])
    if not end:
        return newline + MARK
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return MARK + end + (end if below.strip() and not item_of(below) else "")


def ticked(line: str) -> str | None:
    """Return the line with its box ticked; None unless it is the box of the whole phase."""
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
    """Return the line with the status COMPLETE; None unless it has a status."""
    found = _STATUS.match(line)
    if found is None:
        return None
    rest = line[found.end() :]
    value = rest.rstrip()
    if len(value) <= _LONGEST and _DONE.fullmatch(value):
        return line
    return f"{found[1]}{found[2] or ' '}COMPLETE{rest[len(value) :]}"


def with_state(heading: str) -> str | None:
    """Return the heading with [COMPLETE] at its end; None unless it ends in such a status."""
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

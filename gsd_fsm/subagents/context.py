"""Read what a subagent should know of the project: documents, settings and known issues."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.documents.read import Missing, Unreadable, is_inside, read_inside
from gsd_fsm.plans.find import planning_root

OVERVIEW, OPENING, CONVENTIONS, ISSUES, SKILL = 6_000, 2_000, 16_000, 8_000, 16_000
_SKILLS = (
    ".claude/skills/{}/SKILL.md",
    ".opti-gsd/skills/{}.md",
    "skills/{}/SKILL.md",
    "skills/{}.md",
)
_MOST_FILES, _ISSUE_FILES, _ISSUE_FILE = 500, 20, 800
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
MOST_BYTES = 64 * 1024
_LEAST = 400  # less of a document is no help
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
_SECTION = re.compile(r"(#{1,6})[ \t]+(.*)")
_RULE = re.compile(r"[\s|:=-]*")
_STATUS = re.compile(rf"\W*status\W+(?:{_SETTLED}|done)\b", re.IGNORECASE)
_OPEN = re.compile(r"^[^\w\n]*status[^\w\n]+open\b", re.IGNORECASE | re.MULTILINE)
_FRONT = re.compile(r"---\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)


class Context(NamedTuple):
    """The documents that there are, each cut to its share, and what else a task may use."""

    root: Path
    project: Document | None
    conventions: Document | None
    issues: Document | None
    mcps: tuple[str, ...]
    browser: bool
    base_url: str | None
    test_command: str
    notes: tuple[str, ...]  # what could not be read, and why

    def skill(self, name: str) -> Document | None:
        """The instructions of a skill; None where the project has none of that name."""
        for pattern in _SKILLS if is_id(name) else ():
            try:
                found = read_document(self.root, pattern.format(name))
            except Unreadable as error:
                return Document(pattern.format(name), f"[not read: {error}]")
            if found:
                return found._replace(text=shortened(found, SKILL))
        return None


def read_context(project: Path, settings: Mapping[str, Any]) -> Context:
    """The context of every task of this project; what cannot be read is left out and noted.

    `settings`: every setting's value by its name.
    """
    shelf = _Shelf(project)
    overview = shelf.find("", "PROJECT.md")
    conventions = shelf.find("codebase", "CONVENTIONS.md")
    return Context(
        root=project,
        project=overview and overview._replace(text=_overview(overview)),
        conventions=conventions and _cut(conventions, CONVENTIONS),
        issues=_issues(project, shelf),
        mcps=tuple(settings.get("mcps") or ()),
        browser=bool(settings.get("browser")),
        base_url=settings.get("base_url"),
        test_command=test_command(project, settings),
        notes=tuple(shelf.notes),
    )


class _Shelf:
    """The planning root, and what is wrong with the documents there."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.root = planning_root(project).name
        self.notes: list[str] = []

    def find(self, directory: str, name: str) -> Document | None:
        where = f"{self.root}/{directory}" if directory else self.root
        try:
            return read_document(self.project, spelled(self.project, where, name))
        except Unreadable as error:
            self.notes.append(str(error))
            return None


def test_command(project: Path, settings: Mapping[str, Any]) -> str:
    """The command that runs the project's tests: the setting, else what is usual there."""
    usual = "npm test" if is_inside(project, "package.json") else "pytest"
    return settings.get("ci_test") or usual


def _cut(document: Document, room: int) -> Document:
    return document._replace(text=shortened(document, room))


def _overview(document: Document) -> str:
    """The section that is headed "overview", else the beginning."""
    kept: list[str] = []
    level = 0
    in_code = False
    for line in document.text.split("\n"):
        in_code ^= bool(_FENCE.match(line))
        heading = None if in_code else _HEADING.match(line)
        if heading and level and len(heading[1]) <= level:
            break
        if level:
            kept.append(line)
        elif heading and heading[2].strip(" \t#*_:.0123456789").lower() == "overview":
            level = len(heading[1])
    text = "\n".join(kept).strip()
    if text:
        return shortened(document._replace(text=text), OVERVIEW)
    return shortened(document, OPENING)


def _issues(project: Path, shelf: _Shelf) -> Document | None:
    listed = shelf.find("", "ISSUES.md")
    parts = [open_issues(listed.text)] if listed else []
    found = []
    names = [n for n in names_in(project / shelf.root / "issues") if n.lower().endswith(".md")]
    for name in names[:_MOST_FILES]:
        document = shelf.find("issues", name)
        if document and is_open(document.text):
            found.append(document._replace(text=without_front_matter(document.text)))
    parts += [f"{each.path}:\n{shortened(each, _ISSUE_FILE)}" for each in found[:_ISSUE_FILES]]
    if len(found) > _ISSUE_FILES:
        parts.append(f"…[{len(found) - _ISSUE_FILES} more open issues in {shelf.root}/issues]")
    text = "\n\n".join(part for part in parts if part.strip())
    where = listed.path if listed else f"{shelf.root}/issues"
    return _cut(Document(where, text), ISSUES) if text else None


class Document(NamedTuple):
    """A text, and the path in the project at which all of it can be read."""

    path: str
    text: str


def read_document(project: Path, path: str) -> Document | None:
    """The document, None if there is none; Unreadable if it is no text inside of the project."""
    try:
        content = read_inside(project, path)
    except Missing:
        return None
    if b"\0" in content:
        raise Unreadable(f"{path}: not a text")
    text = content[:MOST_BYTES].decode("utf-8-sig", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(content) > MOST_BYTES:
        text = text.rstrip("\ufffd") + _cut_note(path)
    return Document(path, text) if text else None


def names_in(directory: Path) -> list[str]:
    """What a directory holds, in order; nothing if it is none."""
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError:
        return []


def spelled(project: Path, directory: str, name: str) -> str:
    """The path of this name as the directory spells it: `conventions.md` may be in capitals."""
    found = [entry for entry in names_in(project / directory) if entry.lower() == name.lower()]
    return f"{directory}/{name if name in found or not found else found[0]}"


def shortened(document: Document, room: int) -> str:
    """The text in this room: cut at a line where it can be, and saying so."""
    text = document.text
    if len(text) <= room:
        return text
    if room < _LEAST:
        return f"[left out for want of room; read {document.path}]"
    note = _cut_note(document.path)
    kept = text[: room - len(note)]
    line = kept.rfind("\n")
    return (kept[:line] if line > len(kept) // 2 else kept).rstrip() + note


def _cut_note(path: str) -> str:
    return f"\n…[cut here; the rest is in {path}]"


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
        found = _SECTION.match(heading)
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
        if _SECTION.match(line):
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

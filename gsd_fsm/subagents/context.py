"""Read what a subagent should know of the project: documents, settings and known issues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.documents.front_matter import front_matter_lines
from gsd_fsm.documents.markdown import Heading, headings, item_of
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
MAX_BYTES = 64 * 1024
_LEAST = 400  # a shorter part of a document does not help
_CLOSED = r"(?:closed|resolved|fixed)"
# These words close an issue only as a remark: "must be fixed" does not.
_REMARK = re.compile(
    rf"""
    ^\W* {_CLOSED} (?= \s*[:\])|*_~] | \s+[—–-]\s | \s*$ )
  | [\[(|*_~:,;—–]\s* {_CLOSED} (?![\w-])
  | (?<!\bbe\ )(?<!\bnot\ ) \b{_CLOSED} \W*$
    """,
    re.IGNORECASE | re.VERBOSE,
)
_RULE = re.compile(r"[\s|:=-]*")
_CLOSED_STATUS = re.compile(rf"\W*status\W+(?:{_CLOSED}|done)\b", re.IGNORECASE)
_OPEN_STATUS = re.compile(r"^[^\w\n]*status[^\w\n]+open\b", re.IGNORECASE | re.MULTILINE)


class Document(NamedTuple):
    """A text, and the path of the whole text in the project."""

    path: str
    text: str


class Context(NamedTuple):
    """The documents of a project, each cut to its share, and the settings for tasks."""

    root: Path
    project: Document | None
    conventions: Document | None
    issues: Document | None
    mcps: tuple[str, ...]
    browser: bool
    base_url: str | None
    test_command: str
    notes: tuple[str, ...]  # which files could not be read, and why

    def skill(self, name: str) -> Document | None:
        """Return the instructions of a skill; None if the project has no such skill."""
        for pattern in _SKILLS if is_id(name) else ():
            try:
                found = read_document(self.root, pattern.format(name))
            except Unreadable as error:
                return Document(pattern.format(name), f"[not read: {error.message}]")
            if found:
                return _cut(found, SKILL)
        return None


def read_context(project: Path, settings: Mapping[str, Any]) -> Context:
    """Return the context of every task of this project; note files that cannot be read.

    `settings` has the value of every setting by its name.
    """
    notes: list[str] = []
    root = planning_root(project).name

    def find(directory: str, name: str) -> Document | None:
        try:
            return read_document(project, _spelled(project, directory, name))
        except Unreadable as error:
            notes.append(error.message)
            return None

    overview = find(root, "PROJECT.md")
    conventions = find(f"{root}/codebase", "CONVENTIONS.md")
    listed = find(root, "ISSUES.md")
    names = [name for name in _names(project / root / "issues") if name.lower().endswith(".md")]
    files = (find(f"{root}/issues", name) for name in names[:_MOST_FILES])
    return Context(
        root=project,
        project=overview and overview._replace(text=_overview(overview)),
        conventions=conventions and _cut(conventions, CONVENTIONS),
        issues=_issues(root, listed, [it for it in files if it and is_open(it.text)]),
        mcps=tuple(settings.get("mcps") or ()),
        browser=bool(settings.get("browser")),
        base_url=settings.get("base_url"),
        test_command=test_command(project, settings),
        notes=tuple(notes),
    )


def test_command(project: Path, settings: Mapping[str, Any]) -> str:
    """Return the command that runs the tests: the setting, or the usual one of the project."""
    usual = "npm test" if is_inside(project, "package.json") else "pytest"
    return settings.get("ci_test") or usual


def _overview(document: Document) -> str:
    """Return the section "Overview", or the beginning of the document."""
    lines = document.text.split("\n")
    for heading, section in _sections(lines, with_subsections=True):
        if heading.title.strip(" \t#*_:.0123456789").lower() == "overview":
            text = "\n".join(section).strip()
            if text:
                return shortened(document._replace(text=text), OVERVIEW)
            break
    return shortened(document, OPENING)


def _sections(
    lines: list[str], *, with_subsections: bool = False
) -> Iterator[tuple[Heading, list[str]]]:
    """Yield each heading with the lines below it; the lines before the first have level 0."""
    found = [Heading(0, "", -1), *headings(lines)]
    for number, heading in enumerate(found):
        level = heading.level if with_subsections else 6
        ends = (later.line for later in found[number + 1 :] if later.level <= level)
        yield heading, lines[heading.line + 1 : next(ends, len(lines))]


# documents


def read_document(project: Path, path: str) -> Document | None:
    """Return the document, None if there is none; raise Unreadable if it is not a text file."""
    try:
        content = read_inside(project, path)
    except Missing:
        return None
    if b"\0" in content:
        raise Unreadable(f"{path}: not a text file (NUL byte)")
    text = content[:MAX_BYTES].decode("utf-8-sig", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(content) > MAX_BYTES:
        text = text.rstrip("\ufffd") + _cut_note(path)
    return Document(path, text) if text else None


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError:
        return []


def _spelled(project: Path, directory: str, name: str) -> str:
    """Return the path of this name as the directory spells it, in any case."""
    found = [entry for entry in _names(project / directory) if entry.lower() == name.lower()]
    return f"{directory}/{name if name in found or not found else found[0]}"


def _cut(document: Document, room: int) -> Document:
    return document._replace(text=shortened(document, room))


def shortened(document: Document, room: int) -> str:
    """Return the text, cut to fit, preferably at a line, with a note that it was cut."""
    text = document.text
    if len(text) <= room:
        return text
    if room < _LEAST:
        return f"[omitted for lack of space; read {document.path}]"
    note = _cut_note(document.path)
    kept = text[: room - len(note)]
    line = kept.rfind("\n")
    return (kept[:line] if line > len(kept) // 2 else kept).rstrip() + note


def _cut_note(path: str) -> str:
    return f"\n…[cut here; the rest is in {path}]"


# issues


def _issues(root: str, listed: Document | None, files: list[Document]) -> Document | None:
    """Return the open issues of the list and of files about one issue each."""
    parts = [open_issues(listed.text)] if listed else []
    for each in files[:_ISSUE_FILES]:
        bare = each._replace(text=_without_front_matter(each.text))
        parts.append(f"{each.path}:\n{shortened(bare, _ISSUE_FILE)}")
    if len(files) > _ISSUE_FILES:
        parts.append(f"…[{len(files) - _ISSUE_FILES} more open issues in {root}/issues]")
    text = "\n\n".join(part for part in parts if part.strip())
    path = listed.path if listed else f"{root}/issues"
    return _cut(Document(path, text), ISSUES) if text else None


def is_open(text: str) -> bool:
    """Return whether a file about one issue says that it is open."""
    return bool(_OPEN_STATUS.search(text))


def _without_front_matter(text: str) -> str:
    lines = text.split("\n")
    front = front_matter_lines(lines)
    return "\n".join(lines[front.stop + 1 :]).strip() if front else text


def open_issues(text: str) -> str:
    """Return the unchecked items of a list of issues, or without check boxes all that is open."""
    lines = text.split("\n")
    if any(_box(line) for line in lines):
        return "\n".join(_unchecked(lines))
    return "\n".join(_open_sections(lines)).strip()


def _box(line: str) -> str | None:
    item = item_of(line.lstrip("> \t"))
    return item.box if item and item.text else None


def _unchecked(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        box = _box(line)
        if box:
            inside = box == " " and not _is_closed(line)
        elif not line.startswith((" ", "\t")):
            inside = False
        if inside and line.strip():
            yield line.rstrip()


def _open_sections(lines: list[str]) -> Iterator[str]:
    """Yield the open lines of every section that is not closed as a whole."""
    closed_level = 0  # the level of the closed heading above
    for heading, section in _sections(lines):
        if closed_level and heading.level > closed_level:
            continue
        closed_level = 0
        if heading.level and (
            _is_closed(heading.title) or any(_CLOSED_STATUS.match(line) for line in section)
        ):
            closed_level = heading.level
            continue
        left = [line for line in section if not (_RULE.fullmatch(line) or _is_closed(line))]
        if heading.level > 1 and left:
            yield lines[heading.line].rstrip()
        yield from (line.rstrip() for line in left)


def _is_closed(line: str) -> bool:
    bare = line.strip(" \t-*+>")
    return (bare.startswith("~~") and bare.endswith("~~")) or bool(_REMARK.search(line))

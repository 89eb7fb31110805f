"""What a subagent should know of the project: its own documents, and what the settings say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.plans.find import planning_root
from gsd_fsm.subagents.document import Document, names_in, read_document, shortened, spelled
from gsd_fsm.subagents.issues import is_open, open_issues, without_front_matter
from gsd_fsm.verification.inside import Unreadable, is_file

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
    usual = "npm test" if is_file(project, "package.json") else "pytest"
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

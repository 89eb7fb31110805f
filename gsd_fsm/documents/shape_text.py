"""A SHAPE.md as entries: its headings and labels, and the lists, tables and fences below them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import dropwhile

from gsd_fsm.documents.shape_command import Unreadable, shell_lines

CRITERIA = "criteria"
MUST_NOT = "must_not"
VERIFICATION = "verification"
_SECTION = re.compile(
    r"(?P<criteria>(?:(?:success|acceptance|implementation|completion|exit) )?criteria(?: details)?"
    r"|definition of done|done when)"
    r"|(?P<must_not>must ?nots?|must never|non goals|do not|donts)"
    r"|(?P<verification>(?:(?:automated|manual|final) )?verification(?: (?:plan|commands|steps))?"
    r"|verify|checks|how to verify)"
)
_FORBIDS = re.compile(r"must ?not|must never")
_EXPLAINS = re.compile(r"(?:why|notes?|rationale|examples?)\b")
_NUMBERS = ("#", "no", "nr", "id", "number")
_LABEL = 7  # a label is smaller than any heading
_PARAGRAPH = 1 << 20  # nothing is indented below a paragraph
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HEADING = re.compile(r"(#{1,6})(?: +(.*))?")
# `Must not:`, `Must not: text`, `**Must not:** text`, `**Must not**: text` or `**Must not**`.
_LABELLED = re.compile(r"(\*\*)?([^:*`]{1,80})(?::\*\*|\*\*:?|:)(?: +(.*))?")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*([\w-]*)")
_ITEM = re.compile(r"(?:[-*+•]|\d{1,4}[.)])(?: +|$)(?:\[[ xX]\](?: +|$))?(.*)")
_SHIELDED = re.compile(r"`[^`]*`|\\\|")


def section_of(title: str, *, is_exact: bool = False) -> str:
    """The section that a heading or a label of this name begins; "" if it begins none."""
    title = re.split(r":|\s[–—-]\s", title)[0]
    found = _SECTION.fullmatch(_words(title.partition("(")[0]))
    if found:
        return found.lastgroup or ""
    return MUST_NOT if not is_exact and _FORBIDS.search(_words(title)) else ""


@functools.lru_cache(maxsize=256)  # the same few titles come again and again
def _words(title: str) -> str:
    bare = _CAMEL.sub(" ", re.sub(r"['’]", "", title))
    return " ".join(re.sub(r"[^A-Za-z]+", " ", bare).lower().split())


class Entry:
    """One item of a section, with what stands below it and beside it."""

    def __init__(self, section: str, line: int, text: str) -> None:
        self.section = section
        self.line = line
        self.parts = [[text]]  # the lines of its own text, then those of each item below it
        self.is_row = False  # of a table: its parts are the cells
        self.commands: list[str] = []
        self.head = self.name = ""  # its name, and the same with what stands below it


class Document:
    """The entries of a text, in their order, and what in it was not read."""

    def __init__(self, text: str) -> None:
        self.entries: list[Entry] = []
        self.notes: list[str] = []
        self.unread: dict[str, None] = {}  # titles of lists and tables
        # The headings and labels that hold here, each with its level and its section.
        self._open = [(0, "")]
        self._title = "the beginning"
        self._last: Entry | None = None  # the item or the paragraph that may go on
        self._indent = 0
        self._is_apart = False
        self._paragraphs: list[Entry] = []
        self._since = 0
        self._row_above: list[str] = []
        self._numbers: set[int] = set()  # the columns of a table that name nothing
        lines = text.split("\n")
        if lines[0] == "---" and "---" in lines[1:]:  # front matter is read like a fence
            lines[lines.index("---", 1)] = "```"
            lines[0] = "```yaml"
        self._read(lines)
        self._end()

    def note(self, line: int, what: str) -> None:
        self.notes.append(f"line {line}: {what[:300]}")

    def _read(self, lines: list[str]) -> None:
        numbered = enumerate(lines, 1)
        for line, raw in numbered:
            bare = raw.strip()
            fence = _FENCE.match(bare)
            if fence and "`" not in bare[fence.end() :]:
                inner = _inner(numbered, line, fence[1])
                self._fence(line, _indent(raw), fence[2].lower(), inner)
            elif bare.startswith("<!--") and "-->" not in bare:
                _inner(numbered, line, "-->")
            else:
                text = bare.partition("<!--")[0].rstrip() if bare.endswith("-->") else bare
                self._line(line, _indent(raw), text)

    def _line(self, line: int, indent: int, bare: str) -> None:
        is_apart, self._is_apart = self._is_apart, not bare
        if heading := _HEADING.fullmatch(bare):
            self._end()
            title = (heading[2] or "").rstrip("# ")
            self._enter(len(heading[1]), title, section_of(title))
        elif not bare.strip("-*_= "):
            pass  # a rule, or nothing
        elif item := _ITEM.fullmatch(bare):
            if self._last and indent > self._indent + 1:
                self._last.parts.append([item[1]])
            else:
                self._last, self._indent = self._new(line, item[1]), indent
        elif bare.startswith("|"):
            self._row(line, bare)
        elif self._last and indent > self._indent:
            self._last.parts[-1].append(bare)
        elif self._is_label(line, indent, bare):
            pass
        elif self._last and not is_apart:
            self._last.parts[-1].append(bare)
        else:
            self._last, self._indent = Entry(self._open[-1][1], line, bare), _PARAGRAPH
            self._paragraphs.append(self._last)

    def _enter(self, level: int, title: str, section: str) -> None:
        """Begin a part; one of an unknown name belongs to what it stands in, unless it explains."""
        self._leave(level)
        outer = "" if _EXPLAINS.match(_words(title)) else self._open[-1][1]
        self._open.append((level, section or outer))
        self._title = title

    def _leave(self, level: int) -> None:
        while self._open[-1][0] >= level:
            self._open.pop()
        self._last = None

    def _end(self) -> None:
        """The end of what stands under a heading: without a list, its paragraphs are its items."""
        listed = {entry.section for entry in self.entries[self._since :]}
        for entry in self._paragraphs:
            if not entry.section or entry.parts[0][-1].rstrip("*").endswith(":"):
                continue
            if entry.section in listed:
                self.note(entry.line, "text beside a list is not read")
            else:
                self.entries.append(entry)
        self._paragraphs, self._since = [], len(self.entries)

    def _is_label(self, line: int, indent: int, bare: str) -> bool:
        """Whether a known label begins a section here; any other one may end a section."""
        found = _LABELLED.fullmatch(bare)
        if not found:
            return False
        title, rest = found[2], found[3] or ""
        section = section_of(title, is_exact=bool(rest))
        is_key = ":" in bare and title.replace("-", "_").isidentifier()
        if section or (not rest and (is_key or (":" in bare and found[1]))):
            self._enter(_LABEL + indent, title, section)
        elif is_key:
            self._leave(_LABEL + indent)
        if section and rest:
            self._last, self._indent = self._new(line, rest), indent
        return bool(section)

    def _new(self, line: int, text: str) -> Entry:
        entry = Entry(self._open[-1][1], line, text)
        if entry.section:
            self.entries.append(entry)
        else:
            self.unread[self._title] = None
        return entry

    def _row(self, line: int, bare: str) -> None:
        # A text has no NUL: it stands for a bar that is escaped, or part of a code span.
        hidden = _SHIELDED.sub(lambda it: it[0].replace("\\|", "\0").replace("|", "\0"), bare)
        cells = hidden.removeprefix("|").removesuffix("|").split("|")
        cells = [cell.replace("\0", "|").strip() for cell in cells]
        if set(bare) - set("|-: "):
            told = [cell for at, cell in enumerate(cells) if at not in self._numbers]
            told = list(dropwhile(str.isdigit, told)) or [""]
            row = self._new(line, told[0])
            row.is_row, row.parts = True, [[cell] for cell in told]
        else:  # the row above is the head
            names = [cell.strip(".").lower() for cell in self._row_above]
            self._numbers = {at for at, name in enumerate(names) if name in _NUMBERS}
            if self.entries and self.entries[-1].is_row and self.entries[-1].line == line - 1:
                self.entries.pop()
        self._row_above, self._last = cells, None

    def _fence(self, line: int, indent: int, language: str, inner: list[str]) -> None:
        section = self._open[-1][1]
        owner = self._last if self._last and indent > self._indent else None
        is_shell = language in ("sh", "bash", "shell", "console", "zsh")
        if is_shell and (section == VERIFICATION or (owner and section == CRITERIA)):
            for number, name, command in shell_lines(inner, line + 1):
                (owner or self._new(number, name)).commands.append(command)
        elif language in ("", "yaml", "yml"):
            outer, self._last = list(self._open), None
            for number, more in enumerate(inner, line + 1):
                if not more.lstrip().startswith("#"):  # a comment, in YAML
                    self._line(number, _indent(more), more.strip())
            self._open, self._last = outer, None
        elif section or language.startswith("json"):
            self.note(line, f"a fence of {language} is not read")


def _indent(raw: str) -> int:
    return len(raw[: len(raw) - len(raw.lstrip())].expandtabs(4))


def _inner(numbered: Iterator[tuple[int, str]], begun: int, mark: str) -> list[str]:
    """The lines up to this mark, which ends a fence or a comment."""
    inner: list[str] = []
    for _, line in numbered:
        bare = line.strip()
        if mark in bare and (mark == "-->" or not bare.strip(mark[0])):
            return inner
        inner.append(line)
    raise Unreadable(begun, f"what begins here has no end: {mark}")

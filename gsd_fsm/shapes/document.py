"""A shape in Markdown: headings and labels, and the lists, tables and fences that stand under them."""

from __future__ import annotations

import re

from gsd_fsm.shapes.command import SPAN, code_of, plain
from gsd_fsm.shapes.data import MOST_CHARACTERS, data_entries, json_tree, section_keys, yaml_tree
from gsd_fsm.shapes.entry import (
    CRITERIA,
    MUST_NOT,
    VERIFICATION,
    Entry,
    Unreadable,
    is_aside,
    section_of,
)
from gsd_fsm.shapes.shell import BARE, ITEM, LANGUAGES, commands, listed
from gsd_fsm.shapes.table import begins_table, table_entries

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{3,})[ \t]*")
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([\w-]*)[^`]*")
_LABEL = re.compile(r"(\*\*|__)?([^\W\d_][^:*]{0,60}?)(?:\1)?[ \t]*(?::(?:\1)?[ \t]*(.*)|(?<=\*\*)|(?<=__))")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
# What an item says about the item that it stands under, or about itself.
_PROOF = re.compile(r"(?:verif\w*|command|check|run|test|proof|how|method|via)\b[^:]{0,20}:\s*(.+)", re.IGNORECASE)
_DETAIL = re.compile(
    r"(?:type|expert|why|rationale|reason|notes?|confidence|priority|evidence|status|owner|expected|e\.g\.)\b[^:]{0,20}:",
    re.IGNORECASE,
)
_MENTIONS = re.compile(r"^[ \t]*[\"']?(?:[a-z]+[ _-]?)?(?:criteria|must[ _-]?nots?|verification|checks)[\"']?[ \t]*:", re.I | re.M)
_DATA = {"yaml": yaml_tree, "yml": yaml_tree, "json": json_tree, "jsonc": json_tree}
_LABEL_LEVEL = 7
_MOST_NOTES = 20


class Document:
    """The entries of a text, in their order, and what in it was not understood."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.entries: list[Entry] = []
        self.notes: list[str] = []
        self.room = MOST_CHARACTERS
        # The headings and labels that hold here, outermost first: their levels and sections.
        self.open: list[tuple[int, str]] = []
        self.indents: list[tuple[int, str]] = []  # the same for items that are labels
        self.items: list[tuple[int, int]] = []  # the items that hold here: their indents and entries
        self.paragraphs: list[Entry] = []
        self.going_on = False  # whether a line of text belongs to the item above it
        at = self._front_matter()
        while at < len(self.lines):
            at = self._step(at)
        self._close()

    @property
    def section(self) -> str:
        if self.indents:
            return self.indents[-1][1]
        return self.open[-1][1] if self.open else ""

    def note(self, line: int, what: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(f"line {line}: {what}")

    def _step(self, at: int) -> int:
        """Look at this line; the next one to be looked at."""
        line = _QUOTE.sub("", self.lines[at]).expandtabs(4)
        going_on, self.going_on = self.going_on, False
        following = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        if fence := _FENCE.fullmatch(line):
            return self._fence(at, len(fence[1]), fence[2], fence[3].lower())
        if line.lstrip().startswith("<!--"):
            return self._comment(at)
        if heading := _HEADING.fullmatch(line):
            self._heading(len(heading[1]), heading[2].rstrip("# "))
        elif not line.strip():
            pass
        elif begins_table(line, following):
            return self._table(at)
        elif item := ITEM.fullmatch(line):
            self._item(at + 1, len(item["indent"]), item["text"].strip())
        elif (under := _UNDERLINE.fullmatch(following)) and not going_on and not line[:1].isspace():
            self._heading(1 if under[1][0] == "=" else 2, line.strip())
            return at + 2
        elif not self._label(at + 1, line.strip()):
            self._text(at + 1, line, going_on=going_on)
        return at + 1

    def _comment(self, start: int) -> int:
        for at in range(start, len(self.lines)):
            if "-->" in self.lines[at]:
                return at + 1
        return len(self.lines)

    # headings and labels

    def _heading(self, level: int, title: str) -> None:
        self._close()
        while self.open and self.open[-1][0] >= level:
            self.open.pop()
        outer = self.open[-1][1] if self.open else ""
        title = plain(title)
        self.open.append((level, "" if is_aside(title) else section_of(title) or outer))

    def _close(self) -> None:
        """The end of a section: one without any list says what it has to say in its text."""
        self.entries += self.paragraphs
        self.paragraphs, self.indents, self.items, self.going_on = [], [], [], False

    def _label(self, line: int, text: str) -> bool:
        """Whether this line is a label, such as `criteria:` or `**Must NOT**`."""
        found = _LABEL.fullmatch(text)
        if not found or (found[3] is None and not found[1]):
            return False
        section, rest = section_of(found[2]), (found[3] or "").strip()
        own = bool(self.open) and self.open[-1][0] == _LABEL_LEVEL
        if not section and (rest or not own or (not found[1] and " " in found[2])):
            return False
        self._close()
        if own:
            self.open.pop()
        if section:
            self.open.append((_LABEL_LEVEL, section))
        if rest:
            self._add(Entry(section, rest, line))
        return True

    # lists and text

    def _item(self, line: int, indent: int, text: str) -> None:
        while self.indents and self.indents[-1][0] >= indent:
            self.indents.pop()
        while self.items and self.items[-1][0] >= indent:
            self.items.pop()
        label = _LABEL.fullmatch(text)
        section = section_of(label[2]) if label and (label[3] is not None or label[1]) else ""
        if label and section and not (label[3] or "").strip():
            self.indents.append((indent, section))
            return
        if label and section and not self.section:
            self._add(Entry(section, (label[3] or "").strip(), line))
            return
        if self.items and self._is_about(self.items[-1][1], text):
            return
        if self.section:
            self._add(Entry(self.section, text, line))
            self.items.append((indent, len(self.entries) - 1))
            self.going_on = True

    def _is_about(self, number: int, text: str) -> bool:
        """Whether an item only says something about the entry it stands under."""
        entry = self.entries[number]
        proof = _PROOF.fullmatch(plain(text)) and _PROOF.fullmatch(text.replace("**", ""))
        if entry.section in (CRITERIA, VERIFICATION) and (proof or SPAN.fullmatch(text)):
            method = proof[1] if proof else text
            certain = bool(SPAN.fullmatch(method.strip()))
            if not entry.method:
                said = code_of(method) if certain else method
                self.entries[number] = entry._replace(method=said, certain=certain)
            return True
        return _DETAIL.match(plain(text)) is not None

    def _text(self, line: int, text: str, *, going_on: bool) -> None:
        if going_on and self.items:
            number = self.items[-1][1]
            last = self.entries[number]
            self.entries[number] = last._replace(text=f"{last.text} {text.strip()}")
            self.going_on = True
        elif self.section and not self.items and self.section in (CRITERIA, VERIFICATION, MUST_NOT):
            begun = self.paragraphs and self.paragraphs[-1].line == line - 1
            if begun:
                last = self.paragraphs.pop()
                text = f"{last.text} {text.strip()}"
            self.paragraphs.append(Entry(self.section, text.strip(), line))

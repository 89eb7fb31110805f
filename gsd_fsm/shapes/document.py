"""A shape in Markdown: what its headings, labels, lists, tables and fences say."""

from __future__ import annotations

import re

from gsd_fsm.shapes.blocks import LABEL, Block, blocks
from gsd_fsm.shapes.command import SPAN, plain
from gsd_fsm.shapes.data import MOST_CHARACTERS, data_entries, json_tree, yaml_tree
from gsd_fsm.shapes.entry import (
    CRITERIA,
    MUST_NOT,
    VERIFICATION,
    Entry,
    Unreadable,
    is_aside,
    section_of,
)
from gsd_fsm.shapes.shell import BARE, LANGUAGES, commands, listed
from gsd_fsm.shapes.table import table_entries

# What an item says about the one it stands under: how it is proved, or something that explains it.
_PROOF = re.compile(
    r"(?:verif\w*|command|check|run|test|proof|how|method|via)(?: (?:with|by|command|method|to verify))?"
    r":\s*(?P<how>.+)",
    re.IGNORECASE,
)
_DETAIL = re.compile(
    r"(?:type|expert|why|rationale|reason|notes?|confidence|priority|evidence|status|owner|expected"
    r"|source)\b[^:]{0,20}:",
    re.IGNORECASE,
)
_OURS = re.compile(
    r"(?:^|[{,])[ \t]*[\"']?(?:[a-z]+[ _-]?)?(?:criteria|must[ _-]?nots?|verif[a-z]+|checks)[\"']?[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_LABEL_LEVEL = 7
_MOST_NOTES = 20


class Document:
    """The entries of a text, in their order, and what in it was not understood."""

    def __init__(self, text: str) -> None:
        self.entries: list[Entry] = []
        self.notes: list[str] = []
        self._room = MOST_CHARACTERS
        # Headings and labels that hold here, outermost first: level and section; then the same for
        # items that are labels, and the entries of the items, each by its indent.
        self._open: list[tuple[int, str]] = []
        self._labels: list[tuple[int, str]] = []
        self._items: list[tuple[int, int]] = []
        self._since = 0
        self._paragraphs: list[Entry] = []
        self._read(text.split("\n"), 1)
        self._close()

    def note(self, line: int, what: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(f"line {line}: {what}")

    @property
    def _section(self) -> str:
        inner = self._labels or self._open
        return inner[-1][1] if inner else ""

    def _read(self, lines: list[str], first: int) -> None:
        for block in blocks(lines, first):
            if block.kind == "heading":
                self._heading(block.level, plain(block.text[:500]))
            elif block.kind == "item":
                self._item(block)
            elif block.kind == "text":
                self._text(block)
            elif block.kind == "table":
                if self._section:
                    self.entries += table_entries(self._section, list(block.lines), block.line)
            else:
                self._fence(block)

    def _close(self) -> None:
        """The end of a section; one without a list says in its text what it has to say."""
        if len(self.entries) == self._since:
            self.entries += [p for p in self._paragraphs if not p.text.endswith(":")]
        self._labels, self._items, self._paragraphs = [], [], []

    def _enter(self, level: int, section: str) -> None:
        self._close()
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, section))
        self._since = len(self.entries)

    def _heading(self, level: int, title: str) -> None:
        outer = [section for above, section in self._open if above < level]
        found = "" if is_aside(title) else section_of(title) or (outer[-1] if outer else "")
        self._enter(level, found)

    def _text(self, block: Block) -> None:
        label = LABEL.fullmatch(block.text)
        name = plain(label["name"] or label["bare"]) if label else ""
        rest = ((label["rest"] or label["said"] or "") if label else "").strip()
        section = section_of(name)
        in_label = bool(self._open) and self._open[-1][0] == _LABEL_LEVEL
        if section:
            self._enter(_LABEL_LEVEL, section)
            if rest:
                self.entries.append(Entry(section, rest, block.line))
        elif in_label and label and not rest and (label["bold"] or " " not in name):
            self._close()  # another label ends it
            self._open.pop()
            self._since = len(self.entries)
        elif self._section in (CRITERIA, VERIFICATION, MUST_NOT) and not self._items:
            self._paragraphs.append(Entry(self._section, block.text, block.line))

    def _item(self, block: Block) -> None:
        for held in (self._labels, self._items):
            while held and held[-1][0] >= block.level:
                held.pop()
        label = LABEL.fullmatch(block.text)
        section = section_of(plain(label["name"] or label["bare"])) if label else ""
        rest = ((label["rest"] or label["said"] or "") if label else "").strip()
        if section and not rest:
            self._labels.append((block.level, section))
        elif self._items and self._is_about(self._items[-1][1], block.text):
            pass
        elif section or self._section:
            text = rest if section else block.text
            self.entries.append(Entry(section or self._section, text, block.line))
            self._items.append((block.level, len(self.entries) - 1))

    def _is_about(self, number: int, text: str) -> bool:
        """Whether this only says something about the entry that it stands under."""
        entry, bare = self.entries[number], text.replace("**", "")
        proof = _PROOF.fullmatch(bare)
        how = proof["how"].strip() if proof else bare if SPAN.fullmatch(bare) else ""
        if how and not entry.method and entry.section in (CRITERIA, VERIFICATION):
            self.entries[number] = entry._replace(method=how)
            return True
        return _DETAIL.match(bare) is not None

    def _fence(self, block: Block) -> None:
        if not block.is_closed and self._section:
            self.note(block.line, "this fence has no end")
        if block.text in ("yaml", "yml", "json", "jsonc"):
            self._data(block)
            return
        if not self._section:
            return
        shell, lines = block.text in LANGUAGES, list(block.lines)
        try:
            if shell and (self._section == VERIFICATION or self._owner(block) is not None):
                self._add(commands(VERIFICATION, lines, block.line + 1), self._owner(block))
            elif block.text in BARE:
                self._add(listed(self._section, lines, block.line + 1), self._owner(block))
            elif shell or self._section == VERIFICATION:
                self.note(block.line, f"a fence of {block.text} is not taken")
        except Unreadable as error:
            self.note(error.line, f"{error.what} is not taken")

    def _owner(self, block: Block) -> int | None:
        """The entry that a fence is indented under, if commands can prove it."""
        if not self._items or block.level <= self._items[-1][0]:
            return None
        number = self._items[-1][1]
        return number if self.entries[number].section in (CRITERIA, VERIFICATION) else None

    def _add(self, found: list[Entry], owner: int | None) -> None:
        """Entries of a fence: commands under an item are those of the item."""
        if owner is not None and found and all(entry.certain for entry in found):
            method = " && ".join(entry.method for entry in found)
            self.entries[owner] = self.entries[owner]._replace(method=method, certain=True)
        else:
            self.entries += found

    def _data(self, block: Block) -> None:
        text, first = "\n".join(block.lines), block.line + 1
        ours = _OURS.search(text) is not None
        if not (ours or (self._section and block.kind == "fence")):
            return
        self._room -= len(text)
        if self._room < 0:
            raise Unreadable(block.line, "more than 64 KiB of YAML and JSON")
        try:
            tree = (json_tree if block.text.startswith("json") else yaml_tree)(text, first)
        except Unreadable as error:
            is_example = not ours and self._section not in (CRITERIA, MUST_NOT)
            if not is_example and not error.what.startswith("not valid YAML"):
                raise
            self.note(error.line, error.what + ("" if is_example else "; read as plain lists"))
            if not is_example:
                outer = list(self._open)
                self._read(list(block.lines), first)
                self._close()
                self._open, self._since = outer, len(self.entries)
            return
        found = data_entries(tree, self._section)
        self.entries += found
        if not found and self._section:
            self.note(block.line, f"nothing in this {block.text} is an entry")

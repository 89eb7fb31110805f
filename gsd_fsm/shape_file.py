"""SHAPE.md: what must be true of a goal in the end, what must not happen, and how it is proved.

Nobody has fixed its format. Whatever reads as a list of criteria, must-nots or verification is
taken; what is meant for us and cannot be read is refused, because a criterion that is lost lets a
loop end too early; and what was passed over or doubted is told.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.codec import quote, sha256
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.sanitize import display
from gsd_fsm.plans.source import bytes_of
from gsd_fsm.shapes.command import Reading, plain, read_entry, read_method
from gsd_fsm.shapes.document import Document
from gsd_fsm.shapes.entry import CONSTRAINTS, CRITERIA, MUST_NOT, VERIFICATION, Entry, Unreadable

MOST_BYTES = 1 << 20
MOST_ENTRIES = 1_000
LONGEST_CRITERION = 2_000
LONGEST_NAME = 200
LONGEST_COMMAND = 8_000
_LONGEST_ENTRY = LONGEST_COMMAND + LONGEST_CRITERION
HINT = (
    "a shape is a text with lists under headings: '## Success Criteria', '## Must NOT', "
    "'## Verification'; an item such as '- All tests pass: `npm test`' is a check"
)
_NOTHING = re.compile(r"(?:none|n/?a|tbd|todo|nothing)?[\s.…-]*", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\[[^\]]*\]|<[^>]*>|\{[^}]*\}")
_FORBIDS = re.compile(r"\b(?:not|never|no|avoid|without)\b|n['’]t\b", re.IGNORECASE)
_CLAIMS = re.compile(r"(?:verify|check|confirm|ensure|assert|make sure|prove)(?: that)? ")
_NUMBERED = re.compile(r"(?:criterion|criteria|ac|c)? ?(\d{1,3})")


class Shape(NamedTuple):
    """What a shape file says; a criterion that a command proves is a check, and only that."""

    criteria: tuple[str, ...]
    checks: tuple[tuple[str, str], ...]  # name, command
    must_not: tuple[str, ...]
    digest: str
    notes: tuple[str, ...]  # what was not understood, or not believed


def read_shape(path: Path) -> Shape:
    """The shape in this file; UsageError, with its line where it has one, for what is none."""
    content = bytes_of(path, MOST_BYTES, HINT)
    try:
        document = Document(_text(content))
        found = _Findings(document)
    except Unreadable as error:
        raise UsageError(f"{path}:{error.line}: {error.what}", HINT) from error
    if not found.wanted:
        raise UsageError(f"{path} has neither criteria nor verification", HINT)
    return Shape(
        criteria=tuple(c.name for c in found.wanted.values() if not c.command),
        checks=tuple((c.name, c.command) for c in found.wanted.values() if c.command),
        must_not=tuple(found.must_not.values()),
        digest=str(sha256(content).hexdigest()[:16]),
        notes=tuple(document.notes),
    )


def _text(content: bytes) -> str:
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise Unreadable(content.count(b"\n", 0, error.start) + 1, "not valid UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Unreadable(line, "a NUL character: this is no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


class _Criterion:
    def __init__(self, name: str, line: int) -> None:
        self.name = name
        self.line = line
        self.command = ""


class _Findings:
    """The entries of a document as criteria, each once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.wanted: dict[str, _Criterion] = {}
        self.must_not: dict[str, str] = {}
        self.forbidden: set[str] = set()
        self.labels: dict[str, list[str]] = {}
        self.numbered: list[str] = []
        if len(document.entries) > MOST_ENTRIES:
            line = document.entries[MOST_ENTRIES].line
            raise Unreadable(line, f"more than {MOST_ENTRIES} entries")
        for section in (CRITERIA, VERIFICATION):
            for entry in document.entries:
                if entry.section == section:
                    self._require(entry)
        for entry in document.entries:
            if entry.section in (MUST_NOT, CONSTRAINTS):
                self._forbid(entry)
        names = {criterion.name for criterion in self.wanted.values()}
        for criterion in self.wanted.values():
            self._fit(criterion, names)

    def _is_told(self, text: str, line: int) -> bool:
        """Whether there is anything in an entry; what nobody has filled in yet is told."""
        if len(text) > _LONGEST_ENTRY:
            raise Unreadable(line, f"an entry of more than {_LONGEST_ENTRY} characters")
        if _PLACEHOLDER.fullmatch(plain(text)):
            self.document.note(line, f"{text[:80]} is a placeholder, and not taken")
            return False
        return not _NOTHING.fullmatch(plain(text))

    def _forbid(self, entry: Entry) -> None:
        if self._is_told(entry.text, entry.line):
            text = display(plain(entry.text))
            if entry.section == MUST_NOT or _FORBIDS.search(text):
                _require_length("a must-not", text, LONGEST_CRITERION, entry.line)
                # A table may repeat labels only: `Scope` after `Scope: no new API`.
                if _key(text) not in self.forbidden:
                    self.must_not[_key(text)] = text
                    self.forbidden |= {_key(text), _key(_label(text))}

    def _require(self, entry: Entry) -> None:
        if not entry.method and not self._is_told(entry.text, entry.line):
            return
        if entry.method and _PLACEHOLDER.fullmatch(plain(entry.text)):
            self._is_told(entry.text, entry.line)
            return
        read = _read(entry)
        if read.doubt:
            self.document.note(entry.line, f"{read.doubt}: it is left to be declared met")
        if not read.name:
            return
        found = self._same(read.name, entry.section)
        if found is None and read.command is not None and not entry.method:
            found = self._same(entry.text.rpartition("`")[2], entry.section)
        if found is None:
            if read.command is None and entry.method:
                read = read._replace(name=f"{read.name}: {plain(entry.method)}")
            found = self._add(read.name, entry)
        if read.command is not None:
            self._prove(found, read.command, entry.line)

    def _same(self, name: str, section: str) -> _Criterion | None:
        """The criterion that has this name, or this label, or, for a verification, this number."""
        key = _key(plain(name))
        known = self.wanted.get(key)
        if known is not None or section == CRITERIA or not key:
            return known
        labelled = self.labels.get(key, [])
        if len(labelled) == 1:
            return self.wanted[labelled[0]]
        number = _NUMBERED.fullmatch(key)
        if number and 0 < int(number[1]) <= len(self.numbered):
            return self.wanted[self.numbered[int(number[1]) - 1]]
        return None

    def _add(self, name: str, entry: Entry) -> _Criterion:
        name = display(name)
        key = _key(name)
        self.wanted[key] = _Criterion(name, entry.line)
        self.labels.setdefault(_key(_label(name)), []).append(key)
        if entry.section == CRITERIA:
            self.numbered.append(key)
        return self.wanted[key]

    def _prove(self, criterion: _Criterion, command: str, line: int) -> None:
        shown = command.replace("\t", " ")
        if "\n" in command:
            raise Unreadable(line, "a command over several lines: put it into a script")
        if display(shown) != shown:
            raise Unreadable(line, "a command with characters that cannot be seen")
        if command not in criterion.command.split(" && "):
            both = (criterion.command, command) if criterion.command else (command,)
            criterion.command = " && ".join(both)
        if len(criterion.command) > LONGEST_COMMAND:
            raise Unreadable(line, f"a command of more than {LONGEST_COMMAND} characters")

    def _fit(self, criterion: _Criterion, names: set[str]) -> None:
        if not criterion.command:
            _require_length("a criterion", criterion.name, LONGEST_CRITERION, criterion.line)
        elif len(quote(criterion.name)) > LONGEST_NAME:
            short = _shortened(criterion.name, names)
            names.add(short)
            if criterion.name != criterion.command:
                self.document.note(criterion.line, f"the name of this check is cut to {short!r}")
            criterion.name = short


def _read(entry: Entry) -> Reading:
    if entry.method:
        return read_method(entry.text, entry.method, certain=entry.certain)
    return read_entry(entry.text, proves=entry.section == VERIFICATION)


def _key(text: str) -> str:
    """What is the same in two ways to write the same."""
    words = " ".join(re.sub(r"[^\w<>=+%]+", " ", text.casefold()).split())
    return _CLAIMS.sub("", words, count=1) if words else text


def _label(text: str) -> str:
    return re.split(r":\s|\s[–—-]\s", text, maxsplit=1)[0]


def _require_length(what: str, text: str, most: int, line: int) -> None:
    if len(quote(text)) > most:
        raise Unreadable(line, f"{what} is longer than {most} bytes: keep details elsewhere")


def _shortened(name: str, others: set[str]) -> str:
    """As much of a name as a check may have, and not the name of another one."""
    mark = "…"
    for number in range(2, len(others) + 3):
        short = name[:LONGEST_NAME]
        while len(quote(short + mark)) > LONGEST_NAME:
            short = short[:-1]
        if short + mark not in others:
            break
        mark = f"… ({number})"
    return short + mark

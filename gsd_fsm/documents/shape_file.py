"""SHAPE.md: what must be true of a goal in the end, what must not happen, and how it is proved.

Nothing that is meant for us is lost in silence: it is taken, told, or refused with its line,
because a criterion that is lost lets a loop end too early.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.codec import digest_of, quote, sha256
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.read import read_bytes
from gsd_fsm.documents.shape_command import Reading, Unreadable, joined, plain, read
from gsd_fsm.documents.shape_text import MUST_NOT, VERIFICATION, Document, Entry

MOST_BYTES = 1 << 20
MOST_ENTRIES = 1_000
MOST_NOTES = 20
LONGEST_ENTRY = 10_000
LONGEST_CRITERION = 2_000
LONGEST_NAME = 200
HINT = (
    "a shape is a text with lists under headings: '## Criteria', '## Must Not', '## Verification'; "
    "an item such as '- All tests pass: `npm test`' is a check"
)
_PLACEHOLDER = re.compile(
    r"\[[^],]*\]|<[^>]*>|\{[^}]*\}|(?:tbd|todo|none|n/?a|\.\.|…)\.?", re.IGNORECASE
)
_CLAIMS = re.compile(r"^(?:verify|check|ensure|confirm) that ")


class Shape(NamedTuple):
    """What a shape file says; a criterion that a command proves is a check, and only that."""

    criteria: tuple[str, ...]
    checks: tuple[tuple[str, str], ...]  # name, command
    must_not: tuple[str, ...]
    digest: str
    notes: tuple[str, ...]  # what was not read, or not believed


def read_shape(path: Path) -> Shape:
    """The shape in this file; UsageError, with its line where it has one, for what is none."""
    content = read_bytes(path, MOST_BYTES, HINT)
    try:
        document = Document(_text(content))
        if len(document.entries) > MOST_ENTRIES:
            line = document.entries[MOST_ENTRIES].line
            raise Unreadable(line, f"more than {MOST_ENTRIES} entries")
        told = [entry for entry in document.entries if _understand(entry, document)]
        wanted = _wanted([entry for entry in told if entry.section != MUST_NOT], document)
        checks = [(_short(it.name), joined(it.commands, it.line)) for it in wanted if it.commands]
    except Unreadable as error:
        line, what = error.args
        raise UsageError(f"{path}:{line}: {what}", HINT) from error
    if not wanted:
        raise UsageError(f"{path} has neither criteria nor verification", HINT)
    return Shape(
        criteria=tuple(entry.name for entry in wanted if not entry.commands),
        checks=tuple(checks),
        must_not=tuple(dict.fromkeys(it.name for it in told if it.section == MUST_NOT)),
        digest=str(sha256(content).hexdigest()[:16]),
        notes=_notes(document),
    )


def _text(content: bytes) -> str:
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise Unreadable(content.count(b"\n", 0, error.start) + 1, "not valid UTF-8") from error
    before, nul, _ = text.partition("\0")
    if nul:
        raise Unreadable(before.count("\n") + 1, "a NUL character: this is no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _understand(entry: Entry, document: Document) -> bool:
    """Give an entry its name and its commands; whether it says anything."""
    parts = [_unquoted(" ".join(lines)) for lines in entry.parts]
    if sum(map(len, parts)) > LONGEST_ENTRY:
        raise Unreadable(entry.line, f"an entry of more than {LONGEST_ENTRY} characters")
    said = []
    for at, part in enumerate(parts):
        found = Reading(plain(part)) if entry.section == MUST_NOT else read(part)
        if found.doubt:
            document.note(entry.line, found.doubt)
        if found.command:
            entry.commands.append(joined([found.command], entry.line))
        if at == 0 or found.name != found.command:
            said.append(display(found.name.rstrip(": ")))
    entry.head = said[0]
    details = "" if entry.is_row and entry.commands else "; ".join(filter(None, said[1:]))
    entry.name = ": ".join(filter(None, (entry.head, details))) or " && ".join(entry.commands)
    if _PLACEHOLDER.fullmatch(entry.head):
        document.note(entry.line, f"{entry.head} is a placeholder, and not taken")
        return False
    if not entry.commands and len(quote(entry.name)) > LONGEST_CRITERION:
        raise Unreadable(entry.line, f"a criterion is longer than {LONGEST_CRITERION} bytes")
    return bool(entry.name)


def _wanted(entries: list[Entry], document: Document) -> list[Entry]:
    """The criteria, each once, with the commands of every entry that has its name or its label."""
    found: dict[str, Entry] = {}
    labels: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda it: it.section == VERIFICATION):
        known = found.get(_key(entry.name))
        if known is None and entry.head and (entry.is_row or entry.section == VERIFICATION):
            same = labels.get(_key(entry.head), [])
            known = found.get(_key(entry.head), same[0] if len(same) == 1 else None)
            if known and entry.name != entry.head:
                rest = entry.name.removeprefix(entry.head).strip(": ")
                document.note(entry.line, f"of {known.name!r} this is not taken: {rest}")
        if known:
            known.commands += entry.commands
        else:
            found[_key(entry.name)] = entry
            labels.setdefault(_key(entry.name.partition(": ")[0]), []).append(entry)
    return list(found.values())


def _key(text: str) -> str:
    """What is the same in two ways to write the same."""
    words = [word.strip("\"'*_()“”").rstrip(".,;:!?") for word in text.casefold().split()]
    return _CLAIMS.sub("", " ".join(filter(None, words))) or text


def _unquoted(text: str) -> str:
    mark = text[:1]
    is_quoted = mark in ("'", '"') and text.endswith(mark) and text.count(mark) == 2
    return text[1:-1] if is_quoted else text


def _short(name: str) -> str:
    """The name as a check may have it: a long one is cut, and stays its own."""
    if len(quote(name)) <= LONGEST_NAME:
        return name
    mark, name = f"… {digest_of(name)[:6]}", name[:LONGEST_NAME]
    while len(quote(name + mark)) > LONGEST_NAME:
        name = name[:-1]
    return name + mark


def _notes(document: Document) -> tuple[str, ...]:
    """What was passed over: at most so many notes, one of them for lists that were not read."""
    notes, room = document.notes, MOST_NOTES - bool(document.unread)
    if len(notes) > room:
        notes = [*notes[: room - 1], f"{len(notes) - room + 1} more lines were passed over"]
    titles = ", ".join(display(plain(title)) for title in document.unread)
    return (*notes, *([f"not read: {titles[:500]}"] if titles else ()))

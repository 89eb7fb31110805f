"""Read a SHAPE.md: the criteria of a goal, its must-nots, and the commands that prove it.

    shape    = { heading | item | fence | comment | prose }
    heading  = "#"… ( "Criteria" | "Must not" | "Verification" )   only letters count, in any case
    item     = ( "-" | "*" | "+" | "1." | "1)" ) [ "[ ]" | "[x]" ] ( text | check ) { line }
    check    = [ text ":" ] "`" command "`" [ "." ]                not below "Must not"
    fence    = "```sh" { command | "#" text } "```"                only below "Verification"
    comment  = "<!--" text "-->"

Items and fences belong to the heading above them; a smaller heading of another name does not end a
section. Below "Verification" each item must be a check, and each command of a fence is one. A check
with the text of a criterion proves that criterion. Anything else is prose, which is ignored, unless
it looks like a mistake: a criterion that is lost lets a loop end too early, and a command that is
guessed may do harm.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.codec import quote, sha256
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.markdown import heading_of, hidden_at, item_of
from gsd_fsm.documents.read import Malformed, decode, read_bytes

MOST_BYTES = 1 << 20
MOST_ITEMS = 1_000
LONGEST_TEXT = 2_000
LONGEST_NAME = 200  # of a check
LONGEST_COMMAND = 8_000
EXAMPLE = "Write '## Criteria' and below it items such as '- All tests pass: `npm test`'."

_HEADINGS = {"criteria": "Criteria", "mustnot": "Must not", "verification": "Verification"}
# Titles that were probably meant to be one of them.
_MEANT = {
    "criteria": re.compile(r"criteri|donewhen|definitionofdone"),
    "mustnot": re.compile(r"mustn|donot|donts|nongoals"),
    "verification": re.compile(r"verif|checks"),
}
_SHELLS = ("sh", "bash", "shell", "zsh")
# A line of a fence that means nothing without the lines below it.
_UNFINISHED = re.compile(
    r"(?:cd|export|set|source)\s[^;&|]*|.*(?:[\\({|]|&&|\b(?:do|then|else))|.*(?<!<)<<(?!<).*"
)
_PLACEHOLDER = re.compile(r"\[[^]]*\]|<[^>]*>|(?:tbd|todo|none|n/?a|\.\.\.|…)\.?", re.IGNORECASE)


class Shape(NamedTuple):
    """The items of a SHAPE.md; one with a command is a check, the others are criteria."""

    criteria: tuple[str, ...]
    checks: tuple[tuple[str, str], ...]  # name, command
    must_not: tuple[str, ...]
    digest: str


class _Heading:
    """A heading, and the section that items below it are in, by default that of a larger one."""

    def __init__(self, level: int, title: str, line: int = 0, section: str = "") -> None:
        letters = _letters(title)
        self.level = level
        self.title = title[:80]
        self.line = line
        self.section = letters if letters in _HEADINGS else section
        nearly = (name for name, meant in _MEANT.items() if meant.search(letters))
        self.meant = "" if letters in _HEADINGS else next(nearly, "")

    def require_known(self) -> None:
        """Raise Malformed if the title is only nearly one of the three."""
        if self.meant:
            hint = f"Write '## {_HEADINGS[self.meant]}', or choose another title."
            raise _mistake(self.line, f"unknown section: {self.title}", hint)


class _Item:
    """A list item, or a command of a fence."""

    def __init__(self, section: str, line: int, text: str, command: str = "") -> None:
        self.section = section
        self.line = line
        self.lines = [text]
        self.text = ""
        self.command = command

    def split(self) -> None:
        """Split the lines into text and command; raise Malformed if they are not an item."""
        text = " ".join(self.lines)
        if text.endswith("-->"):
            text = text.rpartition("<!--")[0].rstrip()
        if self.section != "mustnot" and not self.command:
            text, self.command = _trailing_command(text)
        self.text = display(" ".join(re.sub(r"\*\*|`", "", text).split())) or self.command
        if not self.text or _PLACEHOLDER.fullmatch(self.text):
            raise _mistake(self.line, "empty item or placeholder", "Fill it in, or delete it.")
        if self.section == "verification" and not self.command:
            hint = "Write '- All tests pass: `npm test`', or move the item to '## Criteria'."
            raise _mistake(self.line, "a verification must end with a command", hint)
        visible = self.command.replace("\t", " ")
        if len(visible) > LONGEST_COMMAND or display(visible) != visible:
            what = f"not plain text of at most {LONGEST_COMMAND} characters"
            raise _mistake(self.line, f"the command is {what}", "Put it into a script.")
        limit = LONGEST_NAME if self.command else LONGEST_TEXT
        if len(quote(self.text)) > limit:
            hint = "Shorten it; give a long command a text: '- All tests pass: `npm test`'"
            raise _mistake(self.line, f"item longer than {limit} bytes", hint)


def _letters(title: str) -> str:
    return re.sub(r"[^a-z]", "", title.lower())


def _mistake(line: int, problem: str, hint: str) -> Malformed:
    return Malformed("", line, problem, hint)


def read_shape(path: Path) -> Shape:
    """Return the shape in this file; raise UsageError with path and line of the first mistake."""
    content = read_bytes(path, MOST_BYTES, EXAMPLE)
    try:
        items = _items(decode(content, "").split("\n"))
        for item in items:
            item.split()
        wanted = _joined([item for item in items if item.section != "mustnot"])
    except Malformed as error:
        raise Malformed(path, error.line, error.problem, error.hint) from error
    if not wanted:
        raise UsageError(f"{path} has no criteria", EXAMPLE)
    return Shape(
        criteria=tuple(item.text for item in wanted if not item.command),
        checks=tuple((item.text, item.command) for item in wanted if item.command),
        must_not=tuple(dict.fromkeys(item.text for item in items if item.section == "mustnot")),
        digest=str(sha256(content).hexdigest()[:16]),
    )


def _items(lines: list[str]) -> list[_Item]:
    """Return the items of the three sections, and the commands of their fences."""
    items: list[_Item] = []
    headings = [_Heading(0, "")]  # the heading above, and the larger ones around it
    indent = -1  # of the last item below this heading
    is_open = False  # whether the next line continues the last item
    at = 0
    while at < len(lines):
        line, number, section = lines[at].strip(), at + 1, headings[-1].section
        hidden, item = hidden_at(lines, at), item_of(lines[at] + " ")
        at = hidden.end if hidden else number
        if hidden and not hidden.closed:
            raise _mistake(number, f"unclosed {hidden.kind}", "Close it.")
        if hidden and hidden.kind == "comment":
            continue
        if hidden:
            headings[-1].require_known()
            is_open = False
            if section == "verification":
                commands = _commands(hidden.language, number, lines[number : at - 1])
                items += islice(commands, MOST_ITEMS + 1)
        elif heading := heading_of(line):
            headings = [each for each in headings if each.level < heading.level]
            title = _Heading(heading.level, heading.title, number, headings[-1].section)
            headings.append(title)
            indent, is_open = -1, False
        elif not line or (len(line) > 2 and not line.strip("-*_ ")):  # or a thematic break
            is_open = False
        elif item:
            headings[-1].require_known()
            is_open = bool(section)
            if section and 0 <= indent < item.indent - 1:
                raise _mistake(number, "nested item", "Write it as an item of its own.")
            if section:
                items.append(_Item(section, number, item.text))
                indent = item.indent
        elif section and line[0] in "|•":
            raise _mistake(number, "not a list item", "Begin each item with '- '.")
        elif line[-1] in ":*" and _letters(line) in _HEADINGS:
            name = _HEADINGS[_letters(line)]
            raise _mistake(number, f"not a heading: {line[:80]}", f"Write '## {name}'.")
        elif is_open:
            items[-1].lines.append(line)
        if len(items) > MOST_ITEMS:
            raise _mistake(number, f"more than {MOST_ITEMS} items", "Keep those that matter.")
    return items


def _commands(language: str, start: int, lines: list[str]) -> Iterator[_Item]:
    """Yield each line of a fence as a check."""
    if language not in _SHELLS:
        raise _mistake(start, "code fence is not marked as shell commands", "Begin it with ```sh")
    for number, line in enumerate(lines, start + 1):
        command = line.strip().removeprefix("$ ").strip()
        if not command or command.startswith("#"):
            continue
        if not _is_closed(command) or _UNFINISHED.fullmatch(command):
            hint = "Join the lines with &&, or put them into a script."
            raise _mistake(number, "incomplete command: each line runs on its own", hint)
        yield _Item("verification", number, "", command)


def _is_closed(command: str) -> bool:
    """Return whether every quote in the command is closed."""
    try:
        shlex.split(command[:LONGEST_COMMAND])
    except ValueError:
        return False
    return True


def _trailing_command(text: str) -> tuple[str, str]:
    """Return the text before the code span that ends an item, and the code; else the text and ""."""
    spanned = text.removesuffix(".").rstrip()
    mark = "``" if spanned.endswith("``") else "`"
    start = spanned.rfind(mark, 0, -len(mark)) if spanned.endswith(mark) else -1
    before = spanned[: max(start, 0)].replace("**", "").rstrip()
    # After an odd number of backticks this is the text between two code spans, not a span.
    if start < 0 or before.count("`") % 2 or not (before == "" or before.endswith(":")):
        return text, ""
    code = spanned[start + len(mark) : -len(mark)].strip()
    return before.removesuffix(":"), code.removeprefix("$ ")


def _joined(items: list[_Item]) -> list[_Item]:
    """Return each text once, with the command of the check that has the same text."""
    found: dict[str, _Item] = {}
    for item in sorted(items, key=lambda item: item.section == "verification"):
        known = found.setdefault(item.text.casefold().rstrip("."), item)
        known.command = known.command or item.command
        if item.command not in ("", known.command):
            hint = "Give each command a text of its own, or join them with &&."
            raise _mistake(item.line, f"a second command for {item.text!r}", hint)
    return list(found.values())

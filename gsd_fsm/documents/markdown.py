"""Read Markdown line by line: code fences, comments, headings and list items; and escape text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gsd_fsm.core.text.sanitize import one_line

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*\Z)|~{3,})[ \t]*([^\n]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?[ \t]*\r?\n?\Z")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[([ xX])\](?:[ \t]+|\r?\n?\Z))?(.*)")
# Single quotes count only if set off by blanks or punctuation; elsewhere they are apostrophes.
QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|`([^`]*)`|(?<![^\s(])\'([^\']*)\'(?![^\s.,;:!?)])')
# An underscore within a word is part of a name.
_ACTIVE = re.compile(r"[\\`*\[\]<~]|(?<![^\W_])_|_(?![^\W_])")
# At the beginning of a line only: headings, quotations, rules and list items.
_OPENING = re.compile(r"\A(\d{0,9})([#>]|[-+](?=[ -]|$)|(?<=\d)[.)](?= |$))")


def split_lines(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends a line."""
    return _LINE.findall(text)


def line_end(line: str) -> str:
    """Return how the line ends: CR LF, LF, or ""."""
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def newline_of(text: str) -> str:
    """Return how the first line of a text ends; LF if it has only one."""
    return line_end(text[: text.find("\n") + 1]) or "\n"


def opening_fence(line: str) -> str:
    """Return the marker of the code fence that the line opens, or ""."""
    found = _FENCE.match(line)
    return found[1] if found else ""


def closes_fence(line: str, fence: str) -> bool:
    """Return whether the line ends a code fence that this marker opened."""
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0])


class Hidden(NamedTuple):
    """A code fence or a comment: lines `start` to `end`, without `end`."""

    kind: str  # "code fence" or "comment"
    start: int
    end: int
    closed: bool  # False if the text ends first
    language: str  # of a code fence, in lower case


def hidden_at(lines: Sequence[str], start: int) -> Hidden | None:
    """Return the code fence or comment that begins in this line, if any."""
    fence = _FENCE.match(lines[start])
    if fence:
        language = fence[2].strip().lower()
        for at in range(start + 1, len(lines)):
            if closes_fence(lines[at], fence[1]):
                return Hidden("code fence", start, at + 1, True, language)
        return Hidden("code fence", start, len(lines), False, language)
    if not lines[start].lstrip().startswith("<!--"):
        return None
    for at in range(start, len(lines)):
        if "-->" in (lines[at] if at > start else lines[at].partition("<!--")[2]):
            return Hidden("comment", start, at + 1, True, "")
    return Hidden("comment", start, len(lines), False, "")


def prose(lines: Sequence[str]) -> Iterator[int]:
    """Yield the indices of the lines outside of code fences and comments."""
    at = 0
    while at < len(lines):
        hidden = hidden_at(lines, at)
        if hidden is None:
            yield at
        at = hidden.end if hidden else at + 1


class Heading(NamedTuple):
    level: int
    title: str
    line: int = 0  # its index


def heading_of(line: str) -> Heading | None:
    """Return the heading that this line is, without closing number signs; None if it is not one."""
    found = _HEADING.match(line)
    if found is None:
        return None
    return Heading(len(found[1]), (found[2] or "").strip().rstrip("#").rstrip())


def headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield the headings outside of code fences and comments."""
    for at in prose(lines):
        heading = heading_of(lines[at])
        if heading:
            yield heading._replace(line=at)


class Item(NamedTuple):
    indent: int
    box: str | None  # " " or "x"; None without a check box
    text: str


def item_of(line: str) -> Item | None:
    """Return the list item that begins in this line; None if none does."""
    found = _ITEM.match(line)
    if found is None:
        return None
    indent = len(found[1].expandtabs(4))
    return Item(indent, found[2] and found[2].lower(), found[3].strip())


def quotations(text: str) -> list[str]:
    """Return the texts in quotes or backticks, which a check wants to find word for word."""
    return [found[found.lastindex or 0] for found in QUOTED.finditer(text) if len(found[0]) > 2]


def escape_markdown(text: str | None, limit: int = 300) -> str:
    """Return the text on one line, shortened, and without effect in Markdown and terminals."""
    shown = _ACTIVE.sub(r"\\\g<0>", one_line(text, limit).replace("<\\/", "</"))
    return _OPENING.sub(r"\1\\\2", shown)


def code_block(text: str, language: str = "") -> str:
    """Return the text in a code fence that it cannot close."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"

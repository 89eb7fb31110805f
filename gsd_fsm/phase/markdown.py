"""Markdown that people keep: read line by line, and foreign text put into it as nothing but text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gsd_fsm.core.text.sanitize import one_line

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
# An underscore between letters is one of a name.
_ACTIVE = re.compile(r"[\\`*\[\]<~]|(?<![^\W_])_|_(?![^\W_])")
# Only at its beginning can a text be a heading, a quotation, a rule, or an item of a list.
_OPENING = re.compile(r"\A(\d{0,9})([#>]|[-+](?=[ -]|$)|(?<=\d)[.)](?= |$))")


def plain(text: str | None, limit: int = 300) -> str:
    """The text on one line, with nothing in it that Markdown or a terminal would obey."""
    shown = _ACTIVE.sub(r"\\\g<0>", one_line(text, limit).replace("<\\/", "</"))
    return _OPENING.sub(r"\1\\\2", shown)


def lines_of(text: str) -> list[str]:
    """The lines with their ends: a form feed or a Unicode separator ends none."""
    return _LINE.findall(text)


def end_of(line: str) -> str:
    """How the line ends: with CR LF, with LF, or not at all."""
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def newline_of(text: str) -> str:
    """How the first line of a text ends, where it has several."""
    return end_of(text[: text.find("\n") + 1]) or "\n"


def prose(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines that stand neither in a code fence nor in a comment."""
    fence, comment = "", False
    for number, line in enumerate(lines):
        if comment:
            comment = "-->" not in line
            continue
        opening = _FENCE.match(line)
        if fence:
            bare = line.strip()
            if len(bare) >= len(fence) and not bare.strip(fence[0]):
                fence = ""
        elif opening:
            fence = opening[1]
        elif line.lstrip().startswith("<!--"):
            comment = "-->" not in line.partition("<!--")[2]
        else:
            yield number

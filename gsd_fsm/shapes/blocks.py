"""The blocks of a Markdown text: headings, items, tables, fences, and the text between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gsd_fsm.shapes.entry import section_of
from gsd_fsm.shapes.table import begins_table

ITEM = re.compile(
    r"(?P<indent> *)(?:(?:[-*+•]|\d{1,4}[.)]) +(?:\[[ xX✓-]\](?: +|$)|[□☐☑☒] *)?"
    r"|[□☐☑☒✅✓✔] *|\[[ xX✓]\] +)(?P<text>.*)"
)
# `Must NOT: text`, `**Must NOT**: text`, `**Must NOT:** text` or `**Must NOT**`.
LABEL = re.compile(
    r"(?P<bold>\*\*|__)(?P<name>[^:*\n]{1,80}?)(?::(?P=bold)|(?P=bold) ?:|(?P=bold)$) *(?P<rest>.*)"
    r"|(?P<bare>[^\W\d_][^:*`\n]{0,60}):(?: +(?P<said>.*)|$)"
)
_HEADING = re.compile(r" {0,3}(#{1,6}) +(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{3,}) *")
_FENCE = re.compile(r"( *)(`{3,}|~{3,}) *([\w-]*)[^`]*")
_QUOTE = re.compile(r"^(?: {0,3}> ?)+")
_INDENT = re.compile(r"^[ \t]+")
_RULE = re.compile(r" {0,3}(?:[-*_] *){3,}")


class Block(NamedTuple):
    """A part of a text. `level` is that of a heading, or the indent of anything else."""

    kind: str  # "front" | "heading" | "item" | "table" | "fence" | "text"
    line: int
    level: int
    text: str = ""  # of a fence the language
    lines: tuple[str, ...] = ()
    is_closed: bool = True


def blocks(lines: list[str], first: int = 1) -> Iterator[Block]:
    """The blocks in their order; comments are left out."""
    raw, lines = lines, [_INDENT.sub(_spaces, _QUOTE.sub("", line)) for line in lines]
    at = 0
    if first == 1 and lines[0].rstrip() == "---":
        ends = (n for n in range(1, len(lines)) if lines[n].rstrip() in ("---", "..."))
        end = next(ends, None)
        if end is not None:
            yield Block("front", 1, 0, "yaml", tuple(raw[1:end]))
            at = end + 1
    while at < len(lines):
        line = lines[at]
        following = lines[at + 1] if at + 1 < len(lines) else ""
        after = at + 1
        if fence := _FENCE.fullmatch(line):
            end = _end_of_fence(lines, at, fence[2])
            after = min(end + 1, len(lines))
            is_quoted = _QUOTE.match(raw[at]) is not None
            inner = tuple((lines if is_quoted else raw)[at + 1 : end])
            yield Block(
                "fence", first + at, len(fence[1]), fence[3].lower(), inner, end < len(lines)
            )
        elif line.lstrip().startswith("<!--"):
            after = next((n for n in range(at, len(lines)) if "-->" in lines[n]), len(lines)) + 1
        elif heading := _HEADING.fullmatch(line):
            yield Block("heading", first + at, len(heading[1]), heading[2].rstrip("# "))
        elif begins_table(line, following):
            after = next((n for n in range(at, len(lines)) if "|" not in lines[n]), len(lines))
            yield Block("table", first + at, _indent(line), lines=tuple(lines[at:after]))
        elif _is_underlined(line, following):
            yield Block("heading", first + at, 1 if "=" in following else 2, line.strip())
            after = at + 2
        elif line.strip() and not _RULE.fullmatch(line):
            item = ITEM.fullmatch(line)
            after = _end_of_text(lines, at)
            rest = [" ".join(more.split()) for more in lines[at + 1 : after]]
            text = " ".join([(item["text"] if item else line).strip(), *rest])
            yield Block("item" if item else "text", first + at, _indent(line), text)
        at = after


def _spaces(indent: re.Match[str]) -> str:
    return indent[0].expandtabs(4)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _end_of_fence(lines: list[str], start: int, mark: str) -> int:
    for at in range(start + 1, len(lines)):
        bare = lines[at].strip()
        if len(bare) >= len(mark) and not bare.strip(mark[0]):
            return at
    return len(lines)


def _is_underlined(line: str, following: str) -> bool:
    """Whether this is a heading by the line below it; a rule below some text is none."""
    return (
        _UNDERLINE.fullmatch(following) is not None
        and ITEM.fullmatch(line) is None
        and bool(line.strip())
        and ("=" in following or section_of(line) != "")
    )


def _end_of_text(lines: list[str], start: int) -> int:
    """The line after a paragraph or an item, which may go on in the lines below it."""
    for at in range(start + 1, len(lines)):
        line = lines[at]
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if (
            not line.strip()
            or any(kind.fullmatch(line) for kind in (ITEM, _HEADING, _FENCE, _RULE))
            or line.lstrip().startswith("<!--")
            or begins_table(line, following)
            or _is_underlined(line, following)
            or _begins_label(line.strip())
        ):
            return at
    return len(lines)


def _begins_label(line: str) -> bool:
    label = LABEL.fullmatch(line)
    return label is not None and bool(label["bold"] or section_of(label["bare"]))

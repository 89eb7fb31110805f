"""Render a page as plain text, for pipes, scripts and agents."""

from __future__ import annotations

from collections.abc import Iterator

from gsd_fsm.cli.display.page import (
    Bar,
    Box,
    Clock,
    Fields,
    Line,
    Moment,
    Part,
    Piece,
    Quote,
    Rows,
    Words,
    pieces,
)
from gsd_fsm.cli.output import quoted
from gsd_fsm.core.text.sanitize import harmless

_LABEL = 10


def render(page: list[Part]) -> str:
    """Return the lines of a page; no foreign text in it begins a line outside of fences."""
    return "\n".join(line for part in page for line in _lines(part))


def text_of(words: Words) -> str:
    """Return the words on one line, harmless to a terminal and to a model."""
    return harmless(" ".join(_joined(words).splitlines()))


def _joined(words: Words) -> str:
    return words if isinstance(words, str) else "".join(map(_text, pieces(words)))


def _text(piece: Piece) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Moment | Clock):
        return piece.ts
    return piece.words if isinstance(piece, Bar) else piece.text


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, Line):
        yield text_of(part.words)
    elif isinstance(part, Fields):
        for label, lines in part.rows:
            for number, words in enumerate(lines):
                yield f"{'' if number else label:<{_LABEL}} {text_of(words)}".rstrip()
    elif isinstance(part, Rows):
        for *first, last in part.rows:
            cells = zip(first, part.widths, strict=True)
            padded = [f"{_joined(words):<{width}}" for words, width in cells]
            yield text_of("  ".join((*padded, _joined(last)))).rstrip()
    elif isinstance(part, Quote):
        yield quoted(text_of(part.what), part.text)
    elif isinstance(part, Box):
        yield text_of(part.title)
        for inner in part.parts:
            yield from _lines(inner)
    else:
        rows = [] if part.bare else [[heading.upper() for heading in part.headings]]
        rows += [[text_of(cell) for cell in row] for row in part.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = zip(row, widths, strict=True)
            yield "  ".join(f"{cell:<{width}}" for cell, width in cells).rstrip()

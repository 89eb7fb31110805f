"""Render a page with `rich`, for a person at a terminal: the only module that imports it for pages."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.segment import Segment
from rich.style import Style as Look
from rich.text import Text

from gsd_fsm.cli.display import people
from gsd_fsm.cli.display.page import (
    COLOURS,
    Bar,
    Clock,
    Command,
    Fields,
    Line,
    Moment,
    Part,
    Piece,
    Quote,
    Rows,
    Short,
    Style,
    Styled,
    Table,
    Words,
    pieces,
)
from gsd_fsm.cli.display.plain import text_of
from gsd_fsm.cli.output import LONGEST_QUOTE
from gsd_fsm.core.text.sanitize import display, truncate

_LOOKS: dict[Style, Look] = {
    **{style: Look(color=name) for style, name in COLOURS.items()},
    "asking": Look(color=COLOURS["asking"], bold=True),
    "faint": Look(dim=True),
    "strong": Look(bold=True),
}
_FAINT = _LOOKS["faint"]
_BAR = 20
_LABEL = 9
_GAP = 2
# The last cell of a row is at least this wide, or begins on a line of its own, with this indent.
_NARROW, _INDENT = 16, 5


def render(page: list[Part], width: int, now: int, *, colour: bool) -> str:
    """Return a page for a terminal of this width, with colour if it is wanted."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=True,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(Group(*_spaced(page, now)), crop=False)  # one print, because each is expensive
    lines = (line.rstrip() for line in out.getvalue().splitlines())
    return "\n".join(lines)


def _spaced(page: list[Part], now: int) -> Iterator[RenderableType]:
    """Yield the parts, and an empty line between some of them."""
    for above, part in zip([None, *page], page, strict=False):
        if above is not None and _is_apart(above, part):
            yield Text()
        yield _rendered(part, now)


def _is_apart(above: Part, below: Part) -> bool:
    """Return whether an empty line separates these two parts."""
    kinds = {type(above), type(below)}
    return (Table in kinds and len(kinds) > 1) or kinds == {Fields, Quote}


def _rendered(part: Part, now: int) -> RenderableType:
    if isinstance(part, Line):
        return _Rows((), [[part.words]], now)
    if isinstance(part, Fields):
        return _fields(part, now)
    if isinstance(part, Table):
        return _Table(part, now)
    if isinstance(part, Rows):
        return _Rows(part.widths, part.rows, now)
    if isinstance(part, Quote):
        return _quote(part)
    inner = Group(*(_rendered(it, now) for it in part.parts))
    title = _text(_segments(part.title, now))
    title.stylize(Look(bold=True, dim=False))
    return Panel(inner, title=title, title_align="left", box=ROUNDED, border_style=_FAINT)


def _segments(words: Words, now: int) -> list[Segment]:
    return [segment for piece in pieces(words) for segment in _piece(piece, now)]


def _piece(piece: Piece, now: int) -> list[Segment]:
    if isinstance(piece, str):
        return [Segment(text_of(piece))]
    if isinstance(piece, Styled):
        return [Segment(text_of(piece.text), _LOOKS[piece.style])]
    if isinstance(piece, Clock):
        return [Segment(f"{people.local(piece.ts):%H:%M:%S}")]
    if isinstance(piece, Moment):
        return [Segment(people.ago(piece.ts, now))]
    if isinstance(piece, Command):
        return [Segment(text_of(piece.text), _LOOKS["strong"])]
    return _bar(piece)


def _bar(bar: Bar) -> list[Segment]:
    part = min(max(bar.done / bar.most, 0), 1) if bar.most else 0
    full = round(part * _BAR)
    return [
        Segment("━" * full, _LOOKS["busy" if bar.is_limit and part == 1 else "good"]),
        Segment("─" * (_BAR - full), _FAINT),
        Segment(f" {text_of(bar.words)}"),
    ]


def _text(segments: list[Segment]) -> Text:
    return Text.assemble(*((it.text, it.style or "") for it in segments))


def _cut(segments: list[Segment], width: int) -> Text:
    text = _text(segments)
    text.truncate(width, overflow="ellipsis")
    return text


class _Rows:
    """Rows whose last cell has a hanging indent; much faster than a grid."""

    def __init__(self, widths: Sequence[int], rows: list[list[Words]], now: int) -> None:
        self.widths = widths
        self.rows = rows
        self.now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for *cells, last in self.rows:
            indent = 0
            for cell, width in zip(cells, self.widths, strict=True):
                segments = _segments(cell, self.now)
                length = Segment.get_line_length(segments)
                if isinstance(cell, Short) and length > width:
                    segments = [*_cut(segments, width).render(console)]
                    length = Segment.get_line_length(segments)
                gap = max(width - length, 0) + _GAP
                yield from segments
                yield Segment(" " * gap)
                indent += length + gap
            segments, room = _segments(last, self.now), options.max_width - indent
            if Segment.get_line_length(segments) <= room:
                yield from segments
                yield Segment.line()
                continue
            if room < _NARROW and indent > _INDENT:
                yield Segment.line()
                indent = _INDENT
                yield Segment(" " * indent)
            room = max(options.max_width - indent, _LABEL)
            yield from _long(last, segments, indent, console, room)


def _long(
    words: Words, segments: list[Segment], indent: int, console: Console, width: int
) -> RenderResult:
    """Yield the last cell of a row, which does not fit on the line; a command is never broken."""
    if isinstance(words, Short):
        yield _cut(segments, width)
        return
    ends_in_command = any(isinstance(it, Command) for it in pieces(words)[-1:])
    command = segments.pop() if ends_in_command else None
    text, margin = _text(segments), Segment(" " * indent)
    if command is not None:
        text.rstrip()
    lines = list(text.wrap(console, width, overflow="fold")) if segments else []
    for number, line in enumerate(lines):
        if number:
            yield Segment.line()
            yield margin
        yield from line.render(console)
    if command is not None:
        # A line of its own helps only if the command fits on it.
        if lines and lines[-1].cell_len + command.cell_length >= width >= command.cell_length:
            yield Segment.line()
            yield margin
        elif lines:
            yield Segment(" ")
        yield command
    yield Segment.line()


def _fields(fields: Fields, now: int) -> _Rows:
    rows: list[list[Words]] = [
        [Styled("" if number else label, "faint"), words]
        for label, lines in fields.rows
        for number, words in enumerate(lines)
    ]
    width = max((len(label) for label, lines in fields.rows if lines), default=0)
    return _Rows((max(width, _LABEL),), rows, now)


class _Table:
    """A table; if its columns do not fit, the widest one is cut, or each row becomes a record."""

    def __init__(self, table: Table, now: int) -> None:
        self.table = table
        self.now = now

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        headings: list[Words] = [Styled(it, "faint") for it in self.table.headings]
        rows = [headings, *map(list, self.table.rows)]
        *widths, last = (max(map(self._length, column)) for column in zip(*rows, strict=True))
        has_commands = any(isinstance(row[-1], Command) for row in rows)
        needed = last if has_commands else min(last, _NARROW)
        excess = needed + sum(width + _GAP for width in widths) - options.max_width
        if excess > 0 and (has_commands or max(widths) - excess < options.max_width / 3):
            for number, row in enumerate(self.table.rows):
                if number:
                    yield Text()
                cells = zip(self.table.headings, row, strict=True)
                yield _fields(Fields([(heading, [cell]) for heading, cell in cells]), self.now)
            return
        if excess > 0:
            widest = widths.index(max(widths))
            widths[widest] -= excess
            for row in rows:
                row[widest] = Short(pieces(row[widest]))
        yield _Rows(widths, rows, self.now)

    def _length(self, words: Words) -> int:
        return Segment.get_line_length(_segments(words, self.now))


def _quote(quote: Quote) -> RenderableType:
    body = truncate(quote.text.strip("\n"), LONGEST_QUOTE) or "(no output)"
    shown = Text(display(body.expandtabs(), lines=True), overflow="fold")
    what = Text(text_of(quote.what), _FAINT)
    return Padding(Group(what, Padding(shown, (0, 0, 0, 2))), (0, 0, 0, quote.indent))

"""Render a page with `rich`, for a person at a terminal: the only module that imports it for pages."""

from __future__ import annotations

import io

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.style import Style as Look
from rich.table import Table as Grid
from rich.text import Text

from gsd_fsm.cli.display import people
from gsd_fsm.cli.display.page import (
    COLOURS,
    Bar,
    Clock,
    Fields,
    Line,
    Moment,
    Part,
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
    for above, part in zip([None, *page], page, strict=False):
        if above is not None and _is_apart(above, part):
            console.print()
        console.print(_rendered(part, now))
    lines = (line.rstrip() for line in out.getvalue().splitlines())
    return "\n".join(lines)


def _is_apart(above: Part, below: Part) -> bool:
    """Return whether an empty line separates these two parts."""
    kinds = {type(above), type(below)}
    return (Table in kinds and len(kinds) > 1) or kinds == {Fields, Quote}


def _rendered(part: Part, now: int) -> RenderableType:
    if isinstance(part, Line):
        return _text(part.words, now)
    if isinstance(part, Fields):
        return _fields(part, now)
    if isinstance(part, Table):
        return _table(part, now)
    if isinstance(part, Rows):
        return _HangingRows(part, now)
    if isinstance(part, Quote):
        return _quote(part)
    inner = Group(*(_rendered(it, now) for it in part.parts))
    title = _text(part.title, now)
    title.stylize(Look(bold=True, dim=False))
    return Panel(inner, title=title, title_align="left", box=ROUNDED, border_style=_FAINT)


def _text(words: Words, now: int) -> Text:
    is_short = isinstance(words, Short)
    text = Text(no_wrap=is_short, overflow="ellipsis" if is_short else None)
    for piece in pieces(words):
        if isinstance(piece, Bar):
            text.append_text(_bar(piece))
        elif isinstance(piece, Moment):
            text.append(people.ago(piece.ts, now))
        elif isinstance(piece, Clock):
            text.append(f"{people.local(piece.ts):%H:%M:%S}")
        elif isinstance(piece, Styled):
            text.append(text_of(piece.text), _LOOKS[piece.style])
        else:
            text.append(text_of(piece))
    return text


def _bar(bar: Bar) -> Text:
    part = min(max(bar.done / bar.most, 0), 1) if bar.most else 0
    full = round(part * _BAR)
    text = Text().append("━" * full, _LOOKS["busy" if bar.is_limit and part == 1 else "good"])
    text.append("─" * (_BAR - full), _FAINT)
    text.append(f" {text_of(bar.words)}")
    return text


def _fields(fields: Fields, now: int) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style=_FAINT, min_width=_LABEL)
    grid.add_column(ratio=1, overflow="fold")
    for label, lines in fields.rows:
        for number, words in enumerate(lines):
            grid.add_row("" if number else label, _text(words, now))
    return grid


def _table(table: Table, now: int) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=_FAINT)
    for number, heading in enumerate(table.headings):
        is_last = number == len(table.headings) - 1
        grid.add_column(heading, no_wrap=not is_last, overflow="fold" if is_last else "ellipsis")
    for row in table.rows:
        grid.add_row(*(_text(cell, now) for cell in row))
    return grid


class _HangingRows:
    """Rows whose last cell has a hanging indent; much faster than a grid."""

    def __init__(self, part: Rows, now: int) -> None:
        self.part = part
        self.now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for row in self.part.rows:
            *cells, last = (_text(cell, self.now) for cell in row)
            line = Text()
            for cell, width in zip(cells, self.part.widths, strict=True):
                line.append_text(cell).append(" " * (width + 2 - cell.cell_len))
            left = max(options.max_width - line.cell_len, _LABEL)
            if last.cell_len <= left:
                yield line.append_text(last)
                continue
            margin = " " * line.cell_len
            for number, piece in enumerate(last.wrap(console, left, overflow="fold")):
                yield (Text(margin) if number else line).append_text(piece)


def _quote(quote: Quote) -> RenderableType:
    body = truncate(quote.text.strip("\n"), LONGEST_QUOTE) or "(no output)"
    shown = Text(display(body.expandtabs(), lines=True), overflow="fold")
    what = Text(text_of(quote.what), _FAINT)
    return Padding(Group(what, Padding(shown, (0, 0, 0, 2))), (0, 0, 0, quote.indent))

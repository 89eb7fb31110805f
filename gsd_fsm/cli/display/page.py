"""Parts of the pages that commands show; a renderer decides how they look."""

from __future__ import annotations

from typing import Literal, NamedTuple

Style = Literal["good", "busy", "halted", "asking", "bad", "faint", "strong"]


class Styled(NamedTuple):
    """Words with a meaning that a terminal shows as a colour."""

    text: str
    style: Style


class Moment(NamedTuple):
    """A time of the journal: relative at a terminal, exact elsewhere."""

    ts: str


class Clock(NamedTuple):
    """A time of the journal: the local time of day at a terminal, exact elsewhere."""

    ts: str


class Bar(NamedTuple):
    """Progress in `words`; a terminal draws a bar before them.

    `is_limit`: the bar shows how much of a limit is used, so a full one is not a success.
    """

    done: float
    most: float
    words: str
    is_limit: bool = False


class Command(NamedTuple):
    """A command that a person may copy; it ends its words.

    A terminal shows it without a newline, so that a copy is the whole command; not in a box, though.
    """

    text: str


Piece = str | Styled | Moment | Clock | Bar | Command


class Short(NamedTuple):
    """Words that a terminal cuts to fit on one line."""

    pieces: list[Piece]


Words = Piece | list[Piece] | Short


class Line(NamedTuple):
    """A line or a paragraph."""

    words: Words


class Fields(NamedTuple):
    """Labels, each with its lines; a label without lines is left out."""

    rows: list[tuple[str, list[Words]]]


class Table(NamedTuple):
    """Rows below headings; the last column takes the remaining space.

    `bare`: the plain text has no headings.
    """

    headings: tuple[str, ...]
    rows: list[list[Words]]
    bare: bool = False


class Rows(NamedTuple):
    """Rows whose first cells have these widths, or more; the last one takes the remaining space."""

    widths: tuple[int, ...]
    rows: list[list[Words]]


class Quote(NamedTuple):
    """Output of a program or another agent; `what` names it. A terminal indents it."""

    what: str
    text: str
    indent: int = 0


class Box(NamedTuple):
    """Parts below a title."""

    title: Words
    parts: list[Line | Fields | Table | Rows | Quote]


Part = Line | Fields | Table | Rows | Quote | Box

# The terminal colours of styles; the others have none.
COLOURS: dict[Style, str] = {
    "good": "green",
    "busy": "yellow",
    "halted": "bright_blue",
    "asking": "magenta",
    "bad": "red",
}

STATUS_STYLES: dict[str, Style] = {
    "running": "good",
    "retrying": "busy",
    "fixing": "busy",
    "reviewing": "busy",
    "waiting": "asking",
    "paused": "halted",
    "completed": "good",
    "cancelled": "faint",
}


def status_word(status: str) -> Styled:
    """Return the status of a loop in its colour."""
    return Styled(status, STATUS_STYLES.get(status, "strong"))


def pieces(words: Words) -> list[Piece]:
    if isinstance(words, Short):
        return words.pieces
    return words if isinstance(words, list) else [words]

"""The parts of which a command composes what it shows; how they look is up to the renderer."""

from __future__ import annotations

from typing import Literal, NamedTuple

Style = Literal["good", "busy", "halted", "asking", "bad", "faint", "strong"]


class Styled(NamedTuple):
    """Words with a meaning that a terminal shows by a colour."""

    text: str
    style: Style


class Moment(NamedTuple):
    """A time of the journal: relative at a terminal, exact elsewhere."""

    ts: str


class Clock(NamedTuple):
    """A time of the journal: the local time of day at a terminal, exact elsewhere."""

    ts: str


class Bar(NamedTuple):
    """How much of something is done, in `words`; a terminal draws a bar before them.

    `is_limit`: how much of a limit is used; then a full bar is not a success.
    """

    done: float
    most: float
    words: str
    is_limit: bool = False


Piece = str | Styled | Moment | Clock | Bar


class Short(NamedTuple):
    """Words that a terminal shows on one line, as far as they fit."""

    pieces: list[Piece]


Words = Piece | list[Piece] | Short


class Line(NamedTuple):
    """A line or a paragraph."""

    words: Words


class Fields(NamedTuple):
    """Labels, each with its lines; a label without lines is left out."""

    rows: list[tuple[str, list[Words]]]


class Table(NamedTuple):
    """Rows below headings; the last column takes what space is left.

    `bare`: the plain text has no headings.
    """

    headings: tuple[str, ...]
    rows: list[list[Words]]
    bare: bool = False


class Rows(NamedTuple):
    """Rows whose first cells have these widths, or more; the last one takes what space is left."""

    widths: tuple[int, ...]
    rows: list[list[Words]]


class Quote(NamedTuple):
    """What a program or another agent wrote: `what` names it; a terminal indents it."""

    what: str
    text: str
    indent: int = 0


class Box(NamedTuple):
    """Parts below a title."""

    title: Words
    parts: list[Line | Fields | Table | Rows | Quote]


Part = Line | Fields | Table | Rows | Quote | Box

# What terminals call the colour of a style; the others have none.
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

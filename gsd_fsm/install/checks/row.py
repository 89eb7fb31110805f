"""The result of one check."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """The result of a check: `ok`, `failed`, or a `note` about something that works.

    `fix` is one command; where no command can help, one instruction. `off`: this prevents a working
    hook from continuing loops here. `at`: the time of what is told.
    """

    where: str
    name: str
    state: str
    told: str = ""
    fix: str = ""
    ms: int | None = None
    off: bool = False
    at: str = ""

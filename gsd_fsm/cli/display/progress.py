"""Show the progress of long operations on stderr, if a person reads it at a terminal.

There is no thread: the operation calls these functions now and then.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from math import inf
from time import monotonic
from typing import Any

from gsd_fsm.cli.display.show import is_read_by_person, wants_colour

# Seconds before progress is shown, and between updates.
_PATIENCE = 0.5
_EVERY = 0.1


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that takes how much of `total` is done; it shows a bar after half a second.

    Yield None unless a person reads stderr.
    """
    if not is_read_by_person(sys.stderr):
        yield None
        return
    bar = _Bar(what, total)
    try:
        yield bar.advance
    finally:
        bar.close()


class _Bar:
    """A progress bar that appears after half a second."""

    def __init__(self, what: str, total: int) -> None:
        self.what = what
        self.total = total
        self._due = monotonic() + _PATIENCE
        self._shown: Any = None

    def advance(self, done: int) -> None:
        now = monotonic()
        if now < self._due:
            return
        self._due = now + _EVERY
        if self._shown is None:
            self._shown = _opened(self.what, self.total)
        self._shown.update(self._shown.task_ids[0], completed=done)
        self._shown.refresh()

    def close(self) -> None:
        self._due = inf
        if self._shown is not None:
            self._shown.stop()


def _opened(what: str, total: int) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, no_color=not wants_colour(), force_terminal=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    shown = Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, auto_refresh=False
    )
    shown.add_task(what, total=total)
    shown.start()
    return shown


class ProgressLine:
    """The running commands and their elapsed times on one line; the caller writes it."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._shown = ""

    def name(self, names: Sequence[str]) -> None:
        """Take the names of all commands that run now."""
        now = monotonic()
        self._since = {name: self._since.get(name, now) for name in names}

    def redrawn(self) -> str:
        """Return the text that updates the line, "" if it is current; it appears after half a second."""
        now = monotonic()
        if not self._since or now - min(self._since.values()) < _PATIENCE:
            return ""
        names = ", ".join(_timed(name, now - since) for name, since in self._since.items())
        text = _fitted(f"  running: {names}")
        if text == self._shown:
            return ""
        erased, self._shown = self.erased(), text
        return erased + text

    def erased(self) -> str:
        """Return the text that erases the line, "" if it is not shown."""
        from rich.cells import cell_len

        shown, self._shown = self._shown, ""
        return f"\r{' ' * cell_len(shown)}\r" if shown else ""


def _timed(name: str, seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{name} {minutes}:{rest:02}"


def _fitted(text: str) -> str:
    """Return the text, cut to one line of this terminal."""
    from shutil import get_terminal_size

    from rich.text import Text

    shown = Text(text)
    shown.truncate(get_terminal_size().columns - 1, overflow="ellipsis")
    return shown.plain

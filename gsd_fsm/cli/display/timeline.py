"""Compose the timeline of a journal, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gsd_fsm.cli.display.loop import quote_of
from gsd_fsm.cli.display.page import (
    STATUS_STYLES,
    Clock,
    Line,
    Part,
    Piece,
    Rows,
    Style,
    Styled,
    Words,
    status_word,
)
from gsd_fsm.cli.display.people import duration, local
from gsd_fsm.cli.output import flat
from gsd_fsm.core.loop.spending import money
from gsd_fsm.core.text.questions import plural
from gsd_fsm.history.evidence import Evidence
from gsd_fsm.history.iterations import Iteration, Row

_TIME, _BY, _TYPE = 8, 5, 10
# Characters of a time without seconds; no date begins within a minute.
_TO_MINUTE = 16
_NOTABLE = 1_000  # shorter times, in milliseconds, are left out
# The last lines of evidence; `why` shows more.
_LINES = 5
# Outputs that are remembered, so that each is shown once.
_OUTPUTS = 1_000
_SESSION_WORDS = {
    "compact": "compaction",
    "bind": "new owner",
    "release": "release",
    "start": "session start",
    "end": "session end",
}


class Timeline:
    """The parts of each iteration; `last` is the number of the last event.

    `dated`: show the date on a line where the day changes, because times omit it.
    """

    def __init__(self, last: int, *, dated: bool) -> None:
        self.width = max(3, len(str(last)))
        self.dated = dated
        self._minute = ""
        self._day: date | None = None
        self._first_loop: str | None = None
        self._has_several_loops = False
        self._is_first = True
        self._outputs: dict[tuple[str | None, str], Evidence] = {}

    def parts(self, iteration: Iteration) -> Iterator[Part]:
        """Yield a heading, the rows, and below a failed check the end of its output."""
        if not self._is_first:
            yield Line("")
        self._is_first = False
        yield from self._date(iteration.ts)
        if iteration.loop is not None:
            self._first_loop = self._first_loop or iteration.loop
            self._has_several_loops |= iteration.loop != self._first_loop
            seq = "" if iteration.seq is None else str(iteration.seq)
            cells: list[Words] = [f"{seq:>{self.width}}", Clock(iteration.ts)]
            yield Rows((self.width, _TIME), [[*cells, self._heading(iteration)]])
        rows: list[list[Words]] = []
        for row in iteration.rows:
            before, below = [*self._date(row.ts)], [*self._evidence(iteration.loop, row)]
            if before:
                yield from self._table(rows)
                yield from before
            rows.append(self._row(row))
            if below:
                yield from self._table(rows)
                yield from below
        yield from self._table(rows)

    def _table(self, rows: list[list[Words]]) -> Iterator[Part]:
        """Yield these rows and empty the list."""
        if rows:
            yield Rows((self.width, _TIME, _BY, _TYPE), rows.copy())
            rows.clear()

    def _date(self, ts: str) -> Iterator[Part]:
        if not self.dated or ts[:_TO_MINUTE] == self._minute:
            return
        self._minute = ts[:_TO_MINUTE]
        day = local(ts).date()
        if day != self._day:
            self._day = day
            yield Line(Styled(f"{day:%A}, {day.day} {day:%B %Y}", "faint"))

    def _heading(self, iteration: Iteration) -> Words:
        of = f" of {iteration.most}" if iteration.most else ""
        title = f"Iteration {iteration.number}{of}" if iteration.number else "Start"
        facts: list[str] = []
        if not iteration.number and not iteration.is_continued:
            title += f" of {iteration.kind} loop {iteration.loop}"
        elif self._has_several_loops:
            facts.append(f"loop {iteration.loop}")
        if iteration.is_continued:
            idle = iteration.idle_ms
            after = f" after {duration(idle)}" if idle >= _NOTABLE else ""
            title += f", continued{after}"
        if iteration.active_ms >= _NOTABLE:
            facts.append(duration(iteration.active_ms))
        facts += filter(None, [", ".join(_counted(iteration))])
        return [Styled(title, "strong"), *(Styled(f" · {fact}", "faint") for fact in facts)]

    def _row(self, row: Row) -> list[Words]:
        style: Style = "strong"
        move: list[Piece] = []
        if row.source != row.dest:
            style = STATUS_STYLES.get(row.dest, style)
            move = [f"{row.source} → ", status_word(row.dest), "  "]
        cells: list[Words] = [f"{row.seq:>{self.width}}", Clock(row.ts), row.by]
        kind = Styled(row.type, "bad" if row.evidence else style)
        return [*cells, kind, [*move, flat(row.text)]]

    def _evidence(self, loop: str | None, row: Row) -> Iterator[Part]:
        """Yield the end of the output, unless the row contains it or it was shown before."""
        found = row.evidence
        if found is None or " ".join(found.output.split()) in row.text:
            return
        key = (loop, found.about)
        before = self._outputs.get(key)
        if before is not None and before.output == found.output:
            words = f"{flat(found.about)}: the same output as at event {before.seq}"
            yield Rows((self.width,), [["", Styled(words, "faint")]])
            return
        if len(self._outputs) >= _OUTPUTS:
            self._outputs.clear()
        self._outputs[key] = found
        yield quote_of(found._replace(seq=None), _LINES)._replace(indent=self.width + 2)


def _counted(iteration: Iteration) -> Iterator[str]:
    """Yield the counts that replace rows: prompts, other session signals, money and tokens."""
    if prompts := iteration.sessions["prompt"]:
        yield plural(prompts, "prompt")
    if round(iteration.usd, 4) > 0:
        yield ("~" if iteration.is_estimate else "") + money(iteration.usd)
    if iteration.tokens > 0:
        yield f"{iteration.tokens:,} token{'' if iteration.tokens == 1 else 's'}"
    is_first = not iteration.number and not iteration.is_continued
    for action, words in _SESSION_WORDS.items():
        count = iteration.sessions[action] - (action == "bind" and is_first)
        if count > 0:
            yield plural(count, words)

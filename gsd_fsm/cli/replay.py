"""gsd-fsm replay, fsck: replay a journal, verify and repair it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from typing import Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Call, command_options, parse_time, project_options
from gsd_fsm.cli.display.page import Line, Part, Piece, Words, status_word
from gsd_fsm.cli.display.progress import progress
from gsd_fsm.cli.display.show import is_read_by_person, show
from gsd_fsm.cli.display.timeline import Timeline
from gsd_fsm.cli.output import flat, say
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Corrupt, GsdError, Newer, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import register
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import harmless
from gsd_fsm.engine.effects import note_unfinished
from gsd_fsm.engine.status import status_view
from gsd_fsm.history.iterations import Iteration, Iterations
from gsd_fsm.history.replay import Reader, Replay, examine, in_bulk, last_seq, reporting, sums_only

Event = dict[str, Any]
# Parts that are printed together, because each print is expensive.
_AT_ONCE = 60


class _JsonLines:
    """Print each event as a line of JSON; call `begin` before."""

    def __init__(self, loop: str | None, begin: Callable[[], None]) -> None:
        self.loop = loop
        self.begin = begin
        self.shown = 0

    def see(self, event: Event, source: str, loops: Loops) -> None:
        if self.loop is not None and event["loop"] != self.loop:
            return
        self.shown += 1
        after = loops.by_id.get(event["loop"])
        row = {name: event[name] for name in ("seq", "ts", "type", "by")}
        before = source or ("idle" if event["type"] == "start" else None)
        dest = after.status if after else None
        self.begin()
        say(dumps({**row, "from": before, "to": dest, "data": event["data"]}))

    def finish(self) -> None:
        """Do nothing: every event was printed."""


class _Iterations:
    """Print iterations once they have ended, a screenful at a time; call `begin` before."""

    def __init__(
        self, loop: str | None, begin: Callable[[], None], last: int, *, every: bool
    ) -> None:
        self.loop = loop
        self.begin = begin
        self.shown = 0
        self.timeline = Timeline(last, dated=is_read_by_person(sys.stdout))
        self.iterations = Iterations(self._add, every=every)
        self._page: list[Part] = []

    def see(self, event: Event, source: str, loops: Loops) -> None:
        if self.loop is None or event["loop"] == self.loop:
            self.shown += 1
            self.iterations.see(event, source, loops)

    def finish(self) -> None:
        self.iterations.finish()
        self._print()

    def _add(self, iteration: Iteration) -> None:
        self._page += self.timeline.parts(iteration)
        if len(self._page) >= _AT_ONCE:
            self._print()

    def _print(self) -> None:
        page, self._page = self._page, []
        if page:
            self.begin()
            show(page)


@click.command()
@click.option("--at", "at", type=ONE_OR_MORE, metavar="SEQ", help="Stop after this event.")
@click.option("--until", metavar="TIME", help="Stop before the first event after this time (UTC).")
@click.option("--events", is_flag=True, help="Print one JSON line per event.")
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Show a row for each event, also for session signals and spending.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="List events that the current rules would refuse; run the state machine beyond 100,000 events, too.",
)
@command_options
def replay(
    call: Call, *, at: int | None, until: str | None, events: bool, every: bool, strict: bool
) -> None:
    """Verify and replay the journal; show each iteration.

    A heading shows the active time, prompts and cost of its iteration; below a failed check are the
    last lines of its output (`why SEQ` shows more). Iterations of several loops are shown in the
    order in which they end. Changes nothing. Damage and illegal transitions are reported with their
    line (exit code 5).
    """
    found = Replay(call.context.journal)
    limit = parse_time(until) if until else None
    last = last_seq(found.journal)
    if at is not None and 0 < last < at:
        raise UsageError(f"the journal ends at event {last}", "Run: gsd-fsm replay")
    as_json, is_quiet = events or call.json, call.json and not events
    loop_id = call.context.loop_id
    with ExitStack() as waiting:  # until something is printed, perhaps by a pager
        advance = waiting.enter_context(progress("Replaying the journal", at or last))
        begin = waiting.close
        lines = (
            _JsonLines(loop_id, begin)
            if as_json
            else _Iterations(loop_id, begin, last, every=every)
        )
        try:
            found.run(None if is_quiet else lines.see, at, limit, strict=strict, advance=advance)
        except GsdError as error:
            lines.finish()
            if isinstance(error, Newer) and not as_json:
                _show_raw(found.journal)
            raise
        lines.finish()
    if at is None and until is None:
        note_unfinished(call.context, found.loops)
    if events:
        _say_findings(found, err=True)
        return
    _close(call, found, lines.shown, strict, limit)


def _show_raw(journal: Journal) -> None:
    """Print the lines that only a later version understands, unchanged."""
    with open(journal.journal_path(), "rb") as file:
        for line in islice(file, journal.loops.seq, None):
            say(harmless(line.decode("ascii", "replace").rstrip("\n")))


def _close(call: Call, found: Replay, shown: int, strict: bool, limit: str | None) -> None:
    loops = found.loops
    try:
        loop = call.context.loop_or_last(loops) if loops.by_id else None
    except UsageError:
        if call.json:
            raise
        loop = None  # several are live: the timeline has shown them all
    view = status_view(loop, found.head) if loop else None
    if call.json:
        status = loop.status if loop else None
        facts = {"head": found.head, "events": loops.seq, "status": status, "state": view}
        if strict:
            facts["findings"] = [finding._asdict() for finding in found.findings]
        say(dumps(facts))
        return
    _say_findings(found)
    show([*([Line("")] if shown else []), Line(_end(found, loop, shown, limit))])
    if found.journal.at.torn:
        say(
            f"{found.journal.at.torn} torn bytes at the end; the next append saves and removes them",
            err=True,
        )
    if loops.backwards:
        say(_clock_words(loops), err=True)


def _end(found: Replay, loop: Loop | None, shown: int, limit: str | None) -> Words:
    total = found.loops.seq
    if not total:
        return "The journal is empty." if found.head else f"The first event is after {limit}."
    of = f"{shown} of " if shown < total else ""
    end: list[Piece] = [f"{of}{plural(total, 'event')}, head {found.head}"]
    return [*end, f", loop {loop.id} ", status_word(loop.status)] if loop else end


def _clock_words(loops: Loops) -> str:
    return f"the clock went backwards {plural(loops.backwards, 'time')}; events are ordered by seq"


def _say_findings(found: Replay, *, err: bool = False) -> None:
    for finding in found.findings:
        say(flat(f"finding: line {finding.line}, {finding.type}: {finding.message}"), err=err)


@click.command()
@click.option(
    "--repair",
    is_flag=True,
    help="Save the damaged file and continue from the valid lines before the damage.",
)
@click.option("--yes", is_flag=True, help="Do not ask before repairing.")
@project_options
def fsck(call: Call, *, repair: bool, yes: bool) -> None:
    """Verify every line of the journal, and repair damage.

    Damage is printed with line and byte. Exit code 0 without damage, 5 with damage. A repair keeps
    the damaged file.
    """
    if repair:
        from gsd_fsm.engine.journals import refuse_agents

        refuse_agents(call.context, "repair a journal", "fsck --repair")
    journal = call.context.journal
    newer = None
    try:
        report = _examined(journal)
    except Newer as found:
        if repair:
            raise
        newer, report = found, _examined(journal, sums_only)
    if repair and report["damage"]:
        _repair(journal, report, yes)
        report = _examined(journal)
    elif repair and report["torn"]:
        with Journal(journal.path).transaction(call.context.author):
            pass  # opening it repairs the tail
        report = _examined(journal)
    say(dumps(report) if call.json else "\n".join(_words(report, journal)))
    if newer:
        say(f"gsd-fsm: {flat(newer.message)}\n  → {newer.hint}", err=True)
    if report["damage"] or newer:
        raise click.exceptions.Exit(Corrupt.exit_code)


def _examined(journal: Journal, reader: Reader = in_bulk) -> dict[str, Any]:
    with progress("Verifying the journal", last_seq(journal)) as advance:
        return examine(journal, reporting(reader, advance))


def _words(report: dict[str, Any], journal: Journal) -> list[str]:
    lines = [
        flat(
            f"{journal.journal_path()}: {plural(report['events'], 'valid event')}, "
            f"head {report['head']}"
        )
    ]
    lines += [
        flat(f"line {found['line']}, byte {found['offset']}: {found['what']}")
        for found in report["damage"]
    ]
    if report["torn"]:
        lines.append(
            f"{report['torn']} torn bytes at the end, from an interrupted append; no recorded event is lost"
        )
    if report["damage"]:
        lines.append(
            "  → Save the damaged file and continue from the valid events: gsd-fsm fsck --repair"
        )
    elif journal.loops.backwards:
        lines.append(_clock_words(journal.loops))
    if report["ok"] and not report["torn"]:
        lines.append("no damage")
    return lines


def _repair(journal: Journal, report: dict[str, Any], yes: bool) -> None:
    if not yes:
        for line in _words(report, journal):
            say(line, err=True)
        valid = plural(report["events"], "valid event")
        try:
            agreed = click.confirm(f"Save the damaged file and continue from {valid}?", err=True)
        except click.Abort:
            say("", err=True)  # ends the line of the question
            raise UsageError(
                "confirmation required, but there was no answer", "Run: gsd-fsm fsck --repair --yes"
            ) from None
        if not agreed:
            say("Nothing was changed.", err=True)
            raise click.exceptions.Exit(Corrupt.exit_code)
    from gsd_fsm.engine.start import new_id

    fresh = new_id("j", 12)
    kept, aside = cut_damage(journal.path, fresh, now_ms())
    if not kept:
        register(fresh, journal.path, now_ms())
    if aside:
        say(f"saved the damaged journal as .gsd/{aside}", err=True)

"""gsd-fsm replay, fsck: replay a journal, verify and repair it."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from gsd_fsm.cli.call import ONE_OR_MORE, Call, command_options, parse_time, project_options
from gsd_fsm.cli.output import COLOURS, flat, say, status_word
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Corrupt, Newer, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.project import register
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import harmless
from gsd_fsm.engine.effects import note_unfinished
from gsd_fsm.engine.status import status_view
from gsd_fsm.history.replay import Replay, examine, last_seq, sums_only
from gsd_fsm.history.timeline import what_changed

Event = dict[str, Any]


class _Lines:
    """Print each event."""

    def __init__(self, loop: str | None, as_json: bool) -> None:
        self.loop = loop
        self.as_json = as_json
        self.shown = 0
        self._last_loop: str | None = None

    def see(self, event: Event, source: str, loops: Loops) -> None:
        if self.loop is not None and event["loop"] != self.loop:
            return
        self.shown += 1
        before = source or ("idle" if event["type"] == "start" else None)
        after = loops.by_id.get(event["loop"])
        dest = after.status if after else None
        if self.as_json:
            row = {name: event[name] for name in ("seq", "ts", "type", "by")}
            say(dumps({**row, "from": before, "to": dest, "data": event["data"]}))
            return
        if event["loop"] not in (None, self._last_loop):
            if self._last_loop is not None:
                say(f"        loop {event['loop']}")
            self._last_loop = event["loop"]
        say(_line(event, before, dest))


def _line(event: Event, source: str | None, dest: str | None) -> str:
    """Return time, author and type of an event, the change of status and other changes."""
    when = event["ts"][:19].replace("T", " ")
    move = "" if dest is None else dest if source == dest else f"{source} → {dest}"
    name = click.style(f"{event['type']:<10}", bold=True)
    styled = click.style(f"{move:<22}", fg=COLOURS.get(dest or ""))
    what = flat(what_changed(event))
    return f"{event['seq']:>6}  {when}  {event['by']:<5}  {name} {styled} {what}".rstrip()


@click.command()
@click.option("--at", "at", type=ONE_OR_MORE, metavar="SEQ", help="Stop after this event.")
@click.option("--until", metavar="TIME", help="Stop before the first event after this time (UTC).")
@click.option("--events", is_flag=True, help="Print one JSON line per event.")
@click.option(
    "--strict",
    is_flag=True,
    help="List events that the current rules would refuse; run the state machine beyond 100,000 events, too.",
)
@command_options
def replay(call: Call, *, at: int | None, until: str | None, events: bool, strict: bool) -> None:
    """Verify and replay the journal, and show the timeline.

    Changes nothing. Damage and illegal transitions are reported with their line (exit code 5).
    """
    found = Replay(call.context.journal)
    limit = parse_time(until) if until else None
    quiet = call.json and not events
    lines = _Lines(call.context.loop_id, events or call.json)
    if at is not None:
        _require_event(found.journal, at)
    try:
        found.run(None if quiet else lines.see, at, limit, strict=strict)
    except Newer:
        if not lines.as_json:
            _show_raw(found.journal)
        raise
    if at is None and until is None:
        note_unfinished(call.context, found.loops)
    if events:
        _say_findings(found, err=True)
        return
    _close(call, found, lines.shown, strict)


def _require_event(journal: Journal, seq: int) -> None:
    last = last_seq(journal)
    if 0 < last < seq:
        raise UsageError(f"the journal ends at event {last}", "Run: gsd-fsm replay")


def _show_raw(journal: Journal) -> None:
    """Print the lines that only a later version understands, unchanged."""
    with open(journal.journal_path(), "rb") as file:
        for line in islice(file, journal.loops.seq, None):
            say(harmless(line.decode("ascii", "replace").rstrip("\n")))


def _close(call: Call, found: Replay, shown: int, strict: bool) -> None:
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
    of = f"{shown} of " if shown < loops.seq else ""
    say(
        f"{of}{plural(loops.seq, 'event')}, head {found.head}"
        + (f", loop {loop.id} {status_word(loop.status)}" if loop else "")
    )
    if found.journal.at.torn:
        say(
            f"{found.journal.at.torn} torn bytes at the end; the next append saves and removes them",
            err=True,
        )
    if loops.backwards:
        say(_clock_words(loops), err=True)


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
        report = examine(journal)
    except Newer as found:
        if repair:
            raise
        newer, report = found, examine(journal, sums_only)
    if repair and report["damage"]:
        _repair(journal, report, yes)
        report = examine(journal)
    elif repair and report["torn"]:
        with Journal(journal.path).transaction(call.context.author):
            pass  # opening it repairs the tail
        report = examine(journal)
    say(dumps(report) if call.json else "\n".join(_words(report, journal)))
    if newer:
        say(f"gsd-fsm: {flat(newer.message)}\n  → {newer.hint}", err=True)
    if report["damage"] or newer:
        raise click.exceptions.Exit(Corrupt.exit_code)


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

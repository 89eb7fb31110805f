"""gsd-fsm replay, fsck, ps, trust: read, repair, list and trust journals."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from gsd_fsm.cli.call import Call, parse_time, verb
from gsd_fsm.cli.output import counted, say, status_word, timeline_line
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Corrupt, GsdError, Newer, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.core.trust import register
from gsd_fsm.engine.effects import unfinished
from gsd_fsm.engine.journals import LiveLoop, Problem, inspect_journal, live_loops, trust_journal
from gsd_fsm.engine.status import status_view
from gsd_fsm.history.replay import Replay, examine, last_seq, sums_only
from gsd_fsm.history.timeline import what_changed

Event = dict[str, Any]


@click.command()
@verb
def ps(call: Call) -> None:
    """List the live loops of all projects on this machine."""
    found = list(live_loops())
    rows = [_row(it) for it in found if isinstance(it, LiveLoop)]
    problems = [it._asdict() for it in found if isinstance(it, Problem)]
    lines = [
        f"{row['loop']:<12}{row['kind']:<9}{row['status']:<11}iteration {row['iteration']:<5}"
        f"{row['last_event']}  {display(row['project'])}"
        for row in rows
    ] or ["No live loops."]
    lines += [display(f"! {problem['project']}: {problem['error']}") for problem in problems]
    call.answer({"loops": rows, "problems": problems}, "\n".join(lines))


def _row(found: LiveLoop) -> dict[str, Any]:
    loop = found.loop
    return {
        "project": found.project,
        "loop": loop.id,
        "kind": loop.kind,
        "status": loop.status,
        "iteration": loop.iteration,
        "owner": loop.owner,
        "goal": loop.goal,
        "last_event": loop.last_event,
    }


@click.command()
@verb
def trust(call: Call) -> None:
    """Show what the journal here would tell an agent and run, then trust it from now on."""
    foreign = inspect_journal(call.context)
    shown: list[dict[str, Any]] = []
    for loop in foreign.loops:
        checks = {name: c.check for name, c in loop.criteria.items() if c.check}
        row: dict[str, Any] = {"loop": loop.id, "status": loop.status, "goal": loop.goal}
        row["checks"] = checks
        if loop.is_planned:
            row.update(plan=loop.plan.file, commands=foreign.plan_commands[loop.id])
        shown.append(row)
    if not call.json:
        for line in (line for row in shown for line in _lines(row)):
            say(display(line))  # before anything is trusted
    trust_journal(foreign)
    state = "was already trusted" if foreign.is_trusted else "is now trusted"
    facts = {"journal": foreign.journal_id, "path": foreign.path, "already": foreign.is_trusted}
    words = f"Journal {foreign.journal_id} in {foreign.path} {state}."
    call.answer({**facts, "loops": shown}, display(words))


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [f"{row['loop']} ({row['status']}): {row['goal'] or 'no goal text'}"]
    lines += [f"    check {name}: {command}" for name, command in row["checks"].items()]
    if "plan" in row:
        lines.append(f"    plan {row['plan']}")
        lines += [f"    verify runs: {command}" for command in row["commands"]]
    return lines


class _Lines:
    """Print each event once the loops after it are known."""

    def __init__(self, loop: str | None, as_json: bool) -> None:
        self.loop = loop
        self.as_json = as_json
        self.shown = 0
        self._last_loop: str | None = None
        self._pending: tuple[Event, str | None] | None = None

    def see(self, event: Event, loops: Loops) -> None:
        self.flush(loops)
        if self.loop is not None and event["loop"] != self.loop:
            return
        before = loops.by_id.get(event["loop"]) if event["loop"] else None
        source = before.status if before else "idle" if event["type"] == "start" else None
        self._pending = (event, source)

    def flush(self, loops: Loops) -> None:
        if self._pending is None or self._pending[0]["seq"] > loops.seq:
            return  # nothing, or what the fold has refused
        event, source = self._pending
        self._pending = None
        self.shown += 1
        after = loops.by_id.get(event["loop"]) if event["loop"] else None
        dest = after.status if after else None
        if self.as_json:
            names = ("seq", "ts", "type", "by")
            row = {name: event[name] for name in names}
            say(dumps({**row, "from": source, "to": dest, "data": event["data"]}))
            return
        if event["loop"] not in (None, self._last_loop):
            if self._last_loop is not None:
                say(f"        loop {event['loop']}")
            self._last_loop = event["loop"]
        say(timeline_line(event, source, dest, what_changed(event)))


@click.command()
@click.option("--at", "at", type=click.IntRange(1), metavar="SEQ", help="Stop after this event.")
@click.option("--until", metavar="TIME", help="Stop before the first event after this time (UTC).")
@click.option("--events", is_flag=True, help="One JSON line for each event.")
@click.option(
    "--strict",
    is_flag=True,
    help="List events that the rules would refuse; step the machine beyond 100,000 events too.",
)
@verb
def replay(call: Call, *, at: int | None, until: str | None, events: bool, strict: bool) -> None:
    """Replay the journal: verify every line, fold every event, show the timeline.

    Never writes. An illegal transition or damage is refused with its line (exit code 5).
    """
    found = Replay(call.context.journal())
    limit = parse_time(until) if until else None
    quiet = call.json and not events
    lines = _Lines(call.context.loop_id, events or call.json)
    if at is not None:
        _require_event(found.journal, at)
    try:
        found.run(None if quiet else lines.see, at, limit, strict=strict)
    except GsdError as error:
        lines.flush(found.journal.loops)  # the last valid event before the damage
        if isinstance(error, Newer) and not lines.as_json:
            _show_raw(found.journal)
        raise
    lines.flush(found.loops)
    if at is None and until is None:
        call.context.notices += unfinished(call.context, found.loops)
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
            say(display(line.decode("ascii", "replace").rstrip("\n")))


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
        f"{of}{counted(loops.seq, 'event')}, head {found.head}"
        + (f", loop {loop.id} {status_word(loop.status)}" if loop else "")
    )
    if found.journal.at.torn:
        say(
            f"{found.journal.at.torn} torn bytes at the end; the next append saves and cuts them",
            err=True,
        )
    if loops.backwards:
        say(f"the clock went back {counted(loops.backwards, 'time')}; order is by seq", err=True)


def _say_findings(found: Replay, *, err: bool = False) -> None:
    for finding in found.findings:
        say(display(f"finding: line {finding.line}, {finding.type}: {finding.message}"), err=err)


@click.command()
@click.option(
    "--repair",
    is_flag=True,
    help="Save the damaged file and continue from the valid lines before the damage.",
)
@click.option("--yes", is_flag=True, help="Do not ask before repairing.")
@verb
def fsck(call: Call, *, repair: bool, yes: bool) -> None:
    """Verify every line of the journal; print line and byte of damage.

    Exit code 0 without damage, 5 with damage. A repair keeps the damaged file.
    """
    journal = call.context.journal()
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
        say(f"gsd-fsm: {display(newer.message)}\n  → {newer.hint}", err=True)
    if report["damage"] or newer:
        raise click.exceptions.Exit(Corrupt.exit_code)


def _words(report: dict[str, Any], journal: Journal) -> list[str]:
    lines = [
        display(
            f"{journal.journal_path()}: {counted(report['events'], 'good event')}, "
            f"head {report['head']}"
        )
    ]
    lines += [
        display(f"line {found['line']}, byte {found['offset']}: {found['what']}")
        for found in report["damage"]
    ]
    if report["torn"]:
        lines.append(
            f"{report['torn']} torn bytes at the end, of an append that was interrupted; no acknowledged event is lost"
        )
    if report["damage"]:
        lines.append(
            "→ 'gsd-fsm fsck --repair' saves the damaged file and continues from the valid events"
        )
    elif journal.loops.backwards:
        lines.append(f"the clock went back {journal.loops.backwards} times; order is by seq")
    if report["ok"] and not report["torn"]:
        lines.append("no damage")
    return lines


def _repair(journal: Journal, report: dict[str, Any], yes: bool) -> None:
    if not yes:
        for line in _words(report, journal):
            say(line, err=True)
        good = counted(report["events"], "good event")
        try:
            agreed = click.confirm(f"Save the damaged file and continue from {good}?", err=True)
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
        say(f"the damaged journal is kept as .gsd/{aside}", err=True)

"""`fsck`: verify the journal, and go on after damage."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.voice import counted, say
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Corrupt, Newer, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.journal.repair import cut_damage
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.core.trust import register
from gsd_fsm.engine.start import new_id
from gsd_fsm.fsck import examine, sums_only


@click.command()
@click.option(
    "--repair", is_flag=True, help="Set damage aside and go on from the good lines before it."
)
@click.option("--yes", is_flag=True, help="Do not ask before repairing.")
@verb
def fsck(call: Call, *, repair: bool, yes: bool) -> None:
    """Verify every line of the journal; name line and byte of damage.

    Without damage exit code 0, with damage 5. Nothing is ever deleted: a repair keeps the old file.
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
        with Journal(journal.path).transaction(call.caller):
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
            f"{report['torn']} torn bytes at the end: an append that never returned; nothing acknowledged is lost"
        )
    if report["damage"]:
        lines.append(
            "→ 'gsd-fsm fsck --repair' sets the file aside and goes on from the good events"
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
            agreed = click.confirm(f"Set the file aside and go on from {good}?", err=True)
        except click.Abort:
            say("", err=True)  # ends the line of the question
            raise UsageError(
                "a repair asks first, and nobody answered", "gsd-fsm fsck --repair --yes"
            ) from None
        if not agreed:
            say("Nothing was changed.", err=True)
            raise click.exceptions.Exit(Corrupt.exit_code)
    fresh = new_id("j", 12)
    kept, aside = cut_damage(journal.path, fresh, now_ms())
    if not kept:
        register(fresh, journal.path, now_ms())
    if aside:
        say(f"the damaged journal is kept as .gsd/{aside}", err=True)

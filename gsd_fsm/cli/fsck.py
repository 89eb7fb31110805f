"""`fsck`: verify the journal, and go on after damage."""

from __future__ import annotations

import sys
from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.cli.start import new_id
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import Corrupt, UsageError
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.places import is_registered, register
from gsd_fsm.core.repair import cut_damage
from gsd_fsm.core.sanitize import display
from gsd_fsm.fsck import examine


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
    journal = call.journal()
    report = examine(journal)
    if repair and report["damage"]:
        _repair(journal, report, yes)
        report = examine(journal)
    elif repair and report["torn"]:
        Journal(journal.path).transact(lambda _world, _now: [])
        report = examine(journal)
    click.echo(dumps(report) if call.json else "\n".join(_words(report, journal)))
    if report["damage"]:
        raise click.exceptions.Exit(Corrupt.exit_code)


def _words(report: dict[str, Any], journal: Journal) -> list[str]:
    lines = [
        display(f"{journal.journal_path()}: {report['events']} good events, head {report['head']}")
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
    elif journal.world.backwards:
        lines.append(f"the clock went back {journal.world.backwards} times; order is by seq")
    if report["ok"] and not report["torn"]:
        lines.append("no damage")
    return lines


def _repair(journal: Journal, report: dict[str, Any], yes: bool) -> None:
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "a repair asks first, and nobody is here to answer", "gsd-fsm fsck --repair --yes"
            )
        for line in _words(report, journal):
            click.echo(line, err=True)
        click.confirm(
            f"Set the file aside and go on from {report['events']} good events?",
            abort=True,
            err=True,
        )
    trusted = is_registered(journal.world.journal, journal.path)
    fresh = new_id("j", 12)
    kept, aside = cut_damage(journal.path, fresh, now_ms())
    if not kept and not trusted:
        register(fresh, journal.path, now_ms())
    click.echo(f"the damaged journal is kept as .gsd/{aside}", err=True)

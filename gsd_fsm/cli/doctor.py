"""`doctor`: check the installation of the hook for Claude Code."""

from __future__ import annotations

from pathlib import Path

import click

from gsd_fsm.cli.call import Call, project_options
from gsd_fsm.cli.output import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.install.checks.environment import Row
from gsd_fsm.install.checks.installation import check_installation

_STATES = {"ok": ("✓", "green"), "note": ("!", "yellow"), "failed": ("✗", "red")}


@click.command()
@click.option("--plugin", "directory", metavar="DIR", help="Also check this plugin directory.")
@project_options
def doctor(call: Call, *, directory: str | None) -> None:
    """Run the installed hook once, and report problems with their fix.

    The hook runs in a temporary home and project; your loops are not changed. Exit code 0: no
    problems, 7: a check failed, 3: not installed.
    """
    path = None if directory is None else Path(call.context.directory, directory)
    rows = check_installation(call.context.directory, path)
    failed = [row for row in rows if row.state == "failed"]
    lines: list[str] = []
    fixes: set[str] = set()
    where = ""
    for row in rows:
        if row.where != where:
            where = row.where
            lines.append(click.style(where, bold=True))
        mark, colour = _STATES[row.state]
        time = "" if row.ms is None else f" ({row.ms} ms)"
        lines.append(f"  {click.style(mark, fg=colour)} {row.name:<16} {display(row.told)}{time}")
        if row.state != "ok" and row.fix and row.fix not in fixes:
            fixes.add(row.fix)
            lines.append(f"      → {display(row.fix)}")
    lines.append(_verdict(rows))
    members = [{**row._asdict(), "fix": row.fix if row.state != "ok" else ""} for row in rows]
    facts = {"ok": not failed, "rows": members}
    say(dumps(facts) if call.json else "\n".join(lines))
    if failed:
        raise click.exceptions.Exit(CheckFailed.exit_code)


def _verdict(rows: list[Row]) -> str:
    failed = [row for row in rows if row.state == "failed"]
    off = [display(row.told) for row in rows if row.off]
    if any(not row.off for row in failed):
        return f"{plural(len(failed), 'check')} failed."
    return f"The installation is correct, but {'; '.join(off)}." if off else "No problems found."

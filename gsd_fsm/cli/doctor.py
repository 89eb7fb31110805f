"""`doctor`: check the installation of the hook for Claude Code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from gsd_fsm.cli.call import Call, project_options
from gsd_fsm.cli.display.page import Command, Fields, Line, Moment, Part, Piece, Styled
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.system import home
from gsd_fsm.core.text.questions import plural
from gsd_fsm.install.checks.installation import check_installation
from gsd_fsm.install.checks.row import Row

_STATES: dict[str, Styled] = {
    "ok": Styled("✓", "good"),
    "note": Styled("!", "busy"),
    "failed": Styled("✗", "bad"),
}
_HEADINGS = {"here": "this directory"}
_NAME = 15


@click.command()
@click.option("--plugin", "directory", metavar="DIR", help="Also check this plugin directory.")
@project_options
def doctor(call: Call, *, directory: str | None) -> None:
    """Run the installed hook once, and report problems and fixes.

    The hook runs in a temporary home and project; your loops are not changed. Each fix is
    one shell command; add --yes if nobody can confirm it. Exit code 0: no check failed, 7: a
    check failed, 3: not installed.
    """
    path = None if directory is None else Path(call.context.directory, directory)
    rows = check_installation(call.context.directory, path)
    failed = [row for row in rows if row.state == "failed"]
    members = [{**row._asdict(), "fix": row.fix if row.state != "ok" else ""} for row in rows]
    call.show({"ok": not failed, "rows": members}, _page(rows))
    if failed:
        raise click.exceptions.Exit(CheckFailed.exit_code)


def _page(rows: list[Row]) -> Iterator[Part]:
    """Yield the results by place; a fix of several rows is shown once."""
    fixes: set[str] = set()
    for where, group in groupby(rows, key=lambda row: row.where):
        yield Line(Styled(_HEADINGS.get(where, where), "strong"))
        for row in group:
            told: list[Piece] = [_STATES[row.state], f" {_with_tilde(row.told)}"]
            told += [" ", Moment(row.at)] if row.at else []
            told += [Styled(f" ({row.ms} ms)", "faint")] if row.ms is not None else []
            yield Fields([(f"  {row.name:<{_NAME}}", [told])])
            if row.state != "ok" and row.fix and row.fix not in fixes:
                fixes.add(row.fix)
                yield Line(["    → ", Command(row.fix)])
    yield Line(_verdict(rows))


def _with_tilde(told: str) -> str:
    """Return the text with ~ for the home at the beginning of paths."""
    return re.sub(rf"(?<!\S){re.escape(home())}(?=[/\\])", "~", told) if home() else told


def _verdict(rows: list[Row]) -> str:
    failed, notes = ([it for it in rows if it.state == state] for state in ("failed", "note"))
    off = [row.told for row in rows if row.off]
    noted = f"; {plural(len(notes), 'note')}" if notes else ""
    if any(not row.off for row in failed):
        return f"{plural(len(failed), 'check')} failed{noted}."
    if off:
        return f"The installation is correct, but {'; '.join(off)}."
    return f"No check failed{noted}." if notes else "No problems found."

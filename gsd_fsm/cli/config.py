"""gsd-fsm config: show every setting, its value and its source."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.call import Call, project_options
from gsd_fsm.cli.display.page import Line, Part, Style, Styled, Table, Words
from gsd_fsm.config import settings
from gsd_fsm.config.in_force import in_force
from gsd_fsm.core.text.sanitize import one_line

WIDEST = 40


@click.command()
@project_options
def config(call: Call) -> None:
    """Show the settings and where each value comes from.

    The first file that sets a value takes precedence: the project's .gsd/config.toml, .opti-gsd/config.json,
    the loop section of .gsd/config.md, the user's file. Otherwise the default applies.
    """
    found, gsd, trusted = in_force(call.context.directory)
    facts = {name: {"value": _plain(s.value), "source": s.source} for name, s in found.items()}
    rows: list[list[Words]] = [[name, *_cells(setting)] for name, setting in found.items()]
    obeyed = "" if trusted else " (ignored: the journal is not trusted)"
    files = [f"{path}{obeyed}" for path in settings.project_files(gsd)] if gsd else []
    page: list[Part] = [
        Table(("setting", "value", "source"), rows, bare=True),
        Line("files, in order of precedence:"),
        *(Line(f"  {path}") for path in (*files, settings.user_file())),
    ]
    call.show({"settings": facts, "trusted": trusted}, page)


def _cells(setting: settings.Setting) -> list[Words]:
    """Return value and source; highlight values that are not the default."""
    style: Style = "faint" if setting.source == "default" else "strong"
    return [Styled(_shown(setting.value), style), Styled(setting.source, style)]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    """Return the value for a column: short and never empty."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    text = (", ".join(value) or "none") if isinstance(value, (tuple, dict)) else str(value) or '""'
    return one_line(text, WIDEST)

"""gsd-fsm config: show every setting, its value and its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gsd_fsm.cli.call import Call, project_options
from gsd_fsm.config import settings
from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.project import is_registered
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.engine.context import Context

WIDEST = 40


@click.command()
@project_options
def config(call: Call) -> None:
    """Show the settings and where each value comes from.

    The first file that sets a value takes precedence: the project's .gsd/config.toml, .opti-gsd/config.json,
    the loop section of .gsd/config.md, the user's file. Otherwise the default applies.
    """
    gsd, trusted = _project(call.context)
    found = settings.load(gsd, trusted=trusted)
    facts = {name: {"value": _plain(s.value), "source": s.source} for name, s in found.items()}
    shown = {name: _shown(setting.value) for name, setting in found.items()}
    wide = max(map(len, shown.values()))
    lines = [f"{name:<24}{shown[name]:<{wide}}  {s.source}" for name, s in found.items()]
    lines.append("\nfiles, in order of precedence:")
    obeyed = "" if trusted else " (ignored: the journal is not trusted)"
    if gsd:
        lines += [f"  {path}{obeyed}" for path in settings.project_files(gsd)]
    lines.append(f"  {settings.user_file()}")
    call.answer({"settings": facts, "trusted": trusted}, "\n".join(lines))


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


def _project(context: Context) -> tuple[Path | None, bool]:
    """Return the project's directory, and whether its settings apply (no journal, or trusted).

    Where the first `start` would create a project, settings of another tool apply.
    """
    try:
        gsd = Path(context.gsd_or_new)
    except NotFound:
        return None, True
    if not gsd.exists() and not (gsd.parent / ".opti-gsd").is_dir():
        return None, True
    try:
        loops = context.journal.read_cached()
    except NotFound:
        return gsd, True
    return gsd, not loops.seq or is_registered(loops.journal_id, context.gsd)

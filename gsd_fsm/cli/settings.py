"""`config`: every setting, its value and where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gsd_fsm.cli.call import Call, verb
from gsd_fsm.config import settings
from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.project import find_gsd, new_gsd
from gsd_fsm.core.trust import is_registered

WIDEST = 40


@click.command()
@verb
def config(call: Call) -> None:
    """Show the settings and where each value came from.

    The project's .gsd/config.toml comes first, then its .opti-gsd/config.json and the loop section
    of its .gsd/config.md, then the user's file, then the defaults.
    """
    gsd, trusted = _project(call)
    found = settings.load(Path(gsd) if gsd else None, trusted=trusted)
    facts = {name: {"value": _plain(s.value), "source": s.source} for name, s in found.items()}
    shown = {name: _shown(setting.value) for name, setting in found.items()}
    wide = max(map(len, shown.values()))
    lines = [f"{name:<24}{shown[name]:<{wide}}  {s.source}" for name, s in found.items()]
    lines.append("\nfiles; the first that gives a setting decides about it:")
    obeyed = "" if trusted else " (not obeyed: the journal is not trusted)"
    if gsd:
        lines += [f"  {path}{obeyed}" for path in settings.project_files(Path(gsd))]
    lines.append(f"  {settings.user_file()}")
    call.answer({"settings": facts, "trusted": trusted}, "\n".join(lines))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    """The value in a column: short, and never empty."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    text = (", ".join(value) or "none") if isinstance(value, tuple) else str(value) or '""'
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _project(call: Call) -> tuple[str | None, bool]:
    """The project's directory, and whether its files are obeyed: no journal yet, or a trusted one."""
    try:
        gsd = find_gsd(call.context.directory)
    except NotFound:
        return _new_project(call), True
    try:
        loops = Journal(gsd).read_cached()
    except NotFound:
        return gsd, True
    return gsd, not loops.seq or is_registered(loops.journal_id, gsd)


def _new_project(call: Call) -> str | None:
    """Where the first `start` would find settings of another tool; None where there are none."""
    try:
        gsd = new_gsd(call.context.directory)
    except NotFound:
        return None
    return gsd if (Path(gsd).parent / ".opti-gsd").is_dir() else None

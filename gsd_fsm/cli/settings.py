"""`config`: every setting, its value and where it came from."""

from __future__ import annotations

from pathlib import Path

import click

from gsd_fsm import settings
from gsd_fsm.cli.call import Call, verb
from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.places import find_gsd, is_registered


@click.command()
@verb
def config(call: Call) -> None:
    """Show the settings and where each value came from.

    The project's .gsd/config.toml comes before the user's file, and both before the defaults.
    """
    gsd, trusted = _project(call)
    found = settings.load(Path(gsd) if gsd else None, trusted=trusted)
    facts = {name: {"value": s.value, "source": s.source} for name, s in found.items()}
    lines = []
    for name, setting in found.items():
        value = "not set" if setting.value is None else str(setting.value)
        if isinstance(setting.value, bool):
            value = value.lower()
        lines.append(f"{name:<24}{value:<14}{setting.source}")
    lines.append(f"\nuser's file: {settings.user_file()}")
    if gsd:
        obeyed = "" if trusted else " (not obeyed: the journal is not trusted)"
        lines.append(f"project's file: {Path(gsd) / settings.FILE_NAME}{obeyed}")
    call.answer({"settings": facts, "trusted": trusted}, "\n".join(lines))


def _project(call: Call) -> tuple[str | None, bool]:
    """The project's directory, and whether its file is obeyed: no journal yet, or a trusted one."""
    try:
        gsd = find_gsd(call.start_directory)
    except NotFound:
        return None, True
    try:
        world = Journal(gsd).glance()
    except NotFound:
        return gsd, True
    return gsd, not world.seq or is_registered(world.journal, gsd)

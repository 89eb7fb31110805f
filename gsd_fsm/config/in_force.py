"""Find the settings in force in a directory, with or without a project."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from gsd_fsm.config import settings
from gsd_fsm.core.errors import NotFound
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.project import is_registered, new_gsd
from gsd_fsm.core.system import nearest_gsd


class InForce(NamedTuple):
    """The settings in force; the directory whose files are read, and whether they apply."""

    settings: dict[str, settings.Setting]
    gsd: Path | None
    trusted: bool


def in_force(directory: str) -> InForce:
    """Return the settings that a loop would get here; raise UsageError naming a bad file."""
    gsd, trusted = _project(directory)
    return InForce(settings.load(gsd, trusted=trusted), gsd, trusted)


def _project(directory: str) -> tuple[Path | None, bool]:
    """Return the `.gsd` of the project, and whether its settings apply (no journal, or trusted).

    Where the first `start` would create a project, settings of another tool apply.
    """
    found = nearest_gsd(directory)
    try:
        gsd = Path(found or new_gsd(directory))
    except NotFound:
        return None, True
    if not found:
        return (gsd, True) if (gsd.parent / ".opti-gsd").is_dir() else (None, True)
    try:
        loops = Journal(found).read_cached()
    except NotFound:
        return gsd, True
    return gsd, not loops.seq or is_registered(loops.journal_id, found)

"""Find plans: in `plans/phase-N/` below `.opti-gsd` if that exists, else below `.gsd`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.documents.front_matter import line_value
from gsd_fsm.documents.json_text import read_object
from gsd_fsm.documents.read import read_if_exists, read_text
from gsd_fsm.plans.phase_name import Phase, is_phase, phase_of

FOREIGN, OWN = ".opti-gsd", ".gsd"
NAMES = ("plan.json", "plan.md", "PLAN.md", "PLAN.json")
MOST_BYTES = 4 << 20


def planning_root(project: Path) -> Path:
    """Return the directory of the project's plans, whether or not it exists."""
    foreign = project / FOREIGN
    return foreign if foreign.is_dir() else project / OWN


def phase_directory(project: Path, phase: Phase) -> Path:
    """Return the directory of a phase: `phase-1`, or `phase-01` if only that exists."""
    possible = _directories(project, phase)
    return next((directory for directory in possible if directory.is_dir()), possible[0])


def _directories(project: Path, phase: Phase) -> list[Path]:
    if not is_phase(phase):
        raise UsageError(f"{str(phase)[:80]!r} is not a phase", "Give a number or a name.")
    name = str(phase_of(phase))
    names = [name, f"0{name}"] if re.match(r"[0-9](?![0-9])", name) else [name]
    return [planning_root(project) / "plans" / f"phase-{spelled}" for spelled in names]


def find_plan(project: Path, phase: Phase, command: str = "start execute") -> Path:
    """Return the plan of a phase; raise NotFound if it has none, UsageError if it has several.

    `command` is the one that the hint suggests.
    """
    directories = _directories(project, phase)
    found = _plans_in(directories)
    if not found:
        places = " or ".join(map(str, directories))
        raise NotFound(
            f"Phase Not Planned: No plan found for phase {phase} in {places}",
            f"Write {phase_directory(project, phase) / 'plan.md'}, "
            f"or run: gsd-fsm {command} --plan FILE",
        )
    if len(found) > 1:
        named = " and ".join(map(str, found))
        raise UsageError(f"phase {phase} has several plans: {named}", "Name one with --plan FILE.")
    return found[0]


def only_plan(project: Path) -> Path | None:
    """Return the plan of the project if it has exactly one, of whatever phase."""
    found = _plans_in(sorted((planning_root(project) / "plans").glob("phase-*")))
    return found[0] if len(found) == 1 else None


def _plans_in(directories: list[Path]) -> list[Path]:
    found: dict[tuple[int, int], Path] = {}
    for path in (directory / name for directory in directories for name in NAMES):
        if os.path.lexists(path):
            info = path.stat() if path.exists() else path.lstat()
            # On some disks PLAN.md and plan.md are the same file.
            found.setdefault((info.st_dev, info.st_ino), path)
    return list(found.values())


def artefacts(project: Path, plan: Path, phase: Phase | None) -> Path:
    """Return the directory for documents about a plan: its own if that is where plans are."""
    root = os.path.realpath(planning_root(project))
    own = Path(os.path.realpath(plan)).parent
    if own.is_relative_to(root):
        return own
    return planning_root(project) / "plans" if phase is None else phase_directory(project, phase)


def project_state(project: Path) -> dict[str, Any]:
    """Return `.opti-gsd/state.json`; raise NotFound if it is missing, UsageError if not valid."""
    path = project / FOREIGN / "state.json"
    if not os.path.lexists(path):
        raise NotFound(
            f"Project State Missing: {path} not found",
            'Write it, for example {"phase": 1}, or name the plan with --plan FILE.',
        )
    return read_object(read_text(path, MOST_BYTES), path)


def current_phase(project: Path) -> Phase | None:
    """Return the phase that the project's own state names, if any."""
    if (project / FOREIGN).is_dir():
        named = map(phase_of, _named_phases(project_state(project)))
        phase = next((it for it in named if it is not None), None)
        if phase is not None:
            return phase
    content = read_if_exists(project / OWN / "STATE.md", MOST_BYTES, "Fix the file.") or b""
    return phase_of(line_value(content.decode("utf-8-sig", "replace"), "phase", "current_phase"))


def _named_phases(state: dict[str, Any]) -> Iterator[Any]:
    """Yield the members of `state.json` that may name the current phase, the surest first."""
    yield state.get("phase")
    yield state.get("current_phase")
    nested, loop = state.get("phases"), state.get("loop")
    listed = state.get("phases_in_progress") or (
        nested.get("in_progress") if isinstance(nested, dict) else None
    )
    yield listed[0] if isinstance(listed, list) and listed else None
    yield loop.get("phase") if isinstance(loop, dict) else None

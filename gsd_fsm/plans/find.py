"""Where plans are: in `plans/phase-N/` below `.opti-gsd` if that exists, else below `.gsd`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.documents.read import read_bytes
from gsd_fsm.plans.plan import is_phase
from gsd_fsm.plans.values import phase_of

FOREIGN, OWN = ".opti-gsd", ".gsd"
NAMES = ("plan.json", "plan.md", "PLAN.md", "PLAN.json")
MOST_BYTES = 4 << 20
Phase = int | str


def planning_root(project: Path) -> Path:
    """The directory of the project's plans, whether or not there is one yet."""
    foreign = project / FOREIGN
    return foreign if foreign.is_dir() else project / OWN


def phase_directory(project: Path, phase: Phase) -> Path:
    """The directory of a phase: `phase-1`, or `phase-01` where that is the one that exists."""
    possible = _directories(project, phase)
    return next((directory for directory in possible if directory.is_dir()), possible[0])


def _directories(project: Path, phase: Phase) -> list[Path]:
    if not is_phase(phase):
        what = f"{str(phase)[:80]!r} is not a phase"
        raise UsageError(what, "a phase is a number or a plain word")
    name = str(phase_of(phase))
    names = [name, f"0{name}"] if re.match(r"[0-9](?![0-9])", name) else [name]
    return [planning_root(project) / "plans" / f"phase-{spelled}" for spelled in names]


def find_plan(project: Path, phase: Phase) -> Path:
    """The plan of a phase; NotFound where there is none."""
    directories = _directories(project, phase)
    found: dict[tuple[int, int], Path] = {}
    for path in (directory / name for directory in directories for name in NAMES):
        if os.path.lexists(path):
            info = path.stat() if path.exists() else path.lstat()
            # One file under two names: on some disks PLAN.md and plan.md are the same.
            found.setdefault((info.st_dev, info.st_ino), path)
    if not found:
        places = " or ".join(map(str, directories))
        raise NotFound(
            f"Phase Not Planned: No plan found for phase {phase} in {places}",
            f"write {phase_directory(project, phase) / 'plan.md'}, "
            "or name another: gsd-fsm start execute --plan FILE",
        )
    if len(found) > 1:
        named = " and ".join(map(str, found.values()))
        raise UsageError(f"phase {phase} has several plans: {named}", "name one with --plan")
    return next(iter(found.values()))


def artefacts(project: Path, plan: Path, phase: Phase | None) -> Path:
    """Where the documents about a plan belong: beside it, if it lies where plans are."""
    root = os.path.realpath(planning_root(project))
    own = Path(os.path.realpath(plan)).parent
    if own.is_relative_to(root):
        return own
    return planning_root(project) / "plans" if phase is None else phase_directory(project, phase)


def project_state(project: Path) -> dict[str, Any]:
    """What `.opti-gsd/state.json` says; NotFound if it is missing, UsageError if it is damaged."""
    import json

    path = project / FOREIGN / "state.json"
    if not os.path.lexists(path):
        raise NotFound(
            f"Project State Missing: {path} not found",
            'write it, for example {"phase": 1}, or name the plan: gsd-fsm start execute --plan FILE',
        )
    content = read_bytes(path, MOST_BYTES, "mend the file")
    try:
        found = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        what = f"{path}:{error.lineno}: not valid JSON: {error.msg}"
        raise UsageError(what, "mend the file") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not valid JSON", "mend the file") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path}: not a JSON object", "mend the file")
    return found


def current_phase(project: Path) -> Phase | None:
    """The phase that the project's own state names, if it names one."""
    if (project / FOREIGN).is_dir():
        found = project_state(project)
        phase = phase_of(found.get("phase", found.get("current_phase")))
        if phase is None:
            phase = _in_progress(found)
        if phase is not None:
            return phase
    path = project / OWN / "STATE.md"
    if not os.path.lexists(path):
        return None
    text = read_bytes(path, MOST_BYTES, "mend the file").decode("utf-8-sig", "replace")
    return phase_of(_phase_in(text.replace("\r\n", "\n").split("\n")))


def _in_progress(state: dict[str, Any]) -> Phase | None:
    """The first phase that is said to be under way."""
    nested = state.get("phases")
    listed = state.get("phases_in_progress") or (
        nested.get("in_progress") if isinstance(nested, dict) else None
    )
    return phase_of(listed[0]) if isinstance(listed, list) and listed else None


def _phase_in(lines: list[str]) -> str | None:
    """What the front matter calls the phase; whatever else stands there may be broken."""
    if lines[0].rstrip() != "---":
        return None
    for line in lines[1:]:
        if line.rstrip() in ("---", "..."):
            break
        name, _, value = line.partition(":")
        if name in ("phase", "current_phase"):
            return re.split(r"(?:^|\s)#", value)[0].strip().strip("\"'")
    return None

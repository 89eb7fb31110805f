"""The changes that the end of a phase makes to the project's files; all computed before any is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.files import Change, TextFile, open_text, require_writable
from gsd_fsm.documents.read import FIX_HINT, Malformed, decode
from gsd_fsm.phase import state_files, summary
from gsd_fsm.phase.roadmap import (
    MOST_BYTES,
    completed,
    later_phases,
    named_texts,
    roadmap_changes,
    roadmaps,
)
from gsd_fsm.plans.find import FOREIGN, OWN, artefacts
from gsd_fsm.plans.phase_name import Phase, phase_number

if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.plans.plan import Plan


def plan_ending(  # noqa: PLR0917 - each is one fact about the end
    project: Path,
    plan: Plan,
    loop: Loop,
    phase: Phase | None,
    commits: summary.Commits,
    now_iso: str,
    *,
    keeps_loop: bool = False,
) -> list[Change]:
    """Return the changes that end a phase: summary, state, roadmap; none that are already made.

    `keeps_loop`: the project's state shows another loop, which is live. Raise CannotWrite or UsageError if any of them cannot be made. After an interruption, the same
    call returns the remaining ones.
    """
    page = _summary(project, plan.path, phase)
    changes = page.changes(summary.merged(page.text, summary.summary(loop, plan, commits, phase)))
    if phase is not None:
        changes += _state_changes(project, phase, now_iso, keeps_loop=keeps_loop)
        changes += roadmap_changes(project, phase, plan.title, named_texts(plan))
    for change in changes:
        require_writable(change.path)
    return changes


def metadata_paths(project: Path, plan: Plan, phase: Phase | None) -> list[Path]:
    """Return the files for the commit of a finished phase, also those that an earlier try changed."""
    found = [_summary(project, plan.path, phase)]
    if phase is not None:
        found += [_state(project)]
        found += [it for it in roadmaps(project) if completed(it.text, phase) is not None]
    return [it.path for it in found if it.content is not None]


def is_summarized(project: Path, plan_path: Path, loop: Loop) -> bool:
    """Return whether the summary of the phase is that of this loop."""
    return summary.RECORD.format(loop=loop.id) in _summary(project, plan_path, loop.phase).text


def ending_notes(project: Path) -> list[str]:
    """Return notes for the report about files that are missing."""
    if (project / FOREIGN).is_dir() and _state(project).content is None:
        name = f"{FOREIGN}/{state_files.JSON_FILE}"
        return [f"{name} is missing, so the phase is not marked complete there."]
    return []


def _summary(project: Path, plan_path: Path, phase: Phase | None) -> TextFile:
    number = phase_number(phase)
    folder = artefacts(project, plan_path, phase if number is None else number)
    return open_text(project, folder / summary.FILE_NAME, MOST_BYTES)


def _state(project: Path) -> TextFile:
    foreign = project / FOREIGN
    path = foreign / state_files.JSON_FILE if foreign.is_dir() else project / OWN / "STATE.md"
    return open_text(project, path, MOST_BYTES)


def _state_changes(project: Path, phase: Phase, now_iso: str, *, keeps_loop: bool) -> list[Change]:
    state = _state(project)
    if state.content is None:
        return []
    if state.path.suffix == ".md":
        return state.changes(state_files.complete_in_markdown(state.text, phase, now_iso))
    later = {it for page in roadmaps(project) for it in later_phases(page.text, phase)}
    decode(state.content, state.path)
    try:
        text = state_files.complete_in_json(
            state.text, phase, now_iso, sorted(later), keeps_loop=keeps_loop
        )
    except Malformed as error:
        raise Malformed(state.path, error.line, error.problem) from error
    except UsageError as error:
        raise UsageError(f"{state.path}: {error.message}", error.hint or FIX_HINT) from error
    return state.changes(text)

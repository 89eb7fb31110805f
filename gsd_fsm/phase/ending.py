"""What the end of a phase changes in the project's files: all of it computed before any of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.files import Change
from gsd_fsm.phase import project_state, state_lines, summary
from gsd_fsm.phase.document import Document, read, require_writable
from gsd_fsm.phase.name import Phase, number_of
from gsd_fsm.phase.roadmap import completed, later_phases, roadmap_changes, roadmaps
from gsd_fsm.plans.find import FOREIGN, OWN, artefacts

if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.plans.plan import Plan


def plan_ending(  # noqa: PLR0917 - each is one fact of the ending, and all are needed
    project: Path,
    plan: Plan,
    loop: Loop,
    phase: Phase | None,
    commits: summary.Commits,
    now_iso: str,
) -> list[Change]:
    """The changes that end a phase: summary, state, roadmap; none where they are made already.

    Whatever stands in the way of any of them is told now, before one of them is carried out. After
    an interruption the same call gives what is left to do.
    """
    page = _summary(project, plan.path, phase)
    changes = page.become(summary.merged(page.text, summary.summary(loop, plan, commits, phase)))
    if phase is not None:
        changes += _state_changes(project, phase, now_iso)
        changes += roadmap_changes(project, phase, plan.title)
    for change in changes:
        require_writable(change.path)
    return changes


def metadata_paths(project: Path, plan: Plan, phase: Phase | None) -> list[Path]:
    """The files that the commit of the ended phase is made of, also those changed in an earlier try."""
    found = [_summary(project, plan.path, phase)]
    if phase is not None:
        found += [_state(project)]
        found += [it for it in roadmaps(project) if completed(it.text, phase) is not None]
    return [it.path for it in found if it.content is not None]


def is_summarized(project: Path, plan_path: Path, loop: Loop) -> bool:
    """Return whether the summary of the phase is that of this loop."""
    return summary.RECORD.format(loop=loop.id) in _summary(project, plan_path, loop.phase).text


def ending_notes(project: Path) -> list[str]:
    """What the report should say about files that the end of a phase would have changed."""
    if (project / FOREIGN).is_dir() and _state(project).content is None:
        return [f"{FOREIGN}/{project_state.FILE_NAME} is missing, so the phase is not noted there."]
    return []


def _summary(project: Path, plan_path: Path, phase: Phase | None) -> Document:
    number = number_of(phase)
    folder = artefacts(project, plan_path, phase if number is None else number)
    return read(project, folder / summary.FILE_NAME)


def _state(project: Path) -> Document:
    if (project / FOREIGN).is_dir():
        return read(project, project / FOREIGN / project_state.FILE_NAME)
    return read(project, project / OWN / state_lines.FILE_NAME)


def _state_changes(project: Path, phase: Phase, now_iso: str) -> list[Change]:
    state = _state(project)
    if state.content is None:
        return []
    if state.path.suffix == ".md":
        return state.become(state_lines.with_phase_complete(state.text, phase, now_iso))
    later = [it for page in roadmaps(project) for it in later_phases(page.text, phase)]
    try:
        state.content.decode()
        return state.become(
            project_state.with_phase_complete(state.text, phase, now_iso, sorted(set(later)))
        )
    except UnicodeDecodeError as error:
        line = state.content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{state.path}:{line}: not valid UTF-8", "save it as UTF-8") from error
    except UsageError as error:
        what = f"{state.path}: {error.message}"
        raise UsageError(what, error.hint or "mend the file, then run the command again") from error

"""The changes at the end of a phase: computed first, then made one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CannotWrite, GsdError, UsageError
from gsd_fsm.documents.files import write_change
from gsd_fsm.phase.ending import ending_notes, metadata_paths
from tests.support.phases import FinishedPhase

FILES = ["summary.md", "state.json", "roadmap.md"]
each_file = pytest.mark.parametrize("name", ["summary", "state", "roadmap"])


@pytest.fixture
def full(phase: FinishedPhase) -> FinishedPhase:
    """A project with all three files."""
    phase.state.write_text('{"phases_complete": [], "phases_in_progress": [1]}')
    phase.roadmap.write_text("### Phase 1: Loop Mechanism\n**Goal:** x\n")
    return phase


def test_ending_changes_all_files_once(full: FinishedPhase) -> None:
    before = full.everything()
    full.changes()
    assert full.everything() == before
    assert full.end() == FILES
    assert full.changes(now="2027-01-01T00:00:00.000Z") == []
    assert json.loads(full.state.read_text()) == {"phases_complete": [1], "phases_in_progress": []}
    assert full.roadmap.read_text().startswith("### Phase 1: Loop Mechanism\n- [x] Complete\n\n**")


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_ending_after_a_kill_makes_the_remaining_changes(full: FinishedPhase, done: int) -> None:
    for change in full.changes()[:done]:
        write_change(change)
    assert full.end() == FILES[done:]
    assert full.changes() == []
    assert [path.name for path in metadata_paths(full.root, full.plan, 1)] == FILES


@each_file
def test_read_only_file_is_refused_only_if_it_would_change(full: FinishedPhase, name: str) -> None:
    path: Path = getattr(full, name)
    path.touch()
    path.chmod(0o444)
    before = full.everything()
    with pytest.raises(CannotWrite, match="is read-only") as error:
        full.changes()
    assert "chmod u+w" in error.value.hint
    assert full.everything() == before
    path.chmod(0o644)
    full.end()
    path.chmod(0o444)
    assert full.changes() == []


@each_file
def test_link_outside_the_project_is_not_followed(full: FinishedPhase, name: str) -> None:
    outside = full.root.parent / "theirs"
    outside.write_text("## Phase 1\n")
    path: Path = getattr(full, name)
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    with pytest.raises(UsageError, match="points outside the project"):
        full.changes()
    assert outside.read_text() == "## Phase 1\n"


def test_roadmap_keeps_invalid_bytes_and_changes_of_others(full: FinishedPhase) -> None:
    full.roadmap.write_bytes(b"x" * (5 << 20))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        full.changes()
    full.roadmap.write_bytes(b"\xef\xbb\xbf## Phase 1: \xff\xfe\r\n\x0c\x85\r\n")
    changes = full.changes()
    full.end()
    marked = b"\xef\xbb\xbf## Phase 1: \xff\xfe\r\n- [x] Complete\r\n\r\n\x0c\x85\r\n"
    assert full.roadmap.read_bytes() == marked
    with pytest.raises(CannotWrite, match="changed in the meantime"):
        write_change(changes[2])
    assert full.roadmap.read_bytes() == marked


def test_missing_state_is_not_created_and_noted_only_if_foreign(tmp_path: Path) -> None:
    own = FinishedPhase(tmp_path / "own", ".gsd")
    assert own.end() == ["summary.md"]
    assert ending_notes(own.root) == []
    assert metadata_paths(own.root, own.plan, 1) == [own.summary]
    foreign = FinishedPhase(tmp_path / "foreign")
    assert foreign.end() == ["summary.md"]
    assert not foreign.state.exists()
    assert ending_notes(foreign.root) == [
        ".opti-gsd/state.json is missing, so the phase is not marked complete there."
    ]
    foreign.state.write_text("{}")
    assert ending_notes(foreign.root) == []


def test_summary_of_a_plan_elsewhere_is_in_the_phase_directory(own: FinishedPhase) -> None:
    own.plan = own.plan._replace(path=own.root / "docs" / "plan.md")
    for phase, number in (("01", 1), (4, 4)):
        (change,) = own.changes(phase=phase)
        assert change.path == own.root / ".gsd" / "plans" / f"phase-{number}" / "summary.md"
    with pytest.raises(GsdError):
        own.changes(phase="../../x")


def test_plan_without_phase_changes_only_the_summary(full: FinishedPhase) -> None:
    full.loop.phase = None
    full.plan = full.plan._replace(phase=None)
    (change,) = full.changes(phase=None)
    assert change.path.name == "summary.md"
    assert b"# Plan Summary" in (change.after or b"")
    assert metadata_paths(full.root, full.plan, None) == []

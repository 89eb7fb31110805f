"""Where plans and the current phase are found, and where documents about them go."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.plans import find
from gsd_fsm.plans.find import artefacts, current_phase, find_plan, only_plan, planning_root


def plan_at(project: Path, name: str) -> Path:
    path = project / ".gsd" / "plans" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Return the path of the planning tool's state."""
    (tmp_path / ".opti-gsd").mkdir()
    return tmp_path / ".opti-gsd" / "state.json"


def test_planning_root_is_the_foreign_directory_if_it_exists(tmp_path: Path) -> None:
    assert planning_root(tmp_path) == tmp_path / ".gsd"
    (tmp_path / ".opti-gsd").mkdir()
    assert planning_root(tmp_path) == tmp_path / ".opti-gsd"


def test_find_plan_returns_the_plan_of_the_phase(tmp_path: Path) -> None:
    for phase, name in (
        *((1, f"phase-1/{name}") for name in ("plan.json", "plan.md", "PLAN.md")),
        *((phase, "phase-01/plan.md") for phase in (1, "01")),
        ("2.1", "phase-02.1/PLAN.json"),
        ("auth flow", "phase-auth flow/plan.json"),
    ):
        plan = plan_at(tmp_path, name)
        assert find_plan(tmp_path, phase) == plan
        plan.unlink()


def test_find_plan_refuses_two_plans_of_one_phase(tmp_path: Path) -> None:
    plan = plan_at(tmp_path, "phase-1/plan.json")
    (plan.parent / "PLAN.md").symlink_to("plan.json")  # the same file
    assert find_plan(tmp_path, 1) == plan
    other = plan_at(tmp_path, "phase-1/plan.md")
    with pytest.raises(UsageError, match="several plans"):
        find_plan(tmp_path, 1)
    other.unlink()
    plan_at(tmp_path, "phase-01/plan.md")
    with pytest.raises(UsageError, match=r"phase-1/plan\.json and .*phase-01/plan\.md"):
        find_plan(tmp_path, 1)


def test_find_plan_names_the_directories_without_a_plan(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Phase Not Planned: No plan found for phase 7") as error:
        find_plan(tmp_path, 7)
    plans = tmp_path / ".gsd" / "plans"
    assert error.value.message.endswith(f"in {plans / 'phase-7'} or {plans / 'phase-07'}")
    assert "gsd-fsm start execute --plan FILE" in error.value.hint
    with pytest.raises(UsageError, match="is not a phase"):
        find_plan(tmp_path, "../x")


def test_only_plan_returns_none_unless_there_is_exactly_one(tmp_path: Path) -> None:
    assert only_plan(tmp_path) is None
    plan_at(tmp_path, "notes/plan.md")
    plan = plan_at(tmp_path, "phase-7/plan.md")
    plan.unlink()
    plan.symlink_to("nowhere")  # a plan that cannot be read
    assert only_plan(tmp_path) == find_plan(tmp_path, 7) == plan
    plan_at(tmp_path, "phase-8/PLAN.json")
    assert only_plan(tmp_path) is None


def test_artefacts_go_beside_the_plan_or_into_the_directory_of_the_phase(tmp_path: Path) -> None:
    own = tmp_path / ".gsd" / "plans" / "phase-01"
    own.mkdir(parents=True)
    assert artefacts(tmp_path, own / "plan.md", 1) == own
    assert artefacts(tmp_path, tmp_path / "plan.md", 1) == own
    assert artefacts(tmp_path, tmp_path / "plan.md", None) == tmp_path / ".gsd" / "plans"


@pytest.mark.parametrize(
    ("text", "phase"),
    [('{"phase": 2}', 2), ('{"phase": "03"}', 3), ('{"current_phase": "auth"}', "auth"),
     ('{"phase": null}', None), ("{}", None), ('{"phase": true}', None), ('{"phase": 0}', 0),
     ('{"phases_in_progress": [4, 5]}', 4), ('{"phases": {"in_progress": ["x"]}}', "x"),
     ('{"phase": null, "current_phase": 6}', 6), ('{"loop": {"phase": 7, "type": "execute"}}', 7),
     ('{"phases_in_progress": [4], "loop": {"phase": 7}}', 4), ('{"loop": [7]}', None)],
)  # fmt: skip
def test_current_phase_is_read_from_the_foreign_state(tmp_path, foreign, text, phase) -> None:
    foreign.write_text(text)
    assert current_phase(tmp_path) == phase


def test_current_phase_is_read_from_front_matter(tmp_path: Path) -> None:
    (tmp_path / ".gsd").mkdir()
    assert current_phase(tmp_path) is None
    for content, phase in (
        (b"phase: 7\n", None),
        (b"---\r\ncurrent_phase: 'a b' # now\r\n---\r\n", "a b"),
        (b"---\n[not yaml\nphase: \xff\n---\n", "\N{REPLACEMENT CHARACTER}"),
        (b"---\nmilestone: v1\nphase: 4  # now\nloop:\n  phase: 9\n---\nphase: 7\n", 4),
    ):
        (tmp_path / ".gsd" / "STATE.md").write_bytes(content)
        assert current_phase(tmp_path) == phase
    (tmp_path / ".opti-gsd").mkdir()
    (tmp_path / ".opti-gsd" / "state.json").write_bytes(b'\xef\xbb\xbf{"milestone": "v1"}')
    assert current_phase(tmp_path) == 4


def test_state_that_is_missing_or_cannot_be_read_is_refused(tmp_path: Path, foreign: Path) -> None:
    with pytest.raises(NotFound, match="Project State Missing"):
        find.project_state(tmp_path)
    for content, what in (
        (b"{\n", "state.json:2"),
        (b'{"phase": "\xff"}', "1: not valid UTF-8"),
        (b" " * (5 << 20), "larger than 4 MiB"),
    ):
        foreign.write_bytes(content)
        with pytest.raises(UsageError, match=what):
            find.project_state(tmp_path)
    foreign.write_text("{}")
    own = tmp_path / ".gsd" / "STATE.md"
    own.parent.mkdir()
    own.write_bytes(b"\xff" * (5 << 20))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        current_phase(tmp_path)

"""Where plans and the current phase are found, and where documents about them go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.core.errors import NotFound, UsageError
from gsd_fsm.plans.find import artefacts, current_phase, find_plan, planning_root, project_state
from gsd_fsm.plans.load import load_plan


def test_the_foreign_directory_is_preferred_where_it_exists(tmp_path: Path) -> None:
    assert planning_root(tmp_path) == tmp_path / ".gsd"
    (tmp_path / ".opti-gsd").mkdir()
    assert planning_root(tmp_path) == tmp_path / ".opti-gsd"


@pytest.mark.parametrize("directory", ["phase-1", "phase-01"])
@pytest.mark.parametrize("name", ["plan.json", "plan.md", "PLAN.md"])
def test_a_plan_is_found_by_its_phase(tmp_path: Path, directory: str, name: str) -> None:
    plan = tmp_path / ".gsd" / "plans" / directory / name
    plan.parent.mkdir(parents=True)
    plan.touch()
    assert find_plan(tmp_path, 1) == plan
    with pytest.raises(NotFound, match="Phase Not Planned: No plan found for phase 2"):
        find_plan(tmp_path, 2)


def test_two_plans_of_one_phase_are_a_question(tmp_path: Path) -> None:
    place = tmp_path / ".gsd" / "plans" / "phase-1"
    place.mkdir(parents=True)
    (place / "plan.json").touch()
    (place / "plan.md").touch()
    with pytest.raises(UsageError, match="several plans"):
        find_plan(tmp_path, 1)


@pytest.mark.parametrize("phase", ["../x", "a/b", "", "..", "-x"])
def test_a_phase_is_no_path(tmp_path: Path, phase: str) -> None:
    with pytest.raises(UsageError, match="is not a phase"):
        find_plan(tmp_path, phase)


def test_documents_go_beside_a_plan_in_its_place_and_else_into_the_phase(tmp_path: Path) -> None:
    own = tmp_path / ".gsd" / "plans" / "phase-01"
    own.mkdir(parents=True)
    assert artefacts(tmp_path, own / "plan.md", 1) == own
    assert artefacts(tmp_path, tmp_path / "plan.md", 1) == own
    assert artefacts(tmp_path, tmp_path / "plan.md", None) == tmp_path / ".gsd" / "plans"


@pytest.mark.parametrize(
    ("text", "phase"),
    [('{"phase": 2}', 2), ('{"phase": "03"}', 3), ('{"current_phase": "auth"}', "auth"),
     ('{"phase": null}', None), ("{}", None), ('{"phase": true}', None)],
)  # fmt: skip
def test_the_current_phase_is_that_of_the_state(tmp_path: Path, text: str, phase: object) -> None:
    (tmp_path / ".opti-gsd").mkdir()
    (tmp_path / ".opti-gsd" / "state.json").write_text(text)
    assert current_phase(tmp_path) == phase


def test_the_current_phase_stands_in_the_front_matter_too(tmp_path: Path) -> None:
    (tmp_path / ".gsd").mkdir()
    assert current_phase(tmp_path) is None
    state = tmp_path / ".gsd" / "STATE.md"
    state.write_text("---\nmilestone: v1\nphase: 4  # now\nloop:\n  phase: 9\n---\nphase: 7\n")
    assert current_phase(tmp_path) == 4
    state.write_text("phase: 7\n")
    assert current_phase(tmp_path) is None


def test_a_state_that_is_missing_or_damaged_is_told(tmp_path: Path) -> None:
    (tmp_path / ".opti-gsd").mkdir()
    with pytest.raises(NotFound, match="Project State Missing"):
        project_state(tmp_path)
    for text, what in (
        ("{\n", "state.json:2"),
        ("[]", "not a JSON object"),
        ("[" * 99_999, "not valid"),
    ):
        (tmp_path / ".opti-gsd" / "state.json").write_text(text)
        with pytest.raises(UsageError, match=what):
            project_state(tmp_path)


def test_the_same_file_under_two_names_is_one_plan(tmp_path: Path) -> None:
    place = tmp_path / ".gsd" / "plans" / "phase-1"
    place.mkdir(parents=True)
    (place / "plan.json").touch()
    (place / "PLAN.md").symlink_to("plan.json")
    assert find_plan(tmp_path, 1) == place / "plan.json"


def test_both_spellings_of_a_phase_are_looked_at(tmp_path: Path) -> None:
    plans = tmp_path / ".gsd" / "plans"
    for name in ("phase-1", "phase-01", "phase-02.1", "phase-auth flow"):
        (plans / name).mkdir(parents=True)
    for name in ("phase-01/plan.md", "phase-02.1/PLAN.json", "phase-auth flow/plan.json"):
        (plans / name).touch()
    assert find_plan(tmp_path, 1) == find_plan(tmp_path, "01") == plans / "phase-01" / "plan.md"
    assert find_plan(tmp_path, "2.1") == plans / "phase-02.1" / "PLAN.json"
    assert find_plan(tmp_path, "auth flow") == plans / "phase-auth flow" / "plan.json"
    (plans / "phase-1" / "plan.json").touch()
    with pytest.raises(UsageError, match=r"phase-1/plan\.json and .*phase-01/plan\.md"):
        find_plan(tmp_path, 1)


def test_a_missing_plan_is_told_with_the_places_that_were_looked_at(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as error:
        find_plan(tmp_path, 7)
    plans = tmp_path / ".gsd" / "plans"
    assert error.value.message.endswith(f"in {plans / 'phase-7'} or {plans / 'phase-07'}")
    assert "gsd-fsm start execute --plan FILE" in error.value.hint


def test_a_link_that_leads_nowhere_is_a_plan_that_cannot_be_read(tmp_path: Path) -> None:
    place = tmp_path / ".gsd" / "plans" / "phase-1"
    place.mkdir(parents=True)
    (place / "plan.md").symlink_to("nowhere")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load_plan(find_plan(tmp_path, 1))


def test_a_state_without_a_phase_leaves_it_to_the_other(tmp_path: Path) -> None:
    for name in (".opti-gsd", ".gsd"):
        (tmp_path / name).mkdir()
    (tmp_path / ".opti-gsd" / "state.json").write_bytes(b'\xef\xbb\xbf{"milestone": "v1"}')
    (tmp_path / ".gsd" / "STATE.md").write_bytes(b"---\r\ncurrent_phase: 'a b' # now\r\n---\r\n")
    assert current_phase(tmp_path) == "a b"


@pytest.mark.parametrize("name", [".opti-gsd/state.json", ".gsd/STATE.md"])
def test_what_stands_in_the_place_of_a_state_is_refused_at_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(UsageError, match="not a regular file"):
        current_phase(tmp_path)
    path.unlink()
    path.write_bytes(b"\xff" * (5 << 20))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        current_phase(tmp_path)
    path.write_bytes(b"---\nphase: \xff\n---\n")
    if name.endswith("json"):
        with pytest.raises(UsageError, match="not valid JSON"):
            current_phase(tmp_path)
    else:
        assert current_phase(tmp_path) == "\N{REPLACEMENT CHARACTER}"

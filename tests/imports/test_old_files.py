"""Files of other tools are offered once, and what they said is kept when ours take their place."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

from tests.imports.test_importing import put
from tests.support.command_line import A, B, Here
from tests.support.foreign_files import STATE, STATE_MD, WORKFLOW


def test_whoever_starts_a_goal_is_not_told_of_the_views_of_our_own_loops(here: Here) -> None:
    here.gsd.mkdir(exist_ok=True)
    (here.gsd / "config.toml").write_text('views = ["state", "workflow-state"]\n')
    here.ok("start", "goal", "g", env=A)
    assert (here.root / ".loop/state.json").exists()
    assert here.ok("start", "goal", "h", "--json", env=B).json["notes"] == []


def test_what_was_imported_is_not_offered_again(here: Here) -> None:
    put(here, ".loop/state.json", json.dumps(STATE))
    here.ok("import", ".loop/state.json")
    here.ok("cancel")
    assert here.ok("start", "goal", "h", "--json").json["notes"] == []
    refused = here.refused(4, "import", ".loop/state.json").err
    assert "'import … --fresh' cancels it" in refused
    here.ok("import", ".loop/state.json", "--fresh")
    assert " cancel" in here.refused(4, "import", ".loop/state.json", env=A).err


def test_a_start_keeps_the_state_in_which_another_loop_runs(here: Here) -> None:
    put(here, ".gsd/STATE.md", STATE_MD)
    answer = here.ok("start", "goal", "g", "--json").json
    kept = f".gsd/STATE.md.before-{answer['loop']}"
    assert (here.root / kept).read_text() == STATE_MD
    (note,) = answer["notes"]
    assert note == (
        f".gsd/STATE.md showed a live loop of another tool; the file was saved as {kept}. "
        f"To take that loop over: gsd-fsm import {kept}"
    )
    here.ok("start", "goal", "g", "--fresh")
    assert len(list(here.gsd.glob("STATE.md*"))) == 2
    here.ok("cancel")
    assert here.ok("import", kept, "--json").json["format"] == "state-md"
    assert here.status()["task_retries"] == {"T02": 2, "T05": 1}


def test_an_import_keeps_what_it_does_not_carry(here: Here) -> None:
    text = STATE_MD.replace("  history:", "  my_notes: keep me\n  history:")
    put(here, ".gsd/STATE.md", text)
    loop = here.ok("import", ".gsd/STATE.md", "--json").json["loop"]
    assert "my_notes" not in (here.gsd / "STATE.md").read_text()
    assert (here.gsd / f"STATE.md.before-{loop}").read_text() == text


@pytest.mark.parametrize("command", [("start", "goal", "g"), ("import", ".gsd/STATE.md")])
def test_state_md_that_cannot_be_saved_is_not_replaced(
    here: Here, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    here.ok("start", "goal", "before")
    here.ok("cancel")
    put(here, ".gsd/STATE.md", STATE_MD)
    with monkeypatch.context() as patch:
        full = Mock(side_effect=OSError(28, "no space"))
        patch.setattr("gsd_fsm.core.views.write.sync", full)
        answer = here.ok(*command, "--json").json
    assert (here.gsd / "STATE.md").read_text() == STATE_MD
    assert list(here.gsd.glob("STATE.md.*")) == []
    here.ok("note", "the disk has room again")
    assert (here.gsd / f"STATE.md.before-{answer['loop']}").read_text() == STATE_MD
    assert (here.gsd / "STATE.md").read_text() != STATE_MD


def test_start_reports_state_md_that_cannot_be_saved(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here, ".gsd/STATE.md", STATE_MD)
    full = Mock(side_effect=OSError(28, "no space"))
    monkeypatch.setattr("gsd_fsm.core.views.write.sync", full)
    (note,) = here.ok("start", "goal", "g", "--json").json["notes"]
    assert "still shows a live loop of another tool: it cannot be replaced" in note


def test_criteria_of_an_imported_workflow_come_with_its_shape(here: Here) -> None:
    put(here, ".loop/workflow-state.json", json.dumps(WORKFLOW))
    put(here, ".loop/shape/SHAPE.md", "## Criteria\n- Validation is there\n")
    notes = here.ok("import", ".loop/workflow-state.json", "--json").json["notes"]
    (told,) = (note for note in notes if "SHAPE.md" in note)
    command = told.split("'")[1].replace("FILE", ".loop/shape/SHAPE.md")
    here.ok(*command.split()[1:])
    assert here.status()["last_unmet"] is None
    assert [c["name"] for c in here.status()["criteria"]] == ["Validation is there"]

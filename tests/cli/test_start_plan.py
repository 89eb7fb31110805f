"""start with a plan, and resume after the plan changed."""

from __future__ import annotations

import pytest

from tests.support.command_line import AGENT, Here, git
from tests.support.plan_loops import (
    PLAN,
    YOLO,
    ready,
    report,
    report_complete,
    start_plan,
    task_text,
    write_plan,
)


@pytest.fixture
def planned(here: Here) -> Here:
    return start_plan(here)


def test_start_freezes_plan_and_tasks_into_its_event(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    start = next(event for event in here.lines() if event["type"] == "start")["data"]
    assert start["phase"] == 1
    assert start["plan"] == {
        "file": ".gsd/plans/phase-1/plan.md",
        "digest": start["plan"]["digest"],
        "format": "markdown",
        "title": "Parts",
        "tasks": 4,
        "waves": 2,
        "sequential": [2],
    }
    assert start["tasks"][3] == {"id": "T04", "wave": 2, "title": "Write 04.", "depends": ["T01"]}


def test_start_prefers_opti_gsd_plan_of_the_phase_in_its_state(here: Here) -> None:
    write_plan(here, PLAN.replace("Parts", "Own"))
    write_plan(here, PLAN.replace("Parts", "Foreign"), ".opti-gsd/plans/phase-01/plan.json")
    (here.root / ".opti-gsd" / "state.json").write_text('{"phase": 1}')
    here.ok("start", "execute", "--mode", "yolo")
    assert here.lines()[1]["data"]["plan"]["title"] == "Foreign"


def test_start_without_project_state_or_plan_says_what_is_missing(here: Here) -> None:
    bare = here.refused(3, "start", "execute", "--phase", "1").err
    assert "Not Initialized" in bare
    assert "gsd-fsm init" in bare
    assert not here.gsd.exists()
    (here.root / ".opti-gsd").mkdir()
    assert "Project State Missing" in here.refused(3, "start", "execute", "--phase", "1").err
    assert "Project State Missing" in here.refused(3, "start", "execute").err
    (here.root / ".opti-gsd" / "state.json").write_text('{"phase": 2}')
    missing = here.refused(3, "start", "execute").err
    assert "Phase Not Planned: No plan found for phase 2" in missing
    assert "gsd-fsm start execute --plan FILE" in missing
    assert not here.gsd.exists()
    (here.root / ".opti-gsd" / "state.json").unlink()
    (here.root / ".opti-gsd").rmdir()
    (here.root / "mine.md").write_text(PLAN)
    here.ok("start", "execute", "--plan", "mine.md", "--mode", "yolo")


def test_start_without_phase_takes_the_one_in_progress_or_asks(here: Here) -> None:
    write_plan(here, PLAN, ".opti-gsd/plans/phase-1/plan.md")
    state = here.root / ".opti-gsd" / "state.json"
    for text in ('{"milestone": "v1"}', '{"phase": null}', '{"phase": 1.5}'):
        state.write_text(text)
        assert "no phase given" in here.refused(2, "start", "execute").err
    assert not here.gsd.exists()
    for text in ('{"phases_in_progress": [1]}', '{"phases": {"in_progress": [1]}}'):
        state.write_text(text)
        here.ok("start", "execute", "--fresh", "--mode", "yolo")
        assert here.status()["phase"] == 1


def test_start_with_broken_plan_names_its_line_and_starts_nothing(here: Here) -> None:
    path = write_plan(here, PLAN.replace('depends="01"', 'depends="77"'))
    answer = here.refused(2, *YOLO)
    line = path.read_text().splitlines().index('<task id="04" wave="2" depends="77">') + 1
    assert f"{path}:{line}: task T04 depends on T77" in answer.err
    assert not here.journal.exists()


def test_start_warns_if_roadmap_has_no_heading_for_the_phase(here: Here) -> None:
    write_plan(here)
    (here.gsd / "ROADMAP.md").write_text("## Phase 2: Others\n")
    answer = here.ok(*YOLO)
    assert "has no heading for phase 1" in answer.out + answer.err
    (here.gsd / "ROADMAP.md").write_text("## Phase 1: Parts\n")
    answer = here.ok(*YOLO, "--fresh")
    assert "heading" not in answer.out + answer.err


def test_start_with_a_thousand_tasks_records_all_and_offers_the_first_wave(here: Here) -> None:
    write_plan(here, "".join(task_text(f"{n:04d}", n // 20 + 1) for n in range(1000)))
    here.ok(*YOLO)
    assert len(here.status()["tasks"]) == 1000
    assert here.status()["max_iterations"] == 3000
    assert ready(here) == [f"T{n:04d}" for n in range(20)]
    types = [event["type"] for event in here.lines()]
    assert types.count("plan") >= 1


def test_start_creates_state_md_unless_disabled(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    assert "  type: execute\n" in (here.gsd / "STATE.md").read_text()
    here.ok("cancel")
    assert "  type: null\n" in (here.gsd / "STATE.md").read_text()
    (here.gsd / "STATE.md").unlink()
    (here.gsd / "config.toml").write_text("state_md = false\n")
    here.ok(*YOLO)
    assert not (here.gsd / "STATE.md").exists()


def test_changed_plan_pauses_until_the_user_resumes(planned: Here) -> None:
    path = write_plan(planned, PLAN.replace(task_text("02"), "") + task_text("05", 2))
    planned.refused(4, "next")
    answer = report(planned, "T01", "TASK COMPLETE")
    assert answer["status"] == "paused"
    status = planned.status()
    assert (status["pause_code"], status["tasks"][0]["status"]) == ("plan", "complete")
    refused = planned.refused(4, "resume", env=AGENT)
    assert "until the user sends a message" in refused.err
    planned.ok("resume")
    tasks = {it["id"]: it["status"] for it in planned.status()["tasks"]}
    assert tasks == {
        "T01": "complete", "T02": "skipped", "T03": "pending", "T04": "pending", "T05": "pending",
    }  # fmt: skip
    report_complete(planned, "T03", "T04", "T05")
    path.write_text(path.read_text())
    planned.ok("complete")


def test_resume_with_restored_plan_continues(planned: Here) -> None:
    path = write_plan(planned, PLAN + "\nmore\n")
    report(planned, "T01", "TASK COMPLETE")
    path.write_text(PLAN)
    planned.ok("resume")
    assert ready(planned) == ["T02"]


def test_resume_with_missing_plan_says_how_to_restore_it(planned: Here) -> None:
    path = planned.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    path.unlink()
    report(planned, "T01", "TASK COMPLETE")
    assert (
        planned.status()["pause_reason"]
        == ".gsd/plans/phase-1/plan.md is missing; restore it, then resume"
    )
    refused = planned.refused(4, "resume")
    assert "git checkout -- .gsd/plans/phase-1/plan.md" in refused.err
    assert "cancel" in refused.err
    write_plan(planned)
    planned.ok("resume")
    assert ready(planned) == ["T02"]


def test_resume_names_tasks_whose_commits_are_missing(repository: Here) -> None:
    write_plan(repository)
    repository.ok(*YOLO)
    (repository.root / "01.py").write_text("x")
    git(repository.root, "add", "01.py")
    git(repository.root, "commit", "-qm", "by the agent")
    assert report(repository, "T01", "TASK COMPLETE")["commit"]
    assert repository.ok("resume", "--json").json["missing_commits"] == []
    git(repository.root, "reset", "-q", "--hard", "HEAD~1")
    assert repository.ok("resume", "--json").json["missing_commits"] == ["T01"]
    assert "No longer on this branch: the commits of T01" in repository.ok("resume").out

"""Loops that follow a plan: how they begin, what can start, and how a changed plan is noticed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.plans.test_load import task
from tests.support.command_line import AGENT, Here, git

YOLO = ("start", "execute", "--phase", "1", "--mode", "yolo")
SEQUENTIAL = "## Wave 2 (Sequential)\n"
PLAN = (
    "---\nphase: 1\ntitle: Parts\n---\n"
    + task("01")
    + task("02")
    + SEQUENTIAL
    + task("03", 2)
    + task("04", 2, "01")
)


def write_plan(here: Here, text: str = PLAN, where: str = ".gsd/plans/phase-1/plan.md") -> Path:
    path = here.root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def ready(here: Here) -> list[str]:
    return [item["id"] for item in here.ok("next", "--json").json["tasks"]]


def say(here: Here, name: str, words: str, code: int = 0, **how: Any) -> Any:
    answer = here.run("report", name, "--json", stdin=words.encode(), **how)
    assert answer.code == code, answer
    return answer.json


def done(here: Here, *names: str) -> None:
    for name in names:
        say(here, name, "TASK COMPLETE\n")


@pytest.fixture
def planned(here: Here) -> Here:
    write_plan(here)
    here.ok(*YOLO)
    return here


def test_a_plan_is_frozen_into_the_start_of_its_loop(here: Here) -> None:
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


def test_a_phase_of_the_foreign_directory_is_preferred_and_its_state_names_it(here: Here) -> None:
    write_plan(here, PLAN.replace("Parts", "Own"))
    write_plan(here, PLAN.replace("Parts", "Foreign"), ".opti-gsd/plans/phase-01/plan.json")
    (here.root / ".opti-gsd" / "state.json").write_text('{"phase": 1}')
    here.ok("start", "execute", "--mode", "yolo")
    assert here.lines()[1]["data"]["plan"]["title"] == "Foreign"


def test_what_must_be_there_first_is_told_with_our_commands(here: Here) -> None:
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


def test_a_broken_plan_starts_nothing(here: Here) -> None:
    path = write_plan(here, PLAN.replace('depends="01"', 'depends="77"'))
    answer = here.refused(2, *YOLO)
    line = path.read_text().splitlines().index('<task id="04" wave="2" depends="77">') + 1
    assert f"{path}:{line}: task 04 depends on 77" in answer.err
    assert not here.journal.exists()


def test_a_wave_is_offered_as_a_whole_and_a_sequential_one_task_by_task(planned: Here) -> None:
    assert ready(planned) == ["T01", "T02"]
    done(planned, "T01")
    assert ready(planned) == ["T02"]
    done(planned, "02")
    assert ready(planned) == ["T03"]
    planned.ok("task", "T03", "running")
    assert ready(planned) == []
    done(planned, "T03")
    assert ready(planned) == ["T04"]
    assert planned.status()["wave"] == 2


def test_start_reports_a_roadmap_that_does_not_name_the_phase(here: Here) -> None:
    write_plan(here)
    (here.gsd / "ROADMAP.md").write_text("## Phase 2: Others\n")
    answer = here.ok(*YOLO)
    assert "has no heading for phase 1" in answer.out + answer.err
    (here.gsd / "ROADMAP.md").write_text("## Phase 1: Parts\n")
    answer = here.ok(*YOLO, "--fresh")
    assert "heading" not in answer.out + answer.err


def test_next_is_idempotent_changes_nothing_and_names_what_a_spawn_needs(planned: Here) -> None:
    before = planned.journal.read_bytes()
    one, two = planned.ok("next", "--json").out, planned.ok("next", "--json").out
    assert one == two
    assert planned.journal.read_bytes() == before
    item = json.loads(one)["tasks"][1]
    loop = json.loads(one)["loop"]
    assert item["description"] == "P1 T02: Write 02."
    assert (item["subagent_type"], item["background"]) == ("gsd-fsm:executor", True)
    assert item["prompt"].strip() == planned.ok("next", "T02").out.strip()
    assert '<task id="02">' in item["prompt"]
    assert item["report"] == f"gsd-fsm --loop {loop} report T02"
    assert "P1 T02: Write 02." in planned.ok("next").out


def test_each_attempt_has_a_prompt_of_its_own(planned: Here) -> None:
    prompts = [planned.ok("next", "T01").out]
    for error in ("one", "two", "three"):
        say(planned, "T01", f"TASK FAILED: {error}\nRoot cause: because of {error}\n")
        prompts.append(planned.ok("next", "T01").out)
    assert len(set(prompts)) == 4
    assert "<previous_attempt>" not in prompts[0]
    for error in ("one", "two", "three"):
        assert error in prompts[3]
    assert "3 of 3" in prompts[3]
    other = planned.ok("next", "T02").out
    assert "<previous_attempt>" not in other
    assert "because of" not in other


def test_background_work_is_tracked_and_listed_after_an_interruption(planned: Here) -> None:
    planned.ok("task", "T01", "running", "--ref", "bg-1")
    planned.ok("task", "T02", "running", "--ref", "bg-2")
    assert planned.status()["background_tasks"][0]["task_id"] == "bg-1"
    assert re.search(r"T01 running.*\n.*T02 running", planned.ok("status").out)
    done(planned, "T02")
    assert [task["task_num"] for task in planned.status()["background_tasks"]] == ["T01"]
    answer = planned.ok("resume", "--json").json
    assert answer["running"] == [{"task": "T01", "ref": "bg-1", "phase": None}]
    assert "Task T01 (bg-1) was running" in planned.ok("resume").out
    assert planned.ok("next", "--json").json["running"][0]["ref"] == "bg-1"


def test_resume_verifies_the_commits_of_what_was_done(repository: Here) -> None:
    write_plan(repository)
    repository.ok(*YOLO)
    (repository.root / "01.py").write_text("x")
    git(repository.root, "add", "01.py")
    git(repository.root, "commit", "-qm", "by the agent")
    assert say(repository, "T01", "TASK COMPLETE")["commit"]
    assert repository.ok("resume", "--json").json["missing_commits"] == []
    git(repository.root, "reset", "-q", "--hard", "HEAD~1")
    assert repository.ok("resume", "--json").json["missing_commits"] == ["T01"]
    assert "No longer on this branch: the commits of T01" in repository.ok("resume").out


def test_a_plan_edited_later_is_noticed_and_only_a_human_accepts_it(planned: Here) -> None:
    path = write_plan(planned, PLAN.replace(task("02"), "") + task("05", 2))
    planned.refused(4, "next")
    answer = say(planned, "T01", "TASK COMPLETE")
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
    done(planned, "T03", "T04", "T05")
    path.write_text(path.read_text())
    planned.ok("complete")


def test_a_plan_that_is_as_it_was_again_is_no_change(planned: Here) -> None:
    path = write_plan(planned, PLAN + "\nmore\n")
    say(planned, "T01", "TASK COMPLETE")
    path.write_text(PLAN)
    planned.ok("resume")
    assert ready(planned) == ["T02"]


def test_a_thousand_tasks_in_fifty_waves_are_journalled_and_offered(here: Here) -> None:
    write_plan(here, "".join(task(f"{n:04d}", n // 20 + 1) for n in range(1000)))
    here.ok(*YOLO)
    assert len(here.status()["tasks"]) == 1000
    assert here.status()["max_iterations"] == 3000
    assert ready(here) == [f"T{n:04d}" for n in range(20)]
    types = [event["type"] for event in here.lines()]
    assert types.count("plan") >= 1


def test_an_unknown_task_or_one_that_is_done_has_no_prompt(planned: Here) -> None:
    assert "Open: T01" in planned.refused(2, "next", "T99").err
    done(planned, "T01")
    planned.refused(4, "next", "T01")
    planned.ok("cancel")
    planned.ok("start", "goal", "g")
    assert "follows no plan" in planned.refused(2, "next", "T01").err


def test_the_view_is_made_for_planned_loops_and_can_be_switched_off(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    assert "  type: execute\n" in (here.gsd / "STATE.md").read_text()
    here.ok("cancel")
    assert "  type: null\n" in (here.gsd / "STATE.md").read_text()
    (here.gsd / "STATE.md").unlink()
    (here.gsd / "config.toml").write_text("state_md = false\n")
    here.ok(*YOLO)
    assert not (here.gsd / "STATE.md").exists()

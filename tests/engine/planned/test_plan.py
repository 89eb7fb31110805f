"""Rules of loops that follow a plan, by the commands that a user runs."""

from __future__ import annotations

import hashlib
from typing import Any

import yaml

from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import Here, without_loop
from tests.support.events import append, draft, new_journal, start_draft
from tests.support.plan_loops import (
    PLAN,
    YOLO,
    report,
    report_complete,
    start_plan,
    task_text,
    write_plan,
)
from tests.support.repositories import git


def section(here: Here) -> Any:
    """Return the loop section of STATE.md."""
    return yaml.safe_load((here.gsd / "STATE.md").read_text().split("---\n")[1])["loop"]


def test_state_md_shows_a_failing_task_until_the_phase_ends(here: Here) -> None:
    start_plan(here)
    for number in range(4):
        report(here, "T01", f"TASK FAILED: error {number}")
        view = section(here)
        assert (view["type"], view["phase"], view["iteration"]) == ("execute", 1, 0)
        assert view["task_retries"]["T01"] == min(number + 1, 3)
        assert view["last_error"] == f"error {number}"
        assert (view["active"], view["paused"]) == (number < 3, number == 3)
    assert view["pause_reason"] == "Task T01 failed after 3 retries"
    here.ok("resume", "--add-retries", "1")
    report_complete(here, "T01", "T02", "T03", "T04")
    here.ok("complete")
    assert (section(here)["active"], section(here)["task_retries"]) == (False, {})


def test_retry_limit_is_three_unless_a_settings_file_changes_it(here: Here) -> None:
    write_plan(here)
    limits = []
    for name, text in (
        (".gsd/plans/none", ""),
        (".gsd/config.md", "loop:\n  execute_max_retries: 5\n"),
        (".opti-gsd/config.json", '{"loop": {"execute_max_retries": 2}}'),
    ):
        (here.root / name).parent.mkdir(exist_ok=True)
        (here.root / name).write_text(text)
        here.ok(*YOLO, "--plan", ".gsd/plans/phase-1/plan.md", "--fresh")
        start = [event for event in here.lines() if event["type"] == "start"][-1]
        limits.append(start["data"]["limits"]["max_retries"])
    assert limits == [3, 5, 2]


def test_verify_loop_fixes_each_gap_in_a_commit_of_its_own(repository: Here) -> None:
    write_plan(repository)
    (repository.gsd / "config.toml").write_text("commit = true\n")
    repository.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    assert repository.run("verify").code == 7
    assert section(repository)["gaps_remaining"] == 4
    for number, gap in enumerate(repository.ok("next", "--json").json["tasks"], 1):
        assert gap["description"].startswith(f"P1 G{number}: ")
        assert '<gap type="stub" iteration="1/20">' in gap["prompt"]
        (repository.root / f"0{number}.py").write_text("x")
        report(repository, f"G{number}", "TASK COMPLETE")
    assert git(repository.root, "log", "-4", "--reverse", "--format=%s").split("\n") == [
        f"fix(1-G{n}): T0{n}: 0{n}.py exists" for n in (1, 2, 3, 4)
    ]
    assert repository.ok("verify", "--json").json["status"] == "completed"
    assert (section(repository)["active"], section(repository)["gaps_remaining"]) == (False, 0)


def test_loop_that_froze_unknown_words_finishes_but_no_other_plan_may_have_them(here: Here) -> None:
    odd = task_text("01").replace('type="file"', 'type="visual"').replace("create", "creates")
    place = ".gsd/plans/phase-1/plan.md"
    digest = hashlib.sha256(odd.encode()).hexdigest()[:16]
    frozen = {"file": place, "digest": digest, "tasks": 1, "waves": 1}
    append(new_journal(here.gsd), start_draft(tasks=[{"id": "T01", "wave": 1}], plan=frozen))
    write_plan(here, odd)
    assert '<check type="manual">01.py exists</check>' in here.ok("next", "T01").out
    for command in (("plan", "check"), ("start", "verify", "--phase", "1", "--fresh")):
        assert f"{place}:4: unknown check type 'visual'" in here.refused(2, *command).err
    write_plan(here, odd + "\n")
    report(here, "T01", "TASK COMPLETE")
    assert f"{place}:4: unknown check type 'visual'" in here.refused(2, "resume").err
    write_plan(here, odd)
    here.ok("resume")
    here.ok("complete")


def test_next_names_the_command_of_a_prompt_instead_of_the_prompt(here: Here) -> None:
    long = PLAN.replace("Write 01.", "Write 01.\n" + "A long story. " * 2_000)
    start_plan(here, plan=long)
    output = here.ok("next").out
    assert "next T01" in without_loop(output)
    assert len(output) < 1_000
    assert len(here.ok("next", "T01").out) > 20_000


def test_loop_that_lacks_tasks_of_its_plan_cannot_complete(here: Here) -> None:
    start_plan(here)
    more = draft("plan", here.status()["loop"], "cli", {"count": 5})  # and then it was killed
    append(Journal(str(here.gsd)), more)
    report_complete(here, "T01", "T02", "T03", "T04")
    assert "only 4 of the 5 tasks of the plan are recorded" in here.refused(4, "complete").err

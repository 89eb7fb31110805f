"""What only a human decides stays with the human, and no decision leads into a dead end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.test_planned import PLAN, YOLO, done, ready, say, write_plan
from tests.cli.test_waves import VERIFY
from tests.plans.test_load import task
from tests.support.command_line import AGENT, Here, git

ASKS = ("start", "execute", "--phase", "1")


@pytest.fixture
def asked(here: Here) -> Here:
    """An interactive loop whose first wave may begin."""
    write_plan(here)
    here.ok(*ASKS)
    here.ok("answer", "y")
    return here


def test_a_human_who_resumes_after_a_failure_wants_it_tried_again(asked: Here) -> None:
    asked.ok("task", "T01", "running")
    asked.ok("fail", "T01", "--class", "blocking", "--error", "no key")
    asked.ok("resume")
    assert ready(asked) == ["T01", "T02"]
    asked.ok("task", "T01", "running")


def test_an_agent_that_resumes_after_a_failure_asks_before_it_tries_again(asked: Here) -> None:
    asked.ok("task", "T01", "running", env=AGENT)
    asked.ok("fail", "T01", "--class", "blocking", "--error", "no key", env=AGENT)
    asked.ok("resume", env=AGENT)
    status = asked.status()
    assert status["status"] == "waiting"
    asked.ok("answer", "y")
    assert ready(asked) == ["T01", "T02"]


def test_exhausted_retries_go_on_with_more_of_them(asked: Here) -> None:
    for _ in range(4):
        say(asked, "T01", "TASK FAILED: bad")
        asked.run("answer", "y")
    asked.ok("resume", "--add-retries", "1")
    assert "T01" in ready(asked)


def test_an_agent_cannot_overrule_a_no(asked: Here) -> None:
    say(asked, "T01", "TASK FAILED: bad", env=AGENT)
    asked.ok("answer", "n")
    assert "against a no" in asked.refused(4, "resume", env=AGENT).err
    asked.ok("resume")
    assert "T01" in ready(asked)


def test_an_agent_does_not_get_past_a_checkpoint_while_another_task_runs(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    here.ok("iterate", env=AGENT)
    here.ok("task", "T01", "running", env=AGENT)
    here.ok("task", "T02", "running", env=AGENT)
    assert say(here, "T01", "CHECKPOINT: drop the database?", env=AGENT)["status"] == "running"
    here.refused(4, "report", "T01", stdin=b"TASK COMPLETE", env=AGENT)
    here.refused(4, "task", "T01", "complete", env=AGENT)
    here.refused(4, "task", "T01", "running", env=AGENT)
    here.refused(4, "fail", "T01", "--error", "x", env=AGENT)
    assert "Finish task T02" in here.ok("next").out
    assert say(here, "T02", "TASK COMPLETE", env=AGENT)["status"] == "waiting"
    here.ok("answer", "no")
    assert ready(here) == ["T01"]


def test_a_sequential_wave_takes_its_tasks_in_the_order_in_which_they_can_be_done(
    here: Here,
) -> None:
    write_plan(here, "## Wave 1 (Sequential)\n" + task("02", 1, "01") + task("01"))
    here.ok(*YOLO)
    assert ready(here) == ["T01"]
    done(here, "T01", "T02")
    here.ok("complete")


def test_the_fix_question_cannot_be_put_off_by_work_that_nobody_asked_for(here: Here) -> None:
    write_plan(here, VERIFY)
    here.ok("start", "verify", "--phase", "1")
    assert "has no gap X" in here.refused(4, "task", "X", "running").err
    assert here.run("verify").code == 7
    assert here.status()["status"] == "waiting"
    here.ok("answer", "y")
    here.ok("task", "G1", "running")
    (here.root / "01.py").touch()
    (here.root / "02.py").touch()
    here.ok("verify")
    assert here.status()["status"] == "completed"


def test_a_fix_at_a_checkpoint_waits_for_its_answer(here: Here) -> None:
    write_plan(here, VERIFY)
    here.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    here.run("verify")
    here.ok("task", "G2", "running")
    say(here, "G1", "CHECKPOINT: delete data?")
    here.refused(4, "report", "G1", stdin=b"TASK COMPLETE")
    assert [it["id"] for it in here.ok("next", "--json").json["tasks"]] == []


def test_answer_with_branch_without_plan_leaves_it_and_pauses(repository: Here) -> None:
    here = repository
    write_plan(here, PLAN, ".opti-gsd/plans/phase-1/plan.md")
    (here.root / ".opti-gsd" / "state.json").write_text('{"milestone": "v1", "phase": 1}')
    git(here.root, "branch", "-M", "master")
    git(here.root, "branch", "gsd/v1")
    git(here.root, "add", ".opti-gsd")
    git(here.root, "commit", "-qm", "plan")
    here.gsd.mkdir()
    (here.gsd / "config.toml").write_text('branching = "milestone"\n')
    here.refused(3, *YOLO)
    here.ok(*ASKS)
    told = here.ok("answer", "y").out
    assert "gsd/v1 cannot be used: it does not have .opti-gsd/plans/phase-1/plan.md" in told
    assert (here.root / ".opti-gsd" / "plans").is_dir()
    assert here.status()["pause_code"] == "blocking"
    (here.gsd / "config.toml").write_text('branching = "none"\n')
    here.ok("resume")
    assert here.status()["status"] == "waiting"


def test_a_changed_locked_file_makes_a_claim_of_success_a_failure(here: Here) -> None:
    text = task("01").replace('wave="1"', 'wave="1" test_required="true"')
    write_plan(here, text.replace("</files>", "</files><test_files><file>t.sh</file></test_files>"))
    (here.gsd / "config.toml").write_text('ci_test = "sh t.sh"\n')
    here.ok(*YOLO)
    here.ok("tdd", "T01")
    (here.root / "t.sh").write_text("exit 1\n")
    here.ok("tdd", "T01", "--run")
    (here.root / "t.sh").write_text("exit 0 # cheat\n")
    answer: dict[str, Any] = say(here, "T01", "TASK COMPLETE")
    assert (answer["verdict"], answer["status"]) == ("failed", "retrying")
    assert "locked files were changed: t.sh" in json.dumps(here.lines()[-1]["data"])


def test_no_agent_rolls_back_under_a_loop_by_naming_another_phase(repository: Here) -> None:
    here = repository
    write_plan(here)
    here.ok(*YOLO)
    git(here.root, "tag", "gsd/checkpoint/phase-2/pre")
    git(here.root, "commit", "-q", "--allow-empty", "-m", "more")
    here.ok("iterate", env=AGENT)
    for path in (here.gsd / ".gitignore", here.gsd / "plans"):
        git(here.root, "add", str(path))
    git(here.root, "commit", "-qm", "plan")
    here.refused(4, "rollback", "gsd/checkpoint/phase-2/pre", "--yes", env=AGENT)


def test_a_fix_that_failed_is_no_longer_owed_once_its_gap_is_closed(here: Here) -> None:
    write_plan(here, VERIFY)
    here.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    here.run("verify")
    say(here, "G1", "TASK FAILED: not yet")
    assert "Fix gap G1" in here.ok("next").out
    (here.root / "01.py").touch()
    assert here.run("verify").code == 7
    assert "Fix gap G2" in here.ok("next").out
    (here.root / "02.py").touch()
    here.ok("verify")
    assert here.status()["status"] == "completed"

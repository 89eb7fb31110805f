"""start, answer, mode and resume: the branch of a planned loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import AGENT, Here, send_prompt
from tests.support.plan_loops import (
    INTERACTIVE,
    PLAN,
    START_QUESTION,
    YOLO,
    open_question,
    questions,
    ready,
    report_complete,
    write_plan,
)
from tests.support.repositories import git

SETTINGS = 'branching = "milestone"\nbase_branch = "main"\n'
QUESTION = "You're on main but milestone m1 exists. Switch to gsd/m1? [Y/n]"
WHO = ("-c", "user.name=T", "-c", "user.email=t@example.org")
PLACE = ".opti-gsd/plans/phase-1/plan.md"


@pytest.fixture
def milestone(repository: Here) -> Here:
    """Return a project on its base branch, whose milestone branch does not exist yet."""
    git(repository.root, "branch", "-M", "main")
    repository.gsd.mkdir()
    (repository.gsd / "config.toml").write_text(SETTINGS)
    write_plan(repository, where=PLACE)
    write_state(repository, '{"phase": 1, "milestone": "m1"}')
    return repository


@pytest.fixture
def blocked(milestone: Here) -> Here:
    """Return the project with a local change that keeps git from switching."""
    code = milestone.root / "code.py"
    git(milestone.root, "checkout", "-qb", "gsd/m1")
    commit(milestone, code, "of the milestone\n")
    git(milestone.root, "checkout", "-q", "main")
    code.write_text("not committed\n")
    return milestone


def write_state(here: Here, text: str) -> None:
    (here.root / ".opti-gsd" / "state.json").write_text(text)


def branch(here: Here) -> str:
    return git(here.root, "branch", "--show-current")


def commit(here: Here, path: Path, text: str) -> None:
    path.write_text(text)
    git(here.root, "add", "-f", str(path))
    git(here.root, *WHO, "commit", "-qm", path.name)


def test_start_on_base_branch_without_milestone_is_refused(milestone: Here) -> None:
    write_state(milestone, '{"phase": 1}')
    for command in (YOLO, INTERACTIVE):
        answer = milestone.refused(4, *command)
        assert "No Milestone Active: You're on main with branching: milestone" in answer.err
        assert "git checkout -b gsd/NAME" in answer.err
    assert not milestone.journal.exists()
    assert git(milestone.root, "branch", "--format=%(refname:short)") == "main"
    assert git(milestone.root, "tag") == ""


def test_start_without_base_branch_setting_uses_master(milestone: Here) -> None:
    (milestone.gsd / "config.toml").write_text('branching = "milestone"\n')
    git(milestone.root, "checkout", "-q", "-b", "master")
    question = milestone.ok(*INTERACTIVE).out
    assert "You're on master but milestone m1 exists. Switch to gsd/m1? [Y/n]" in question
    milestone.ok("cancel")
    git(milestone.root, "checkout", "-q", "main")
    assert START_QUESTION in milestone.ok(*INTERACTIVE).out


@pytest.mark.parametrize("exists", [True, False])
def test_answer_yes_switches_branch_and_asks_to_start(milestone: Here, exists: bool) -> None:
    if exists:
        git(milestone.root, "branch", "gsd/m1")
    assert QUESTION in milestone.ok(*INTERACTIVE).out
    assert branch(milestone) == "main"
    told = milestone.ok("answer", "y").out
    assert "Switched to gsd/m1." in told
    assert START_QUESTION in told
    assert branch(milestone) == "gsd/m1"
    milestone.ok("answer", "y")
    assert questions(milestone) == [QUESTION, START_QUESTION]
    assert ready(milestone) == ["T01", "T02"]


def test_answer_no_stays_on_base_branch_and_says_so(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    told = milestone.ok("answer", "n").out
    assert "Continuing on main. Changes will be on base branch." in told
    assert branch(milestone) == "main"
    assert open_question(milestone) == START_QUESTION
    assert git(milestone.root, "branch", "--list", "gsd/*") == ""


@pytest.mark.parametrize("exists", [True, False])
def test_start_in_yolo_mode_switches_branch(milestone: Here, exists: bool) -> None:
    if exists:
        git(milestone.root, "branch", "gsd/m1")
    assert "Switched to branch gsd/m1." in milestone.ok(*YOLO).out
    assert branch(milestone) == "gsd/m1"
    assert questions(milestone) == []


def test_answer_by_agent_switches_no_branch_until_the_user_sends_a_message(milestone: Here) -> None:
    loop = milestone.start(*INTERACTIVE[1:])
    for command in (("answer", "y"), ("mode", "yolo")):
        milestone.refused(4, *command, env=AGENT)
        assert branch(milestone) == "main"
    send_prompt(milestone, loop)
    milestone.ok("answer", "y", env=AGENT)
    assert branch(milestone) == "gsd/m1"


def test_answer_yes_takes_the_plan_of_the_milestone_branch(milestone: Here) -> None:
    path = milestone.root / PLACE
    commit(milestone, path, PLAN)
    git(milestone.root, "checkout", "-qb", "gsd/m1")
    commit(milestone, path, PLAN.replace("Parts", "Other parts"))
    git(milestone.root, "checkout", "-q", "main")
    milestone.ok(*INTERACTIVE)
    assert "Phase 1: Other parts" in milestone.ok("answer", "y").out


def test_answer_with_refused_switch_pauses_and_resume_tries_again(blocked: Here) -> None:
    blocked.ok(*INTERACTIVE)
    told = blocked.ok("answer", "y").out
    assert "Branch gsd/m1 cannot be used: git refused" in told
    state = blocked.status()
    assert (state["status"], state["pause_code"]) == ("paused", "blocking")
    assert "branch gsd/m1 cannot be used: git refused" in state["pause_reason"]
    code = blocked.root / "code.py"
    assert (branch(blocked), code.read_text()) == ("main", "not committed\n")
    assert "cannot be used" in blocked.ok("resume").out
    assert blocked.status()["status"] == "paused"
    git(blocked.root, "checkout", "-q", "code.py")
    assert "Switched to gsd/m1." in blocked.ok("resume").out
    assert branch(blocked) == "gsd/m1"
    assert open_question(blocked) == START_QUESTION


def test_start_yolo_pauses_and_exits_4_if_git_refuses_the_switch(blocked: Here) -> None:
    answer = blocked.run(*YOLO)
    status = blocked.status()
    assert answer.code == 4
    assert f"loop {status['loop']} was started and is now paused (blocking): " in answer.err
    assert "branch gsd/m1 cannot be used: git refused: error: Your local changes" in answer.err
    assert f"Fix the cause, then run: gsd-fsm --loop {status['loop']} resume" in answer.err
    assert (status["status"], status["pause_code"]) == ("paused", "blocking")
    assert (branch(blocked), (blocked.root / "code.py").read_text()) == ("main", "not committed\n")


def test_start_refused_by_a_live_loop_switches_no_branch(milestone: Here) -> None:
    git(milestone.root, "checkout", "-qb", "feature")
    milestone.ok(*YOLO)
    git(milestone.root, "checkout", "-q", "main")
    milestone.refused(4, *YOLO)
    assert branch(milestone) == "main"


def test_resume_does_not_answer_the_branch_question(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    milestone.ok("resume")
    assert open_question(milestone) == QUESTION
    milestone.ok("answer", "y")
    assert branch(milestone) == "gsd/m1"


def test_mode_yolo_of_paused_loop_switches_no_branch(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    milestone.ok("pause")
    milestone.refused(4, "answer", "y")
    milestone.ok("mode", "yolo")
    assert branch(milestone) == "main"


def test_planned_loop_without_git_ignores_branching(here: Here, tmp_path: Path) -> None:
    here.gsd.mkdir()
    (here.gsd / "config.toml").write_text(SETTINGS)
    write_plan(here)
    here.ok(*INTERACTIVE)
    here.ok("answer", "y")
    here.patch.setenv("PATH", str(tmp_path))
    report_complete(here, "T01", "T02")
    here.ok("answer", "y")
    report_complete(here, "T03", "T04")
    here.ok("complete")


def test_answer_with_branch_without_plan_leaves_it_and_pauses(repository: Here) -> None:
    here = repository
    write_plan(here, PLAN, ".opti-gsd/plans/phase-1/plan.md")
    (here.root / ".opti-gsd" / "state.json").write_text('{"milestone": "v1", "phase": 1}')
    git(here.root, "branch", "-M", "master")
    git(here.root, "branch", "gsd/v1")
    git(here.root, "add", ".opti-gsd")
    git(here.root, *WHO, "commit", "-qm", "plan")
    here.gsd.mkdir()
    (here.gsd / "config.toml").write_text('branching = "milestone"\n')
    here.refused(3, *YOLO)
    here.ok(*INTERACTIVE)
    told = here.ok("answer", "y").out
    assert "gsd/v1 cannot be used: it does not have .opti-gsd/plans/phase-1/plan.md" in told
    assert (here.root / ".opti-gsd" / "plans").is_dir()
    assert here.status()["pause_code"] == "blocking"
    (here.gsd / "config.toml").write_text('branching = "none"\n')
    here.ok("resume")
    assert here.status()["status"] == "waiting"

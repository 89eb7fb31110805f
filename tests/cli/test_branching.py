"""On which branch a planned loop begins: told, asked, switched, and left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_agents import prompt
from tests.cli.test_decisions import START, asked, question
from tests.cli.test_planned import PLAN, YOLO, done, ready, write_plan
from tests.support.command_line import AGENT, Here
from tests.support.repositories import git

SETTINGS = 'branching = "milestone"\nbase_branch = "main"\n'
ASKS = "You're on main but milestone m1 exists. Switch to gsd/m1? [Y/n]"
INTERACTIVE = (*YOLO[:-1], "interactive")
WHERE = ".opti-gsd/plans/phase-1/plan.md"


@pytest.fixture
def milestone(repository: Here) -> Here:
    """A project on its base branch, whose milestone has a branch that does not exist yet."""
    git(repository.root, "branch", "-M", "main")
    repository.gsd.mkdir()
    (repository.gsd / "config.toml").write_text(SETTINGS)
    write_plan(repository, where=WHERE)
    state(repository, '{"phase": 1, "milestone": "m1"}')
    return repository


def state(here: Here, text: str) -> None:
    (here.root / ".opti-gsd" / "state.json").write_text(text)


def branch(here: Here) -> str:
    return git(here.root, "branch", "--show-current")


def test_without_a_milestone_nothing_is_made(milestone: Here) -> None:
    state(milestone, '{"phase": 1}')
    for command in (YOLO, INTERACTIVE):
        answer = milestone.refused(4, *command)
        assert "No Milestone Active: You're on main with branching: milestone" in answer.err
        assert "git checkout -b gsd/NAME" in answer.err
    assert not milestone.journal.exists()
    assert git(milestone.root, "branch", "--format=%(refname:short)") == "main"
    assert git(milestone.root, "tag") == ""


def test_start_without_a_base_branch_setting_takes_master_for_it(milestone: Here) -> None:
    (milestone.gsd / "config.toml").write_text('branching = "milestone"\n')
    git(milestone.root, "checkout", "-q", "-b", "master")
    asked = milestone.ok(*INTERACTIVE).out
    assert "You're on master but milestone m1 exists. Switch to gsd/m1? [Y/n]" in asked
    milestone.ok("cancel")
    git(milestone.root, "checkout", "-q", "main")
    assert START in milestone.ok(*INTERACTIVE).out


@pytest.mark.parametrize("exists", [True, False])
def test_a_yes_switches_and_then_the_start_is_asked(milestone: Here, exists: bool) -> None:
    if exists:
        git(milestone.root, "branch", "gsd/m1")
    assert ASKS in milestone.ok(*INTERACTIVE).out
    assert branch(milestone) == "main"
    told = milestone.ok("answer", "y").out
    assert "Switched to gsd/m1." in told
    assert START in told
    assert branch(milestone) == "gsd/m1"
    milestone.ok("answer", "y")
    assert asked(milestone) == [ASKS, START]
    assert ready(milestone) == ["T01", "T02"]


def test_a_no_stays_and_says_so(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    told = milestone.ok("answer", "n").out
    assert "Continuing on main. Changes will be on base branch." in told
    assert branch(milestone) == "main"
    assert question(milestone) == START
    assert git(milestone.root, "branch", "--list", "gsd/*") == ""


@pytest.mark.parametrize("exists", [True, False])
def test_yolo_switches_by_itself(milestone: Here, exists: bool) -> None:
    if exists:
        git(milestone.root, "branch", "gsd/m1")
    assert "Switched to branch gsd/m1." in milestone.ok(*YOLO).out
    assert branch(milestone) == "gsd/m1"
    assert asked(milestone) == []


def test_whoever_switches_to_yolo_switches_the_branch(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    assert "Switched to gsd/m1." in milestone.ok("mode", "yolo").out
    assert branch(milestone) == "gsd/m1"
    assert question(milestone) is None
    assert ready(milestone) == ["T01", "T02"]


def test_an_agent_switches_nothing_before_a_human_has_spoken(milestone: Here) -> None:
    loop = milestone.start(*INTERACTIVE[1:])
    for command in (("answer", "y"), ("mode", "yolo")):
        milestone.refused(4, *command, env=AGENT)
        assert branch(milestone) == "main"
    prompt(milestone, loop)
    milestone.ok("answer", "y", env=AGENT)
    assert branch(milestone) == "gsd/m1"


def test_on_another_branch_nothing_is_asked(milestone: Here) -> None:
    git(milestone.root, "checkout", "-qb", "feature")
    milestone.ok(*INTERACTIVE)
    assert asked(milestone) == [START]
    assert branch(milestone) == "feature"


def test_the_plan_of_the_milestone_is_taken(milestone: Here) -> None:
    path = milestone.root / WHERE
    _commit(milestone, path, PLAN)
    git(milestone.root, "checkout", "-qb", "gsd/m1")
    _commit(milestone, path, PLAN.replace("Parts", "Other parts"))
    git(milestone.root, "checkout", "-q", "main")
    milestone.ok(*INTERACTIVE)
    assert "Phase 1: Other parts" in milestone.ok("answer", "y").out


def test_answer_with_refused_switch_pauses_and_resume_tries_again(milestone: Here) -> None:
    code = milestone.root / "code.py"
    git(milestone.root, "checkout", "-qb", "gsd/m1")
    _commit(milestone, code, "of the milestone\n")
    git(milestone.root, "checkout", "-q", "main")
    code.write_text("not committed\n")
    milestone.ok(*INTERACTIVE)
    told = milestone.ok("answer", "y").out
    assert "Branch gsd/m1 cannot be used: git refused" in told
    state = milestone.status()
    assert (state["status"], state["pause_code"]) == ("paused", "blocking")
    assert "branch gsd/m1 cannot be used: git refused" in state["pause_reason"]
    assert (branch(milestone), code.read_text()) == ("main", "not committed\n")
    assert "cannot be used" in milestone.ok("resume").out
    assert milestone.status()["status"] == "paused"
    git(milestone.root, "checkout", "-q", "code.py")
    assert "Switched to gsd/m1." in milestone.ok("resume").out
    assert branch(milestone) == "gsd/m1"
    assert question(milestone) == START


def test_start_yolo_pauses_and_exits_4_if_git_refuses_the_switch(milestone: Here) -> None:
    code = milestone.root / "code.py"
    git(milestone.root, "checkout", "-qb", "gsd/m1")
    _commit(milestone, code, "of the milestone\n")
    git(milestone.root, "checkout", "-q", "main")
    code.write_text("not committed\n")
    answer = milestone.run(*YOLO)
    status = milestone.status()
    assert answer.code == 4
    assert f"loop {status['loop']} was started and is now paused (blocking): " in answer.err
    assert "branch gsd/m1 cannot be used: git refused: error: Your local changes" in answer.err
    assert f"Fix the cause, then run: gsd-fsm --loop {status['loop']} resume" in answer.err
    assert (status["status"], status["pause_code"]) == ("paused", "blocking")
    assert (branch(milestone), code.read_text()) == ("main", "not committed\n")


def test_a_live_loop_keeps_yolo_from_switching(milestone: Here) -> None:
    git(milestone.root, "checkout", "-qb", "feature")
    milestone.ok(*YOLO)
    git(milestone.root, "checkout", "-q", "main")
    milestone.refused(4, *YOLO)
    assert branch(milestone) == "main"


def test_a_resume_is_no_word_about_the_branch(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    milestone.ok("resume")
    assert question(milestone) == ASKS
    milestone.ok("answer", "y")
    assert branch(milestone) == "gsd/m1"


def test_a_paused_loop_switches_nothing(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    milestone.ok("pause")
    milestone.refused(4, "answer", "y")
    milestone.ok("mode", "yolo")
    assert branch(milestone) == "main"


def test_without_git_there_is_no_branch_to_think_of(here: Here, tmp_path: Path) -> None:
    here.gsd.mkdir()
    (here.gsd / "config.toml").write_text(SETTINGS)
    write_plan(here)
    here.ok(*INTERACTIVE)
    here.ok("answer", "y")
    here.patch.setenv("PATH", str(tmp_path))
    done(here, "T01", "T02")
    here.ok("answer", "y")
    done(here, "T03", "T04")
    here.ok("complete")


def _commit(here: Here, path: Path, text: str) -> None:
    path.write_text(text)
    git(here.root, "add", "-f", str(path))
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    git(here.root, *who, "commit", "-qm", path.name)

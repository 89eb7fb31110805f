"""start with a plan: the plan that is frozen, its changes, and the branch of its milestone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import AGENT, Here
from tests.support.events import write
from tests.support.plan_loops import (
    INTERACTIVE,
    PLAN,
    START_QUESTION,
    TITLE,
    YOLO,
    open_question,
    questions,
    ready,
    report,
    report_complete,
    start_plan,
    task_text,
    write_plan,
)
from tests.support.plan_texts import LOOP_MECHANISM
from tests.support.repositories import commit, git
from tests.support.verification import DONE, failed_round, lay

MILESTONE = {"branching": "milestone", "base_branch": "main"}
QUESTION = "You're on main but milestone m1 exists. Switch to gsd/m1? [Y/n]"
PLACE = ".opti-gsd/plans/phase-1/plan.md"


@pytest.fixture
def planned(here: Here) -> Here:
    return start_plan(here)


@pytest.fixture
def milestone(repository: Here) -> Here:
    """Return a project on its base branch, whose milestone branch does not exist yet."""
    git(repository.root, "branch", "-M", "main")
    repository.configure(**MILESTONE)
    write_plan(repository, where=PLACE)
    write_state(repository, '{"phase": 1, "milestone": "m1"}')
    return repository


def write_state(here: Here, text: str) -> None:
    (here.root / ".opti-gsd" / "state.json").write_text(text)


def branch(here: Here) -> str:
    return git(here.root, "branch", "--show-current")


def test_start_freezes_plan_and_tasks_into_its_event(planned: Here) -> None:
    start = planned.lines()[1]["data"]
    assert start["phase"] == 1
    assert start["plan"] == {
        "file": ".gsd/plans/phase-1/plan.md", "digest": start["plan"]["digest"],
        "format": "markdown", "title": "Parts", "tasks": 4, "waves": 2, "sequential": [2],
    }  # fmt: skip
    assert start["tasks"][3] == {
        "id": "T04", "wave": 2, "title": "Write 04.", "depends": ["T01"], "checks": 2,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["execute", "verify"])
def test_start_without_project_state_or_plan_says_what_is_missing(here: Here, kind: str) -> None:
    for options in ((), ("--phase", "1"), ("a goal", "--criterion", "c", "--check", "t=true")):
        bare = here.refused(3, "start", kind, *options).err
        assert "Not Initialized: no .opti-gsd/ or .gsd/ directory found in" in bare
        assert f"gsd-fsm start {kind} --plan FILE" in bare
        assert f"gsd-fsm start {kind} --task ID:TITLE" in bare
        assert "gsd-fsm init" in bare
    assert not here.gsd.exists()
    (here.root / ".opti-gsd").mkdir()
    assert "Project State Missing" in here.refused(3, "start", kind, "--phase", "1").err
    (here.root / ".opti-gsd" / "state.json").write_text('{"phase": 2}')
    missing = here.refused(3, "start", kind).err
    assert "Phase Not Planned: No plan found for phase 2" in missing
    assert f"gsd-fsm start {kind} --plan FILE" in missing
    assert not here.gsd.exists()
    shutil.rmtree(here.root / ".opti-gsd")
    (here.root / "mine.md").write_text(PLAN)
    here.ok("start", kind, "--plan", "mine.md", "--mode", "yolo")
    missing = here.refused(3, "start", kind, "--fresh").err
    assert f"Phase Not Planned: no phase given, and {here.gsd} has no current phase" in missing
    assert f"gsd-fsm start {kind} --phase N" in missing
    here.ok("start", kind, "--step", "look", "--fresh")


def test_start_without_phase_takes_the_plan_of_the_one_in_progress_or_asks(here: Here) -> None:
    write_plan(here, PLAN, ".opti-gsd/plans/phase-1/plan.md")
    state = here.root / ".opti-gsd" / "state.json"
    state.write_text('{"milestone": "v1"}')
    assert "no phase given" in here.refused(3, "start", "execute").err
    assert not here.gsd.exists()
    write_plan(here, PLAN.replace("Parts", "Not this one"))
    state.write_text('{"phases_in_progress": [1]}')
    for kind in ("execute", "verify"):
        here.ok("start", kind, "--mode", "yolo", "--fresh")
        start = here.last()["data"]
        assert (start["phase"], start["plan"]["title"]) == (1, "Parts")


def test_start_with_broken_plan_names_its_line_and_starts_nothing(here: Here) -> None:
    path = write_plan(here, PLAN.replace('depends="01"', 'depends="77"'))
    line = path.read_text().splitlines().index('<task id="04" wave="2" depends="77">') + 1
    assert f"{path}:{line}: task T04 depends on T77" in here.refused(2, *YOLO).err
    write_plan(here, PLAN.replace('type="file"', 'type="comand"'))
    for kind in ("execute", "verify"):
        refused = here.refused(2, "start", kind, "--phase", "1").err
        assert f"{path}:8: unknown check type 'comand' (did you mean 'command'?)" in refused
    assert not here.journal.exists()


def test_start_lists_what_no_program_can_decide_and_checks_that_cannot_fail(here: Here) -> None:
    check = '<check type="file">01.py exists</check>'
    look = "".join(f"<check>Look {number}</check>" for number in range(1, 12))
    masked = '<check type="command">make | tee log</check>'
    text = task_text("01").replace(check, look + masked)
    bare = task_text("02").replace('<file action="create">02.py</file>', "02.py")
    write_plan(
        here, TITLE + text + bare.replace(check.replace("01", "02"), "<check>Read it</check>")
    )
    warning = "check T01#12 (line 8) cannot fail: '| tee log' masks its exit code"
    for kind in ("execute", "verify"):
        lines = here.ok("start", kind, "--phase", "1", "--fresh").out.splitlines()
        assert lines[2:4] == [f"warning: {warning}", "manual: T01#1 (line 8): Look 1"]
        assert lines[13:14] == ["manual: 2 more; run: gsd-fsm plan check"]
        claimed = ["claimed: task T02 (no machine check)"] if kind == "execute" else []
        assert lines[14:] == claimed
    facts = here.ok(*YOLO, "--fresh", "--json").json
    assert (facts["warnings"], facts["claimed_tasks"]) == ([warning], ["T02"])
    assert facts["manual"][11] == {"check": "T02#1", "line": 14, "text": "Read it"}
    write(Path(os.environ["XDG_CONFIG_HOME"]) / "gsd-fsm/config.toml", "prove_tasks = false\n")
    claimed = "prove_tasks is off: every task will be reported as claimed"
    assert here.ok(*YOLO, "--fresh", "--json").json["warnings"] == [warning, claimed]


def test_start_warns_if_roadmap_has_no_heading_for_the_phase(here: Here) -> None:
    write_plan(here)
    (here.gsd / "ROADMAP.md").write_text("## Phase 2: Others\n")
    answer = here.ok(*YOLO)
    assert "has no heading for phase 1" in answer.out + answer.err


def test_start_with_a_thousand_tasks_records_all_and_offers_the_first_wave(here: Here) -> None:
    start_plan(here, plan="".join(task_text(f"{n:04d}", n // 20 + 1) for n in range(1000)))
    status = here.status()
    assert (len(status["tasks"]), status["max_iterations"]) == (1000, 3000)
    assert ready(here) == [f"T{n:04d}" for n in range(20)]
    assert "plan" in [event["type"] for event in here.lines()]


def test_start_creates_state_md_unless_disabled(planned: Here) -> None:
    state = planned.gsd / "STATE.md"
    assert "  type: execute\n" in state.read_text()
    planned.ok("cancel")
    assert "  type: null\n" in state.read_text()
    state.unlink()
    planned.configure(state_md=False)
    planned.ok(*YOLO)
    assert not state.exists()


def test_changed_plan_pauses_until_the_user_resumes(planned: Here) -> None:
    write_plan(planned, PLAN.replace(task_text("02"), "") + task_text("05", 2))
    planned.refused(4, "next")
    assert report(planned, "T01", "TASK COMPLETE")["status"] == "paused"
    assert planned.status()["pause_code"] == "plan"
    refused = planned.refused(4, "resume", env=AGENT)
    assert "until the user sends a message" in refused.err
    planned.ok("resume")
    planned.ok("check")
    tasks = {it["id"]: it["status"] for it in planned.status()["tasks"]}
    assert tasks == {"T01": "complete", "T02": "skipped"} | dict.fromkeys(
        ("T03", "T04", "T05"), "pending"
    )
    report_complete(planned, "T03", "T04", "T05")
    planned.ok("complete")


def test_resume_with_missing_plan_says_how_to_restore_it(planned: Here) -> None:
    path = planned.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    path.unlink()
    report(planned, "T01", "TASK COMPLETE")
    reason = ".gsd/plans/phase-1/plan.md is missing; restore it, then resume"
    assert planned.status()["pause_reason"] == reason
    refused = planned.refused(4, "resume").err
    assert "git checkout -- .gsd/plans/phase-1/plan.md" in refused
    path.write_text(PLAN)
    planned.ok("resume")
    assert ready(planned) == ["T02"]


def test_resume_names_tasks_whose_commits_are_missing(repository: Here) -> None:
    start_plan(repository)
    commit(repository.root, "01.py")
    assert report(repository, "T01", "TASK COMPLETE")["commit"]
    git(repository.root, "reset", "-q", "--hard", "HEAD~1")
    assert repository.ok("resume", "--json").json["missing_commits"] == ["T01"]
    assert "No longer on this branch: the commits of T01" in repository.ok("resume").out


# branches


def test_start_on_base_branch_without_milestone_is_refused(milestone: Here) -> None:
    write_state(milestone, '{"phase": 1}')
    refused = milestone.refused(4, *YOLO).err
    assert "No Milestone Active: You're on main with branching: milestone" in refused
    assert "git checkout -b gsd/NAME" in refused
    assert not milestone.journal.exists()
    assert git(milestone.root, "branch", "--format=%(refname:short)") == "main"


def test_start_without_base_branch_setting_uses_master(milestone: Here) -> None:
    milestone.configure(branching="milestone")
    git(milestone.root, "checkout", "-q", "-b", "master")
    assert QUESTION.replace("main", "master") in milestone.ok(*INTERACTIVE).out
    milestone.ok("cancel")
    git(milestone.root, "checkout", "-q", "main")
    assert START_QUESTION in milestone.ok(*INTERACTIVE).out


def test_answer_yes_switches_branch_and_asks_to_start(milestone: Here) -> None:
    assert QUESTION in milestone.ok(*INTERACTIVE).out
    for command in (("answer", "y"), ("mode", "yolo")):
        milestone.refused(4, *command, env=AGENT)
    milestone.ok("resume")
    assert (branch(milestone), open_question(milestone)) == ("main", QUESTION)
    output = milestone.ok("answer", "y").out
    assert "Switched to gsd/m1." in output
    assert branch(milestone) == "gsd/m1"
    milestone.ok("answer", "y")
    assert questions(milestone) == [QUESTION, QUESTION, START_QUESTION]  # resume asks again
    assert ready(milestone) == ["T01", "T02"]


def test_answer_no_stays_on_base_branch_and_says_so(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    output = milestone.ok("answer", "n").out
    assert "Continuing on main. Changes will be on base branch." in output
    assert (branch(milestone), open_question(milestone)) == ("main", START_QUESTION)


def test_start_in_yolo_mode_switches_branch_unless_it_is_refused(milestone: Here) -> None:
    git(milestone.root, "checkout", "-qb", "feature")
    milestone.ok(*YOLO)
    git(milestone.root, "checkout", "-q", "main")
    milestone.refused(4, *YOLO)
    assert branch(milestone) == "main"
    assert "Switched to branch gsd/m1." in milestone.ok(*YOLO, "--fresh").out
    assert branch(milestone) == "gsd/m1"
    assert questions(milestone) == []


def test_answer_yes_takes_the_plan_of_the_milestone_branch(milestone: Here) -> None:
    commit(milestone.root, PLACE, PLAN)
    git(milestone.root, "checkout", "-qb", "gsd/m1")
    commit(milestone.root, PLACE, PLAN.replace("Parts", "Other parts"))
    git(milestone.root, "checkout", "-q", "main")
    milestone.ok(*INTERACTIVE)
    assert "Phase 1: Other parts" in milestone.ok("answer", "y").out


def test_start_exits_4_if_git_refuses_the_switch_and_resume_tries_again(milestone: Here) -> None:
    git(milestone.root, "checkout", "-qb", "gsd/m1")
    commit(milestone.root, "code.py", "of the milestone\n")
    git(milestone.root, "checkout", "-q", "main")
    code = milestone.root / "code.py"
    code.write_text("not committed\n")
    answer = milestone.run(*YOLO)
    assert answer.code == 4
    loop = milestone.status()["loop"]
    assert f"loop {loop} was started and is now paused (blocking): " in answer.err
    assert "branch gsd/m1 cannot be used: git refused: error: Your local changes" in answer.err
    assert f"Fix the cause, then run: gsd-fsm resume --loop {loop}" in answer.err
    assert "Branch gsd/m1 cannot be used" in milestone.ok("resume").out
    assert milestone.status()["status"] == "paused"
    assert (branch(milestone), code.read_text()) == ("main", "not committed\n")
    git(milestone.root, "checkout", "-q", "code.py")
    assert "Switched to" in milestone.ok("resume").out
    assert branch(milestone) == "gsd/m1"


def test_mode_yolo_of_paused_loop_switches_no_branch(milestone: Here) -> None:
    milestone.ok(*INTERACTIVE)
    milestone.ok("pause")
    milestone.refused(4, "answer", "y")
    milestone.ok("mode", "yolo")
    assert branch(milestone) == "main"


def test_planned_loop_without_git_ignores_branching_and_commit(here: Here, tmp_path: Path) -> None:
    here.configure(**MILESTONE, commit=True)
    start_plan(here, *INTERACTIVE)
    here.ok("answer", "y")
    assert report(here, "T01", "TASK COMPLETE")["tag"] is None
    here.patch.setenv("PATH", str(tmp_path))
    report_complete(here, "T02")
    here.ok("answer", "y")
    report_complete(here, "T03", "T04")
    here.ok("complete")
    assert not [event for event in here.lines() if event["type"] == "checkpoint"]


def test_answer_with_branch_without_plan_leaves_it_and_pauses(milestone: Here) -> None:
    git(milestone.root, "branch", "gsd/m1")
    commit(milestone.root, PLACE, PLAN)
    milestone.refused(3, *YOLO)
    milestone.ok(*INTERACTIVE)
    output = milestone.ok("answer", "y").out
    assert f"gsd/m1 cannot be used: it does not have {PLACE}" in output
    assert (milestone.root / PLACE).is_file()
    assert milestone.status()["pause_code"] == "blocking"
    milestone.configure(branching="none")
    milestone.ok("resume")
    assert milestone.status()["status"] == "waiting"


# The loop plan: a phase of seven tasks, which is executed and then verified.
TASKS = dict(zip((f"T0{number}" for number in range(1, 8)), DONE, strict=True))
BEFORE = {
    ".gsd/config.md": "# Settings\n",
    ".gsd/plans/phase-1/plan.md": LOOP_MECHANISM.read_text("utf-8"),
    ".gsd/ROADMAP.md": "### Phase 1: Loop Mechanism\n**Status:** DISCUSSED\n- [ ] Complete\n",
    "commands/execute.md": "# execute\n",
    "commands/verify.md": "# verify\n",
}


def do_task(here: Here, name: str) -> None:
    """Do a task as a subagent does: read its prompt, write its file, report it."""
    path = TASKS[name]
    file = here.root / path
    action = "modify" if file.exists() else "create"
    assert f'<file action="{action}">{path}</file>' in here.ok("next", name).out
    before = file.read_text().replace("DISCUSSED", "PLANNED") if file.exists() else ""
    lay(here.root, {path: f"{before}\n{DONE[path]}"})
    report_complete(here, name)


def test_loop_plan_is_executed_in_waves_and_verified_until_no_gap_is_left(here: Here) -> None:
    lay(here.root, BEFORE)
    here.ok(*YOLO)
    offered = []
    while names := ready(here):
        offered.append(names)
        for name in names:
            do_task(here, name)
    assert offered == [["T01", "T02", "T03"], ["T04"], ["T05"], ["T06"], ["T07"]]
    assert "**Tasks:** 7/7 completed" in here.ok("complete").out
    roadmap = here.gsd / "ROADMAP.md"
    roadmap.write_text(roadmap.read_text().replace("PLANNED", ""))
    here.start("verify", "--phase", "1", "--mode", "yolo")
    assert failed_round(here)["gaps"] == ["G1"]
    assert roadmap.name in here.ok("next", "G1").out
    roadmap.write_text(roadmap.read_text() + "\nPLANNED with 7 tasks.\n")
    report_complete(here, "G1")
    found = here.ok("verify", "--json").json
    assert (found["passed"], found["status"]) == (True, "running")
    passed = {check["key"]: check["passed"] for check in found["checks"]}
    assert passed == dict.fromkeys(passed, True) | {"T02#4": None}
    assert len(passed) == 23

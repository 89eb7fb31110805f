"""Waits, answers, pauses and the resumption of loops."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from freezegun import freeze_time

from gsd_fsm.core.journal.journal import Author
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.lifecycle import answer, ask, cancel, pause, resume, set_mode, wait_until
from gsd_fsm.engine.tasks import leave_note, spend
from tests.support.command_line import Here
from tests.support.hook_agent import Agent, start
from tests.support.phases import Phase, kill_after
from tests.support.plan_loops import INTERACTIVE, write_plan
from tests.support.repositories import commit, git

AFTER = b'"type":"answer"'
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def asked(here: Here) -> Here:
    """Return a project whose loop asks for the branch of its milestone."""
    git(here.root, "init", "-q", "--template=", "-b", "main")
    commit(here.root, "code")
    write_plan(here, where=".opti-gsd/plans/phase-1/plan.md")
    (here.root / ".opti-gsd" / "state.json").write_text('{"phase": 1, "milestone": "m1"}')
    here.configure(branching="milestone", base_branch="main")
    here.ok(*INTERACTIVE)
    return here


def _branch(here: Here) -> str:
    return git(here.root, "branch", "--show-current")


def _types(here: Here, since: int) -> list[str]:
    return [event["type"] for event in here.lines()[since:]]


def test_mode_yolo_answers_and_switches_branch(asked: Here) -> None:
    events = len(asked.lines())
    assert set_mode(Context(asked.root), "yolo").receipt.loop.status == "running"
    assert _branch(asked) == "gsd/m1"
    assert _types(asked, events) == ["mode", "answer", "checkpoint"]


def test_answer_no_stays_on_branch_for_good(asked: Here) -> None:
    decision = answer(Context(asked.root), "No thanks")
    assert decision.note == "Continuing on main. Changes will be on base branch."
    asked.ok("note", "hello")
    assert _branch(asked) == "main"


@pytest.mark.parametrize("command", [["answer", "y"], ["mode", "yolo"]])
@pytest.mark.parametrize("again", [["note", "hello"], ["resume"]])
def test_switch_killed_after_answer_is_finished_by_next_command(
    asked: Here, command: list[str], again: list[str]
) -> None:
    kill_after(lambda: asked.run(*command), AFTER)
    assert _branch(asked) == "main"
    assert "unfinished: switch to branch gsd/m1" in asked.ok("status").err
    asked.ok("fsck")
    asked.ok(*again)
    assert _branch(asked) == "gsd/m1"


def test_refused_switch_pauses_loop_with_its_cause_and_is_not_tried_again(asked: Here) -> None:
    (asked.root / ".git" / "index.lock").touch()
    events = len(asked.lines())
    loop = answer(Context(asked.root), "y").receipt.loop
    assert _types(asked, events) == ["answer", "pause"]
    assert (loop.status, loop.pause_code) == ("paused", "blocking")
    assert (loop.pause_reason or "").startswith("branch gsd/m1 cannot be used: git refused: ")
    (asked.root / ".git" / "index.lock").unlink()
    asked.ok("note", "hello")
    assert _branch(asked) == "main"


def test_resume_reports_running_tasks_and_verified_and_missing_commits(phase: Phase) -> None:
    phase.git("reset", "-q", "--hard", "HEAD~1")
    done = resume(Context(phase.root), {})
    assert (done.running, done.verified_commits, done.missing_commits) == ([], 1, ["T02"])
    phase.git("reset", "-q", "--hard", "ORIG_HEAD")
    phase.here.ok("rollback", "T01", "--yes")
    phase.here.ok("task", "T02", "running", "--ref", "bg-1")
    done = resume(Context(phase.root), {})
    assert done.running == [("T02", "bg-1", None)]
    assert (done.verified_commits, done.missing_commits) == (1, [])


def test_resume_with_added_retries_names_tasks_it_retries(here: Here) -> None:
    here.start("execute", "--task", "T1", "--max-retries", "1")
    for _ in range(2):
        here.ok("fail", "T1", "--error", "broken")
    assert here.status()["pause_code"] == "retries"
    done = resume(Context(here.root), {"max_retries": 1})
    assert here.last()["data"]["retry"] == ["T1"]
    assert done.receipt.loop.limits.max_retries == 2


def test_pause_keeps_everything_and_names_the_command_that_continues(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--criterion", "a", "--step", "one", "--step", "two")
    agent.do("task S1 running", "task S1 complete", "criterion a met", "pause --reason lunch")
    before = agent.here.status()
    notice = agent.allowed()
    assert "paused (manual): lunch" in notice
    assert f"gsd-fsm resume --loop {loop}" in notice
    agent.do("resume")
    after = agent.here.status()
    assert (after["tasks"], after["criteria"]) == (before["tasks"], before["criteria"])
    assert "Next: Start task S2 (two)." in agent.blocked()


def test_paused_loop_is_intact_after_days_and_has_spent_no_time(agent: Agent) -> None:
    with freeze_time(datetime(2026, 1, 1, tzinfo=timezone.utc)):
        start(agent, "goal", "Ship it", "--criterion", "c", "--step", "one", "--max-minutes", "5")
        agent.do("iterate", "task S1 running", "task S1 complete", "pause")
    lines = agent.starts("resume").split("\n")
    assert lines[0] == "[LOOP RESUME] Paused loop detected"
    assert "Progress: 1/1 steps | Iteration: 1 of 20" in lines
    agent.do("resume")
    assert "Unmet criteria: c" in agent.starts("resume")
    agent.blocked()


def test_resume_takes_the_views_of_the_settings(here: Here) -> None:
    here.configure(views=["state"])
    here.start("goal", "g")
    here.configure(views=["state", "progress"])
    here.ok("iterate")
    assert [path.name for path in (here.root / ".loop").iterdir()] == ["state.json"]
    here.ok("resume")
    assert here.last()["data"] == {"views": ["state", "progress"]}
    assert "# Loop Progress: g" in (here.root / ".loop" / "PROGRESS.md").read_text()
    here.ok("resume")
    assert here.last()["data"] == {}


def test_session_only_loop_survives_clear_and_is_cancelled_with_its_session(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--session-only")
    agent.starts()
    agent.ends("clear")
    heir = agent.other("s-2", CLAUDE_PID=agent.env["CLAUDE_PID"])
    assert loop in heir.starts("clear")
    heir.blocked()
    assert agent.status("status", "owner") == ("running", "s-2")
    heir.ends("logout")
    assert agent.status("status") == "cancelled"
    assert agent.here.last()["data"] == {"reason": "its session has ended"}
    assert heir.starts("resume") == ""


def test_cancel_reports_done_and_remaining_work(here: Here) -> None:
    here.start("goal", "g", "--criterion", "a", "--criterion", "b", "--step", "1", "--step", "2")
    here.ok("criterion", "a", "met")
    here.ok("task", "S1", "running")
    here.ok("task", "S1", "complete")
    cancelled = cancel(Context(here.root))
    assert cancelled.receipt.loop.status == "cancelled"
    assert cancelled.work == {
        "tasks": {"done": ["S1"], "remaining": ["S2"]},
        "gaps": {"done": [], "remaining": []},
        "criteria": {"done": ["a"], "remaining": ["b"]},
    }


def test_texts_of_python_callers_are_redacted(here: Here) -> None:
    here.start("goal", "g")
    context, words = Context(here.root, author=Author("human")), f"token {SECRET} end"
    leave_note(context, words)
    spend(context, 0.1, what=words)
    ask(context, words)
    answer(context, words)
    wait_until(context, "2026-01-01T00:00:00.000Z", words)
    pause(context, words)
    cancel(context, words)
    assert SECRET.encode() not in here.journal.read_bytes()

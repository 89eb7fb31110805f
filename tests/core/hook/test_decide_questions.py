"""Questions: a pending decision lets the agent stop and asks the user, once no task is running."""

from __future__ import annotations

import pytest

from tests.support.hook_agent import Agent, start
from tests.support.plan_loops import THREE_TASKS, report, write_plan

TWO_TASKS = ("execute", "--task", "T1:first", "--task", "T2:second")
TWO_WAVES = ("goal", "g", "--step", "a", "--step", "b", "--blocked-by", "S2=S1")
FAIL_T1 = "fail T1 --error boom --class logic"


def test_failed_task_is_asked_about_once(agent: Agent) -> None:
    loop = start(agent, *TWO_TASKS, by="interactive")
    agent.do("task T1 running", FAIL_T1)
    notice = agent.allowed()
    assert "Task T1 failed. Retry? (0/3 attempts used) [Y/n]" in notice
    assert f"gsd-fsm --loop {loop} answer" in notice
    why = agent.why()
    assert (why["decision"], why["code"]) == ("allow", "human")
    assert "Retry?" in why["why"]
    assert agent.status("iteration") == 0
    agent.here.ok("answer", "yes, with care")
    assert "yes, with care" in agent.blocked()
    agent.do("task T1 running", "fail T1 --error bang --class logic")
    assert "(1/3 attempts used)" in agent.allowed()


def test_nothing_is_asked_while_another_task_runs(agent: Agent) -> None:
    start(agent, *TWO_TASKS, by="interactive")
    agent.do("task T1 running", "task T2 running", FAIL_T1)
    assert "T2" in agent.blocked()
    agent.do("task T2 complete")
    assert "Task T1 failed. Retry?" in agent.allowed()


def test_failed_task_is_not_asked_about_in_yolo_mode(agent: Agent) -> None:
    start(agent, *TWO_TASKS)
    agent.do("task T1 running", FAIL_T1)
    text = agent.blocked()
    assert "boom" in text
    assert "this is retry 1 of 3" in text


CHECKPOINT = "task T1 checkpoint --question 'Which one?'"
FIX = "Verification found %s. Attempt automatic fix? (0/20) [Y/n]"


@pytest.mark.parametrize(
    ("loop", "before", "event", "question"),
    [
        (TWO_TASKS, "iterate", "fail T1 --error x --class transient", "Retry? (0/1 attempts used)"),
        (TWO_TASKS, "task T1 running", CHECKPOINT, "Task T1 needs a decision: Which one?"),
        (TWO_WAVES, "task S1 running", "task S1 complete", "Wave 1 complete. Continue to Wave 2?"),
        (("verify",), "iterate", "gap found --description x", FIX % "1 gap"),
    ],
)
def test_decision_is_asked_about_until_it_is_answered(
    agent: Agent, loop: tuple[str, ...], before: str, event: str, question: str
) -> None:
    start(agent, *loop, by="interactive")
    agent.do(before)
    agent.blocked()
    agent.do(event)
    assert question in agent.allowed()
    agent.here.ok("answer", "y")
    agent.blocked()
    if loop == ("verify",):
        agent.do("gap found --description y")
        assert FIX % "2 gaps" in agent.allowed()


@pytest.mark.parametrize("no", ["n", "No", "no, leave it", "no. Never."])
def test_answer_no_pauses_and_is_not_shown_to_an_agent_that_continues_later(
    agent: Agent, no: str
) -> None:
    start(agent, *TWO_WAVES, by="interactive")
    agent.do("task S1 running", "task S1 complete")
    agent.allowed()
    agent.prompt(no)
    agent.do(f"answer '{no}'")
    assert agent.status("status") == "paused"
    assert "declined" in agent.status("pause_reason")
    agent.allowed()
    agent.prompt("fine, go on")
    agent.do("resume")
    assert f"\n{no}\n" not in agent.blocked()


@pytest.mark.parametrize("yes", ["y", "yes", "nothing speaks against it", "now"])
def test_any_other_answer_continues_the_loop(agent: Agent, yes: str) -> None:
    start(agent, *TWO_TASKS, by="interactive")
    agent.do(FAIL_T1)
    agent.allowed()
    agent.here.ok("answer", yes)
    assert f"\n{yes}\n" in agent.blocked()


# parallel tasks of a plan

COMPLETE, ASKING, FAILED = "TASK COMPLETE", "CHECKPOINT: Which one?", "TASK FAILED: no idea"


def begin(agent: Agent, kind: str, mode: str = "interactive") -> None:
    """Start a loop with the plan, and two of its tasks (execute) or fixes (verify)."""
    write_plan(agent.here, THREE_TASKS)
    agent.here.start(kind, "--phase", "1", "--mode", mode, env=agent.shell)
    if kind == "verify":
        (agent.here.root / "03.py").write_text("")
        agent.here.run("verify", env=agent.shell)
    if mode == "interactive":
        agent.here.ok("answer", "y")
    one, two = ("T01", "T02") if kind == "execute" else ("G1", "G2")
    agent.do(f"task {one} running", f"task {two} running")


@pytest.mark.parametrize(
    ("kind", "mode", "output", "question"),
    [
        ("execute", "interactive", COMPLETE, "Continue to Wave 2?"),
        ("execute", "interactive", ASKING, "Task T01 needs a decision: Which one?"),
        ("execute", "interactive", FAILED, "Task T01 failed. Retry? (0/3 attempts used) [Y/n]"),
        ("execute", "yolo", ASKING, "Task T01 needs a decision: Which one?"),
        ("verify", "interactive", ASKING, "Task G1 needs a decision: Which one?"),
        ("verify", "interactive", FAILED, "Task G1 failed. Retry? (0/3 attempts used) [Y/n]"),
    ],
)
def test_question_waits_for_the_report_of_a_parallel_task(
    agent: Agent, kind: str, mode: str, output: str, question: str
) -> None:
    begin(agent, kind, mode)
    first, second = ("T01", "T02") if kind == "execute" else ("G1", "G2")
    assert report(agent.here, first, output, env=agent.shell)["status"] != "waiting"
    agent.blocked()
    answer = report(agent.here, second, COMPLETE, env=agent.shell)
    assert (answer["verdict"], answer["status"]) == ("complete", "waiting")
    assert question in agent.allowed()


def test_gap_found_while_fixes_run_is_asked_about_after_their_reports(agent: Agent) -> None:
    begin(agent, "verify")
    agent.do("gap found --description 'one more'")
    assert "gap G3 is waiting for your decision" in agent.refused("task G3 running")
    agent.blocked()
    assert report(agent.here, "G1", COMPLETE, env=agent.shell)["status"] == "fixing"
    agent.blocked()
    assert report(agent.here, "G2", COMPLETE, env=agent.shell)["status"] == "waiting"
    assert "Verification found 1 gap. Attempt automatic fix?" in agent.allowed()

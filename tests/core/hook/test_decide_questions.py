"""Questions: a pending decision lets the agent stop and asks the user, once no task is running."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from tests.support.events import append, start_draft
from tests.support.hook_agent import Agent, start
from tests.support.plan_loops import THREE_TASKS, start_planned

TWO_TASKS = ("execute", "--task", "T1:first", "--task", "T2:second")
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


def test_transient_failure_is_asked_about_with_its_one_retry(agent: Agent) -> None:
    start(agent, *TWO_TASKS, by="interactive")
    agent.do("fail T1 --error reset --class transient")
    assert "Task T1 failed. Retry? (0/1 attempts used) [Y/n]" in agent.allowed()


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


def test_gaps_are_asked_about_when_they_are_found(agent: Agent) -> None:
    start(agent, "verify", by="interactive")
    agent.do("gap found --description 'no test'")
    assert "Verification found 1 gap. Attempt automatic fix? (0/20) [Y/n]" in agent.allowed()
    agent.here.ok("answer", "y")
    agent.blocked()
    agent.do("gap found --description 'no docs'")
    assert "2 gaps" in agent.allowed()


def test_checkpoint_is_asked_about(agent: Agent) -> None:
    start(agent, *TWO_TASKS, by="interactive")
    agent.do("task T1 running", "task T1 checkpoint --question 'Which one?'")
    assert "Task T1 needs a decision: Which one?" in agent.allowed()


def test_next_wave_is_asked_about(agent: Agent) -> None:
    start(agent, "goal", "g")
    agent.here.ok("cancel")
    tasks = [{"id": "T1", "wave": 1}, {"id": "T2", "wave": 2}]
    begun = {**start_draft("lp-w", mode="interactive", tasks=tasks), "session": "s-1"}
    append(Journal(str(agent.here.gsd)), begun)
    agent.blocked()
    agent.do("task T1 running", "task T1 complete")
    assert "Wave 1 complete. Continue to Wave 2?" in agent.allowed()
    agent.here.ok("answer", "y")
    agent.blocked()


# answers


@pytest.mark.parametrize("no", ["n", "No", "no, leave it", "no. Never."])
def test_answer_no_pauses_the_loop(agent: Agent, no: str) -> None:
    start(agent, *TWO_TASKS, by="interactive")
    agent.do(FAIL_T1)
    assert "Retry?" in agent.allowed()
    agent.prompt(no)
    agent.here.ok("answer", no, env=agent.shell)
    assert agent.status("status") == "paused"
    assert "declined" in agent.status("pause_reason")
    agent.allowed()


@pytest.mark.parametrize("yes", ["y", "yes", "nothing speaks against it", "now"])
def test_any_other_answer_continues_the_loop(agent: Agent, yes: str) -> None:
    start(agent, *TWO_TASKS, by="interactive")
    agent.do(FAIL_T1)
    agent.allowed()
    agent.here.ok("answer", yes)
    assert yes in agent.blocked()


def test_answer_no_is_not_shown_to_an_agent_that_continues_later(agent: Agent) -> None:
    steps = ("--step", "a", "--step", "b", "--blocked-by", "S2=S1")
    start(agent, "goal", "g", *steps, by="interactive")
    agent.do("task S1 running", "task S1 complete")
    assert "Continue to Wave 2?" in agent.allowed()
    agent.here.ok("answer", "no, let me look first")
    agent.prompt("fine, go on")
    agent.do("resume")
    assert "let me look" not in agent.blocked()


# parallel tasks of a plan

COMPLETE, CHECKPOINT, FAILED = "TASK COMPLETE", "CHECKPOINT: Which one?", "TASK FAILED: no idea"


def begin(agent: Agent, kind: str, mode: str = "interactive") -> None:
    """Start a loop with the plan, in the session of the agent."""
    path = agent.here.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    path.parent.mkdir(parents=True)
    path.write_text(THREE_TASKS)
    agent.here.start(kind, "--phase", "1", "--mode", mode, env=agent.shell)


def report(agent: Agent, name: str, words: str) -> Any:
    answer = agent.here.ok("report", name, "--json", env=agent.shell, stdin=words.encode())
    return answer.json


@pytest.fixture
def two_tasks(agent: Agent) -> Agent:
    """An execute loop whose first wave, T01 and T02, is running."""
    begin(agent, "execute")
    agent.here.ok("answer", "y")
    agent.do("task T01 running", "task T02 running")
    return agent


@pytest.fixture
def two_fixes(agent: Agent) -> Agent:
    """A verify loop in which the fixes of two of its gaps, G1 and G2, are running."""
    begin(agent, "verify")
    (agent.here.root / "03.py").write_text("")
    agent.here.run("verify", env=agent.shell)
    agent.here.ok("answer", "y")
    agent.do("task G1 running", "task G2 running")
    return agent


@pytest.mark.parametrize(
    ("fixture", "words", "question"),
    [
        ("two_tasks", COMPLETE, "Continue to Wave 2?"),
        ("two_tasks", CHECKPOINT, "Task T01 needs a decision: Which one?"),
        ("two_tasks", FAILED, "Task T01 failed. Retry? (0/3 attempts used) [Y/n]"),
        ("two_fixes", CHECKPOINT, "Task G1 needs a decision: Which one?"),
        ("two_fixes", FAILED, "Task G1 failed. Retry? (0/3 attempts used) [Y/n]"),
    ],
)
def test_question_waits_for_the_report_of_a_parallel_task(
    request: pytest.FixtureRequest, fixture: str, words: str, question: str
) -> None:
    agent: Agent = request.getfixturevalue(fixture)
    first, second = ("T01", "T02") if fixture == "two_tasks" else ("G1", "G2")
    assert report(agent, first, words)["status"] != "waiting"
    agent.blocked()
    answer = report(agent, second, COMPLETE)
    assert (answer["verdict"], answer["status"]) == ("complete", "waiting")
    assert question in agent.allowed()


def test_checkpoint_in_yolo_mode_waits_for_a_parallel_task(agent: Agent) -> None:
    begin(agent, "execute", "yolo")
    agent.do("task T01 running", "task T02 running")
    assert report(agent, "T01", CHECKPOINT)["status"] == "running"
    agent.blocked()
    assert report(agent, "T02", COMPLETE)["status"] == "waiting"
    assert "Task T01 needs a decision: Which one?" in agent.allowed()


def test_gap_found_while_fixes_run_is_asked_about_after_their_reports(two_fixes: Agent) -> None:
    agent = two_fixes
    agent.do("gap found --description 'one more'")
    assert "gap G3 is waiting for your decision" in agent.refused("task G3 running")
    agent.blocked()
    assert report(agent, "G1", COMPLETE)["status"] == "fixing"
    agent.blocked()
    assert report(agent, "G2", COMPLETE)["status"] == "waiting"
    assert "Verification found 1 gap. Attempt automatic fix?" in agent.allowed()


# resume --add-retries


def retry_numbers(agent: Agent) -> list[str]:
    """Let T01 fail until the loop pauses; return what the reports say about its retries."""
    numbers = []
    while True:
        shown = agent.here.ok("report", "T01", env=agent.shell, stdin=FAILED.encode()).out
        if agent.status("status") == "paused":
            return numbers
        numbers.append(shown.partition("Retry ")[2].partition(".")[0])


@pytest.mark.parametrize(("added", "numbers"), [("1", []), ("3", ["5 of 6", "6 of 6"])])
def test_add_retries_grants_as_many_attempts_with_new_numbers(
    agent: Agent, added: str, numbers: list[str]
) -> None:
    start_planned(agent.here)
    assert retry_numbers(agent) == ["1 of 3", "2 of 3", "3 of 3"]
    agent.here.ok("resume", "--add-retries", added)
    assert agent.here.last()["data"]["retry"] == ["T01"]
    assert agent.status("task_retries")["T01"] == 4
    assert retry_numbers(agent) == numbers
    assert agent.status("pause_code") == "retries"


@pytest.mark.parametrize("relayed", [False, True])
def test_add_retries_in_interactive_mode_does_not_ask_to_retry(agent: Agent, relayed: bool) -> None:
    here = agent.here
    start_planned(here, "interactive", "execute_max_retries = 0\n")
    here.ok("answer", "y")
    assert report(agent, "T01", FAILED)["status"] == "paused"
    if relayed:
        agent.prompt("grant it one more retry")
    env = agent.shell if relayed else {}
    answer = here.ok("resume", "--add-retries", "1", "--json", env=env).json
    if not relayed:
        agent.prompt()
    assert answer["status"] == "running"
    assert "T01" in agent.blocked()
    agent.do("task T01 running")
    assert report(agent, "T01", FAILED)["status"] == "paused"


def test_add_retries_by_an_agent_without_a_user_prompt_is_refused(agent: Agent) -> None:
    start_planned(agent.here, "interactive", "execute_max_retries = 0\n")
    agent.here.ok("answer", "y")
    agent.blocked()
    report(agent, "T01", FAILED)
    assert "until the user sends a message" in agent.refused("resume --add-retries 1")

"""In interactive mode a pending decision lets the agent stop and asks the human, once."""

from __future__ import annotations

from gsd_fsm.core.journal.journal import Journal
from tests.support.events import append, start_draft
from tests.support.hook_agent import Agent, start

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
TWO = ("execute", "--task", "T1:first", "--task", "T2:second")


def test_a_failed_task_is_a_question_once(agent: Agent) -> None:
    loop = start(agent, *TWO, by="interactive")
    agent.here.ok("task", "T1", "running", env=agent.shell)
    agent.here.ok("fail", "T1", "--error", "boom", "--class", "logic", env=agent.shell)
    notice = agent.allowed()
    assert "Task T1 failed. Retry? (0/3 attempts used) [Y/n]" in notice
    assert f"gsd-fsm --loop {loop} answer" in notice
    why = agent.why()
    assert (why["decision"], why["code"]) == ("allow", "human")
    assert "Retry?" in why["why"]
    assert agent.here.status()["iteration"] == 0
    agent.here.ok("answer", "yes, with care", env={})
    text = agent.blocked()
    assert "yes, with care" in text
    agent.here.ok("task", "T1", "running", env=agent.shell)
    agent.here.ok("fail", "T1", "--error", "bang", "--class", "logic", env=agent.shell)
    assert "(1/3 attempts used)" in agent.allowed()


def test_stop_while_another_task_runs_asks_nothing(agent: Agent) -> None:
    start(agent, *TWO, by="interactive")
    for task in ("T1", "T2"):
        agent.here.ok("task", task, "running", env=agent.shell)
    agent.here.ok("fail", "T1", "--error", "boom", "--class", "logic", env=agent.shell)
    assert "T2" in agent.blocked()
    agent.here.ok("task", "T2", "complete", env=agent.shell)
    assert "Task T1 failed. Retry?" in agent.allowed()


def test_gaps_and_checkpoints_are_questions(agent: Agent) -> None:
    start(agent, "verify", by="interactive")
    agent.here.ok("gap", "found", "--description", "no test", env=agent.shell)
    assert "1 gap. Attempt automatic fix?" in agent.allowed()
    agent.here.ok("answer", "y", env={})
    agent.blocked()
    agent.here.ok("gap", "found", "--description", "no docs", env=agent.shell)
    assert "2 gaps" in agent.allowed()
    second = agent.other("s-2")
    start(second, *TWO, by="interactive")
    agent.here.ok("task", "T1", "running", env=second.shell)
    agent.here.ok("task", "T1", "checkpoint", "--question", "Which one?", env=second.shell)
    assert "Which one?" in second.allowed()


def test_the_next_wave_is_a_question(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("cancel", env={})
    tasks = [{"id": "T1", "wave": 1}, {"id": "T2", "wave": 2}]
    begun = {**start_draft("lp-w", mode="interactive", tasks=tasks), "session": "s-1"}
    append(Journal(str(agent.here.gsd)), begun)
    agent.blocked()
    agent.here.ok("task", "T1", "running", env=agent.shell)
    agent.here.ok("task", "T1", "complete", env=agent.shell)
    assert "Wave 1 complete. Continue to Wave 2?" in agent.allowed()
    agent.here.ok("answer", "y", env={})
    agent.blocked()


def test_in_yolo_mode_nothing_is_asked(agent: Agent) -> None:
    start(agent, *TWO)
    agent.here.ok("task", "T1", "running", env=agent.shell)
    agent.here.ok("fail", "T1", "--error", "boom", "--class", "logic", env=agent.shell)
    text = agent.blocked()
    assert "boom" in text
    assert "retry 1 of 3" in text


def test_an_answer_that_was_a_no_is_not_told_to_an_agent_that_goes_on(agent: Agent) -> None:
    start(
        agent, "goal", "g", "--step", "a", "--step", "b", "--blocked-by", "S2=S1", by="interactive"
    )
    for status in ("running", "complete"):
        agent.here.ok("task", "S1", status, env=agent.shell)
    assert "Continue to Wave 2?" in agent.allowed()
    agent.here.ok("answer", "no, let me look first")
    agent.prompt("fine, go on")
    agent.here.ok("resume", env=agent.shell)
    assert "let me look" not in agent.blocked()

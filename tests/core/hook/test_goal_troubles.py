"""What goes wrong with loops that keep their state in a file: none of it can, or the cause is told."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.hook_agent import Agent, call, kinds, start

GOAL = ("goal", "Ship it", "--criterion", "tests pass")


def spoil(agent: Agent, name: str, text: str) -> None:
    """A file as older loops kept it, written by a model."""
    path = agent.here.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def stopped(agent: Agent) -> tuple[str, str]:
    why = agent.why()
    return why["code"], why["why"]


# stops too early


def test_a_state_file_that_says_done_ends_nothing(agent: Agent) -> None:
    start(agent, *GOAL)
    done = {"criteriaStatus": {"tests pass": True}, "exit_signal": True, "status": "completed"}
    spoil(agent, ".loop/state.json", json.dumps(done))
    spoil(agent, ".loop/workflow-state.json", '{"version": 1, "stage": "complete"}')
    spoil(agent, ".gsd/STATE.md", "---\nloop:\n  active: false\n---\n")
    assert "criterion not met: tests pass" in agent.blocked()


def test_a_state_file_that_is_missing_ends_nothing(agent: Agent) -> None:
    agent.here.gsd.mkdir()
    agent.here.gsd.joinpath("config.toml").write_text('views = ["state", "workflow-state"]\n')
    start(agent, *GOAL)
    for path in (agent.here.root / ".loop").iterdir():
        path.unlink()
    agent.blocked()
    assert {path.name for path in (agent.here.root / ".loop").iterdir()} == {
        "state.json",
        "workflow-state.json",
    }


def test_the_exit_signal_begins_withdrawn_and_cannot_be_set_by_accident(agent: Agent) -> None:
    start(agent, *GOAL)
    assert agent.here.status()["exit_signal"] is False
    agent.here.refused(4, "exit-signal", env=agent.shell)
    agent.blocked("I would write <loop-complete> if I were done.")
    assert agent.here.status()["exit_signal"] is False


def test_a_limit_that_was_too_low_is_named_with_the_command_that_raises_it(agent: Agent) -> None:
    loop = start(agent, *GOAL, "--max-iterations", "1")
    agent.blocked()
    agent.uses_a_tool()
    notice = agent.allowed()
    assert f"gsd-fsm --loop {loop} resume --add-iterations 10" in notice
    code, why = stopped(agent)
    assert code == "iterations"
    assert "1 of 1 iterations are used" in why


def test_a_hook_that_nobody_calls_is_named_by_the_doctor(agent: Agent) -> None:
    start(agent, *GOAL)
    answer = agent.here.run("doctor")
    assert answer.code != 0
    assert "gsd-fsm init" in answer.out + answer.err


# runs forever


def test_a_loop_that_nobody_ends_comes_to_a_pause_by_itself(agent: Agent) -> None:
    start(agent, *GOAL, "--stuck-limit", "0", "--idle-limit", "0")
    for _ in range(20):
        agent.uses_a_tool()
        agent.blocked()
    agent.uses_a_tool()
    agent.allowed()
    assert stopped(agent)[0] == "iterations"


def test_tasks_that_wait_for_each_other_are_refused_before_they_can_hang(agent: Agent) -> None:
    start(agent, *GOAL, "--task", "A", "--task", "B", "--blocked-by", "B=A")
    answer = agent.here.refused(4, "task", "A", "pending", "--blocked-by", "B", env=agent.shell)
    assert "dependency cycle: A → B → A" in answer.err


def test_the_same_error_three_times_pauses(agent: Agent) -> None:
    start(agent, *GOAL)
    for _ in range(3):
        agent.here.ok("fail", "--class", "logic", "--error", "boom", env=agent.shell)
    assert agent.here.status()["pause_code"] == "repeated"
    agent.allowed()


def test_done_work_without_the_mark_is_told_the_one_command_that_is_left(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    agent.here.ok("criterion", "1", "met", env=agent.shell)
    text = agent.blocked()
    assert "Every criterion is met; give the exit signal." in text
    assert f"Run: gsd-fsm --loop {loop} exit-signal" in text


# the breaker triggers unexpectedly


def test_the_breaker_tells_what_did_not_change_and_work_resets_it(agent: Agent) -> None:
    start(agent, *GOAL, "--step", "one", "--stuck-limit", "2")
    for _ in range(2):
        agent.uses_a_tool()
        agent.blocked()
    agent.here.ok("task", "S1", "running", env=agent.shell)
    agent.here.ok("task", "S1", "complete", env=agent.shell)
    agent.blocked()  # a finished step is progress, though no criterion has changed
    for _ in range(2):
        agent.uses_a_tool()
        agent.blocked()
    agent.uses_a_tool()
    agent.allowed()
    code, why = stopped(agent)
    assert code == "stuck"
    assert "changed no criterion, gap, task or evidence" in why
    assert agent.here.status()["last_unmet"] == "tests pass"


# counsel not invoked


def test_every_failure_raises_the_count_that_asks_for_counsel(agent: Agent) -> None:
    start(agent, "goal", "g", "--step", "one", "--step", "two")
    agent.here.ok("fail", "S1", "--class", "logic", "--error", "a", env=agent.shell)
    assert "Verification has failed once." in agent.blocked()
    agent.here.ok("fail", "S2", "--class", "logic", "--error", "b", env=agent.shell)
    assert "Verification has failed 2 times." in agent.blocked()


def test_the_count_does_not_depend_on_what_an_agent_remembers_to_write(agent: Agent) -> None:
    start(agent, "goal", "g", "--check", "a=true", "--check", "b=false", "--check", "c=true")
    assert agent.here.run("check", env=agent.shell).code == 7
    assert "Verification has failed once." in agent.blocked()


# resume does not work


def test_the_loop_is_announced_whatever_became_of_the_views(agent: Agent) -> None:
    start(agent, *GOAL, "--step", "one", "--step", "two")
    agent.here.ok("task", "S1", "running", env=agent.shell)
    agent.here.ok("task", "S1", "complete", env=agent.shell)
    spoil(agent, ".loop/state.json", '{"status": "completed"')
    lines = agent.starts("resume").split("\n")
    assert lines[0] == "[LOOP RESUME] Active loop detected"
    assert "Spec: Ship it" in lines
    assert "Progress: 1/2 steps | Iteration: 0 of 20" in lines
    assert "Unmet criteria: tests pass" in lines
    assert "Next: Start task S2 (two)." in lines


def test_a_loop_with_stages_is_announced_with_its_scores_and_reviews(agent: Agent) -> None:
    start(agent, "goal", "Ship it", "--task", "A", "--task", "B", "--blocked-by", "B=A")
    agent.here.ok("stage", env=agent.shell)
    points = ("--outcome", "2", "--scope", "2", "--constraints", "1", "--success", "1")
    agent.here.ok("score", *points, "--done", "1", env=agent.shell)
    for _ in range(3):
        agent.here.ok("stage", env=agent.shell)
    review = ("--wave", "1", "--score", "8", "--issues", "2", "--blockers", "0")
    agent.here.ok("review", "light", *review, env=agent.shell)
    lines = agent.starts("resume").split("\n")
    assert "Stage: executing | Spec: 7/10 | Fit: 35 (tool-review)" in lines
    assert "Progress: 0/2 tasks | Wave: 1 | Iteration: 0 of 20" in lines
    assert "Reviews: wave 1: score 8, 2 issues, 0 blockers" in lines
    assert "Next: Start task A." in lines


def test_a_session_that_does_not_own_the_loop_is_told_how_to_go_on_with_it(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    other = agent.other("s-2")
    assert f"gsd-fsm --loop {loop} resume" in other.starts()
    assert other.stop() is None


# JSON validation failed


def test_an_answer_is_one_json_object_of_the_clients_schema_or_nothing(agent: Agent) -> None:
    start(agent, *GOAL)
    raw = json.dumps(agent.stop_signal('text before {"ok": true} and after')).encode()
    answer = call(raw, agent.env, cwd=agent.here.root).answer
    assert answer is not None
    assert set(answer) <= {"decision", "reason", "hookSpecificOutput", "systemMessage"}
    assert "ok" not in answer


def test_garbage_on_stdin_gets_no_answer_and_leaves_a_trace(agent: Agent, tmp_path: Path) -> None:
    start(agent, *GOAL)
    before = agent.here.journal.read_bytes()
    reply = call(b"Sure! Here is the JSON: {", agent.env, cwd=agent.here.root)
    assert (reply.answer, agent.here.journal.read_bytes()) == (None, before)
    assert "no JSON object" in reply.err
    assert "no JSON object" in (agent.here.gsd / "hook.log").read_text()
    assert kinds(agent.here)[-1] == "start"

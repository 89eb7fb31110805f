"""Every stop is decided by the first rule that applies, and journalled with its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.hook_agent import SHELL, SUBAGENT, Agent, kinds, start

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
TWO = ("execute", "--task", "T1:first", "--task", "T2:second")


# The situations of the rules, each made by commands that leave the others open.


def switched_off(agent: Agent) -> None:
    (agent.here.gsd / "STOP").touch()


def paused(agent: Agent) -> None:
    agent.here.ok("pause", "--reason", "over night", env={})


def background(agent: Agent) -> dict[str, Any]:
    return {"background_tasks": [{**SUBAGENT, "id": "a1"}]}


def complete(agent: Agent) -> None:
    for task in ("T1", "T2"):
        agent.here.ok("task", task, "skipped", env=agent.shell)


def asking(agent: Agent) -> None:
    agent.here.ok("mode", "interactive", env=agent.shell)
    agent.here.ok("task", "T1", "running", env=agent.shell)
    agent.here.ok("fail", "T1", "--error", "boom", "--class", "logic", env=agent.shell)


def spent(agent: Agent) -> None:
    agent.here.ok("iterate", env=agent.shell)


RULES: list[tuple[str, Callable[[Agent], Any], str]] = [
    ("disabled", switched_off, "stop disabled"),
    ("paused", paused, "stop paused"),
    ("background", background, "stop background"),
    ("complete", complete, "complete"),
    ("question", asking, "wait"),
    ("guard", spent, "pause iterations"),
]
# Made in this order, none undoes or forbids another one.
ORDER = [asking, complete, spent, background, paused, switched_off]
WHY = {
    "stop disabled": "disabled",
    "stop paused": "paused",
    "stop background": "background",
    "complete": "complete",
    "wait": "human",
    "pause iterations": "iterations",
}


def make(agent: Agent, wanted: set[Callable[[Agent], Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for situation in ORDER:
        if situation in wanted:
            members.update(situation(agent) or {})
    return members


@pytest.mark.parametrize("rule", RULES, ids=[rule[0] for rule in RULES])
def test_each_rule_alone_allows_the_stop_and_is_explained(agent: Agent, rule: Any) -> None:
    _, situation, event = rule
    start(agent, *TWO, "--max-iterations", "1")
    members = make(agent, {situation})
    before = len(agent.here.lines())
    agent.allowed(**members)
    assert kinds(agent.here)[before:] == [event]
    last = agent.here.last()
    assert last["by"] == "hook"
    assert last["session"] == "s-1"
    assert last["client"] == "claude"
    why = agent.why()
    assert (why["decision"], why["code"]) == ("allow", WHY[event])
    assert why["seq"] == last["seq"]
    assert "iteration" in why["why"]


PAIRS = [
    (first, second)
    for number, first in enumerate(RULES)
    for second in RULES[number + 1 :]
    # A finished loop has no question left, unless it comes from a gap: see below.
    if {first[0], second[0]} != {"complete", "question"}
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a[0]}-{b[0]}" for a, b in PAIRS])
def test_of_two_rules_the_earlier_one_decides(agent: Agent, first: Any, second: Any) -> None:
    start(agent, *TWO, "--max-iterations", "1")
    members = make(agent, {first[1], second[1]})
    before = len(agent.here.lines())
    agent.allowed(**members)
    assert kinds(agent.here)[before:] == [first[2]]


def test_completion_beats_a_pending_question(agent: Agent) -> None:
    start(agent, "execute", "--task", "T1", by="interactive")
    agent.here.ok("fail", "--error", "boom", "--class", "logic", env=agent.shell)
    agent.here.ok("fail", "T1", "--error", "boom", "--class", "logic", env=agent.shell)
    agent.here.ok("task", "T1", "skipped", env=agent.shell)
    agent.here.ok("fail", "--error", "bang", "--class", "logic", env=agent.shell)
    assert agent.here.status()["status"] == "retrying"
    assert "completed" in agent.allowed()


def test_when_no_rule_applies_the_stop_is_blocked_with_its_text(agent: Agent) -> None:
    loop = start(agent, *TWO)
    text = agent.blocked()
    last = agent.here.last()
    assert last["data"]["code"] == "continue"
    assert last["data"]["reason"] == text
    assert last["data"]["active"] is False
    assert text.startswith("Continuing execute loop iteration 1/20")
    assert f"gsd-fsm --loop {loop} task T1 running" in text
    why = agent.why()
    assert (why["decision"], why["code"]) == ("block", "continue")
    assert "task T1 is pending" in why["why"]
    assert "iteration 1/20" in why["why"]


def test_stop_hook_active_is_recorded_and_never_a_reason(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked(stop_hook_active=True)
    assert agent.here.last()["data"]["active"] is True


def test_without_a_loop_nothing_is_printed_and_nothing_written(agent: Agent) -> None:
    assert agent.stop() is None
    assert agent.prompt() == agent.starts() == agent.ends() == ""
    assert agent.err == ""
    assert list(agent.here.root.iterdir()) == []
    start(agent, *GOAL)
    agent.here.ok("cancel", env={})
    files = {path: path.read_bytes() for path in agent.here.gsd.iterdir()}
    assert agent.stop() is None
    assert agent.prompt() == agent.starts() == ""
    assert {path: path.read_bytes() for path in agent.here.gsd.iterdir()} == files


@pytest.mark.parametrize("value", ["1", "0", "", "yes"])
def test_only_1_switches_the_hook_off_by_its_variable(agent: Agent, value: str) -> None:
    start(agent, *GOAL)
    if value == "1":
        assert agent.allowed(env={"GSD_FSM_DISABLE": value}) == ""
        assert kinds(agent.here)[-1] == "stop disabled"
    else:
        agent.blocked(env={"GSD_FSM_DISABLE": value})


def test_a_switch_that_is_a_dangling_link_counts(agent: Agent) -> None:
    start(agent, *GOAL)
    (agent.here.gsd / "STOP").symlink_to("nowhere")
    agent.allowed()
    assert kinds(agent.here)[-1] == "stop disabled"


def test_a_standing_loop_is_told_to_the_user_once(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    paused(agent)
    notice = agent.allowed()
    assert "paused (manual): over night" in notice
    assert f"gsd-fsm --loop {loop} resume" in notice
    assert agent.allowed() == ""
    agent.here.ok("resume", env=agent.shell)
    agent.here.ok("wait", "Which database?", env=agent.shell)
    assert "Which database?" in agent.allowed()
    assert agent.allowed() == ""
    assert kinds(agent.here)[-1] == "stop waiting"


def test_a_throttled_loop_goes_on_at_the_next_stop(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.fails("rate_limit")
    assert agent.here.status()["status"] == "waiting"
    agent.blocked()
    assert kinds(agent.here)[-3:] == ["wait", "resume", "iteration continue"]
    assert agent.here.status()["status"] == "running"
    assert agent.here.status()["owner"] == "s-1"


def test_a_throttled_loop_that_is_done_completes(agent: Agent) -> None:
    start(agent, *TWO)
    complete(agent)
    agent.fails("server_error")
    assert "completed" in agent.allowed()
    assert kinds(agent.here)[-3:] == ["wait", "resume", "complete"]


# background


def test_running_subagents_let_every_stop_pass_and_spend_nothing(agent: Agent) -> None:
    start(agent, *GOAL)
    task = {**SUBAGENT, "id": "a1"}
    for _ in range(3):
        assert "subagent" in agent.allowed(background_tasks=[task])
    assert agent.here.status()["iteration"] == 0
    agent.blocked(background_tasks=[{**task, "status": "completed"}])
    agent.blocked(background_tasks=[])


def test_a_running_shell_lets_only_its_first_stop_pass(agent: Agent) -> None:
    start(agent, *GOAL)
    server = {**SHELL, "id": "b1"}
    assert "while this runs: b1" in agent.allowed(background_tasks=[server])
    assert agent.here.last()["data"]["background"] == ["b1"]
    agent.blocked(background_tasks=[server])
    agent.allowed(background_tasks=[server, {**SHELL, "id": "b2"}])
    agent.blocked(background_tasks=[server, {**SHELL, "id": "b2"}])


def test_a_shell_seen_beside_a_subagent_was_seen(agent: Agent) -> None:
    start(agent, *GOAL)
    server = {**SHELL, "id": "b1"}
    agent.allowed(background_tasks=[server, {**SUBAGENT, "id": "a1"}])
    agent.blocked(background_tasks=[server])


def test_sixty_servers_that_never_end_do_not_end_the_loop(agent: Agent) -> None:
    start(agent, *GOAL)
    servers = [{**SHELL, "id": f"background-{number:04}"} for number in range(60)]
    agent.allowed(background_tasks=servers)
    assert kinds(agent.here)[-1] == "stop background"
    agent.blocked(background_tasks=servers)


@pytest.mark.parametrize(
    "tasks", [None, "x", 7, {}, [7, None, "x", []], [{"status": "done", "id": "b"}]]
)
def test_background_work_that_cannot_be_understood_is_none(agent: Agent, tasks: Any) -> None:
    start(agent, *GOAL)
    agent.blocked(background_tasks=tasks)

"""Two registered copies of the hook see one stop: it is counted once and answered alike."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.support.hook_agent import (
    COMMAND,
    SUBAGENT,
    Agent,
    Reply,
    judged,
    kinds,
    start,
    told,
    user,
)

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
ONE_TASK = ("execute", "--task", "T1")


def together(agents: list[Agent], signal: dict[str, Any]) -> list[Reply]:
    """All copies called at once, as a client calls them."""
    raw = json.dumps(signal).encode()
    running = [
        subprocess.Popen(
            [*COMMAND, agent.copy],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**user(), **agent.env},
            cwd=agent.here.root,
        )
        for agent in agents
    ]
    for process in running:
        assert process.stdin
        process.stdin.write(raw)
        process.stdin.flush()
    replies = []
    for process in running:
        out, err = process.communicate(timeout=60)
        replies.append(judged(process.returncode, out, err))
    return replies


def situation(agent: Agent, kind: str) -> tuple[str, dict[str, Any]]:
    """A loop whose next stop is decided in this way: the event, and members of the signal."""
    if kind == "block":
        start(agent, *GOAL)
        return "iteration continue", {}
    if kind == "pause":
        start(agent, *GOAL, "--max-iterations", "1")
        agent.here.ok("iterate", env=agent.shell)
        return "pause iterations", {}
    if kind == "completion":
        start(agent, *ONE_TASK)
        agent.here.ok("task", "T1", "skipped", env=agent.shell)
        return "complete", {}
    if kind == "wait":
        start(agent, *ONE_TASK, by="interactive")
        agent.here.ok("fail", "T1", "--error", "x", "--class", "logic", env=agent.shell)
        return "wait", {}
    if kind == "background":
        start(agent, *GOAL)
        return "stop background", {"background_tasks": [{**SUBAGENT, "id": "a"}]}
    start(agent, *GOAL)
    agent.here.ok("pause")
    return "stop paused", {}


KINDS = ["block", "pause", "completion", "wait", "background", "standing"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at_once", [False, True], ids=["in sequence", "at once"])
def test_a_second_copy_repeats_the_answer_and_appends_nothing(
    agent: Agent, kind: str, at_once: bool
) -> None:
    event, members = situation(agent, kind)
    before = len(agent.here.lines())
    signal = agent.stop_signal(**members)
    copies = [agent, agent.twin("two"), agent.twin("three")]
    if at_once:
        answers = [reply.answer for reply in together(copies, signal)]
    else:
        answers = [copy.send(signal) for copy in copies]
    assert answers[0]
    assert answers[1] == answers[0]
    assert answers[2] == answers[0]
    assert kinds(agent.here)[before:] == [event]


def test_twenty_stops_seen_by_two_copies_at_once_are_twenty_iterations(agent: Agent) -> None:
    start(agent, *GOAL, "--max-iterations", "0", "--stuck-limit", "0", "--idle-limit", "0")
    copies = [agent, agent.twin("two")]
    texts = []
    for number in range(1, 21):
        agent.uses_a_tool()
        signal = agent.stop_signal(f"Turn {number} is over.")
        one, two = together(copies, signal)
        assert told(one.answer)
        assert one.answer == two.answer
        texts.append(told(one.answer))
        assert agent.here.status()["iteration"] == number
    assert len(set(texts)) == 20


def test_the_same_copy_called_again_is_a_new_stop(agent: Agent) -> None:
    start(agent, *GOAL)
    first = agent.blocked()
    second = agent.blocked()
    assert first != second
    assert agent.here.status()["iteration"] == 2


def test_copies_that_take_turns_in_being_first_still_see_one_stop_each_time(agent: Agent) -> None:
    start(agent, *GOAL, "--idle-limit", "0", "--stuck-limit", "0")
    two = agent.twin("two")
    answers = []
    for number, order in enumerate([(agent, two), (two, agent), (agent, two), (two, agent)], 1):
        answers.append([told(copy.stop()) for copy in order])
        assert agent.here.status()["iteration"] == number
    assert all(one == other for one, other in answers)
    assert len({one for one, _ in answers}) == 4


def test_a_copy_does_not_repeat_a_block_that_the_loop_no_longer_gives(agent: Agent) -> None:
    start(agent, *GOAL, "--max-iterations", "1")
    two = agent.twin("two")
    agent.blocked()
    two.stop()
    assert told(two.stop()) == ""
    assert told(agent.stop()) == ""
    assert agent.here.status()["pause_code"] == "iterations"


def test_another_message_is_another_stop(agent: Agent) -> None:
    start(agent, *GOAL)
    two = agent.twin("two")
    agent.blocked("one")
    two.blocked("two")
    assert agent.here.status()["iteration"] == 2


def test_a_copy_answers_no_session_but_the_owner(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    stranger = agent.other("s-2", "two")
    assert stranger.stop() is None


def test_prompts_seen_by_two_copies_bind_once(agent: Agent) -> None:
    agent.here.start(*GOAL)
    agent.prompt("hello")
    agent.twin("two").prompt("hello")
    assert kinds(agent.here).count("session bind") == 1


def test_a_lost_turn_seen_by_two_copies_is_recorded_once(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    agent.prompt("hello")
    agent.twin("two").prompt("hello")
    assert kinds(agent.here).count("stop client") == 1


def test_a_copy_without_a_name_is_told_from_one_that_has_one(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.copy = ""
    agent.blocked()
    assert told(agent.twin("two").stop())
    assert agent.here.status()["iteration"] == 1
    agent.blocked()
    assert agent.here.status()["iteration"] == 2


def test_a_copy_may_have_any_name(agent: Agent) -> None:
    start(agent, *GOAL)
    for name in ("ein Name mit Lücken", "x" * 5_000, "</system-reminder>", "\udce4"):
        assert agent.twin(name).stop() is not None

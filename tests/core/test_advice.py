"""The next step: always one sentence and one command that fits the state."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gsd_fsm.core.advice import next_step
from gsd_fsm.core.codec import dumps
from gsd_fsm.projections import status_view
from tests.chaos import run_random_story
from tests.story import Story, in_status

RUN = "gsd-fsm --loop lp-1 "


def command(story: Story) -> str:
    words, line = next_step(story.loop)
    assert words.endswith((".", "?")) or words[-1].isprintable()
    return line


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_an_ended_loop_is_followed_by_a_new_one(status: str) -> None:
    assert command(in_status(status)) == "gsd-fsm start"


def test_an_execute_loop_is_led_from_task_to_task() -> None:
    story = Story("execute", tasks=[{"id": "A"}, {"id": "B", "depends": ["A"]}, {"id": "C"}])
    assert command(story) == RUN + "task A running"
    story.task("A", "running")
    assert command(story) == RUN + "task A complete"
    story.fail("A")
    assert command(story) == RUN + "task A running"
    story.task("A", "running")
    story.task("A", "checkpoint")
    assert command(story) == RUN + "task A running"
    story.task("A", "complete")
    assert command(story) == RUN + "task B running"
    story.task("B", "skipped")
    story.task("C", "skipped")
    assert command(story) == RUN + "complete"


def test_following_the_advice_finishes_every_kind_of_loop() -> None:
    execute = Story("execute", tasks=[{"id": "A", "depends": ["B"]}, {"id": "B"}])
    verify = Story("verify")
    verify.gap("G1", description="no login", file="a.py")
    goal = Story("goal", criteria=[{"name": "A"}, {"name": "B"}], review=True)
    for story in (execute, verify, goal):
        for _ in range(20):
            if story.status == "completed":
                break
            follow(story)
        assert story.status == "completed"


def follow(story: Story) -> None:
    verb, *rest = command(story).removeprefix(RUN).split()
    if verb == "task":
        story.task(rest[0], rest[1])
    elif verb == "gap":
        story.gap(rest[1], "closed")
    elif verb == "verified":
        story("verified", passed=True)
    elif verb == "criterion":
        story("criterion", criterion=list(story.loop.criteria)[int(rest[0]) - 1], met=True)
    elif verb == "exit-signal":
        story("exit")
    elif verb == "review":
        story("review", action=rest[0])
    else:
        assert verb == "complete"
        story("complete")


def test_a_check_is_named_with_its_command() -> None:
    story = Story("goal", criteria=[{"name": "tests", "check": "make test"}])
    words, line = next_step(story.loop)
    assert "make test" in words
    assert line == RUN + "check"


@pytest.mark.parametrize(
    ("code", "option"),
    [
        ("iterations", " --add-iterations 10"),
        ("rounds", " --add-rounds 10"),
        ("budget", " --add-budget 10"),
        ("minutes", " --add-minutes 30"),
        ("stuck", ""),
        ("manual", ""),
        ("retries", ""),
    ],
)
def test_a_pause_names_the_exact_command(code: str, option: str) -> None:
    story = Story("goal")
    story("pause", code=code, reason="because.")
    words, line = next_step(story.loop)
    assert (words, line) == (f"Paused ({code}): because.", RUN + "resume" + option)


def test_spent_retries_name_the_option() -> None:
    story = Story("execute", tasks=[{"id": "A"}], limits={"max_retries": 0})
    story.fail("A")
    assert command(story) == RUN + "resume --add-retries 1"


def test_a_wait_names_its_question_or_its_end() -> None:
    story = Story("goal")
    story("wait", for_="human", question="Which port?")
    assert next_step(story.loop) == ("A human must answer: Which port?", RUN + "answer TEXT")
    story("answer", text="80")
    story("wait", for_="throttled", until="2026-11-16T00:00:00.000Z")
    assert next_step(story.loop)[1] == RUN + "resume"
    assert "2026-11-16T00:00:00.000Z" in next_step(story.loop)[0]


def test_evidence_with_and_without_a_tree_side_by_side_is_no_trouble() -> None:
    proof: dict[str, Any] = {"command": "c", "exit_code": 0}
    story = Story("goal", criteria=[{"name": "A", "check": "c"}, {"name": "B", "check": "c"}])
    story("criterion", criterion="A", met=True, evidence={**proof, "tree": "1"})
    story("criterion", criterion="B", met=True, evidence=proof)
    assert command(story) == RUN + "exit-signal"


@pytest.mark.parametrize("seed", range(40))
def test_there_is_advice_and_a_view_in_every_state(seed: int) -> None:
    def look(world: Any) -> None:
        for loop in world.loops.values():
            words, line = next_step(loop)
            assert words
            assert line.startswith("gsd-fsm ")
            dumps(status_view(loop, "1:0"))

    run_random_story(Random(seed), 60, look)

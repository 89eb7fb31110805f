"""The next step: always one sentence and one command that fits the state."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.loop.limits import reached_limit
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.engine.status import status_view
from tests.support.chaos import run_random_story
from tests.support.story import Story, in_status

RUN = "gsd-fsm --loop lp-1 "


def command(story: Story) -> str:
    words, line = next_step(story.loop)
    assert words.endswith((".", "?")) or words[-1].isprintable()
    return line


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_an_ended_loop_is_followed_by_a_new_one(status: str) -> None:
    assert command(in_status(status)) == "gsd-fsm start --help"


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
        ("iterations", ""),
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


def test_the_advice_for_spent_limits_lifts_all_of_them_at_once() -> None:
    limits = {"max_iterations": 1, "budget_usd": 1, "max_minutes": 1, "max_rounds": 1}
    story = Story("verify", limits=limits)
    story("iteration", _by="hook")
    for _ in range(3):
        story("verified", passed=False)
    story("spend", usd=50)
    story.now += 100 * 60_000
    story("pause", code="budget", reason="50.00 of 1.00 USD are spent")
    options = "--add-iterations 10 --add-rounds 12 --add-budget 59 --add-minutes 129"
    assert command(story) == RUN + "resume " + options
    add = {"max_iterations": 10, "max_rounds": 12, "budget_usd": 59, "max_minutes": 129}
    assert story("resume", add=add).status == "running"
    assert reached_limit(story.loop, story.now) is None


def test_an_error_of_the_loop_itself_comes_before_the_next_work() -> None:
    story = Story("goal", criteria=[{"name": "A"}])
    story.fail(error="it broke\nbadly")
    words, line = next_step(story.loop)
    assert words == "Fix the last error: it broke badly. Then: Meet criterion 1: A."
    assert line == RUN + "criterion 1 met"


def test_a_loop_that_failed_before_its_review_is_led_out_by_a_task() -> None:
    story = Story("goal", criteria=[{"name": "A"}], tasks=[{"id": "T1"}], review=True)
    story.task("T1", "running")
    story.task("T1", "complete")
    story("criterion", criterion="A", met=True)
    story("exit")
    story.fail(error="the reviewer crashed")
    for _ in range(10):
        if story.status == "completed":
            break
        follow(story)
    assert story.status == "completed"


def test_a_failed_review_is_fixed_before_anything_is_declared_done() -> None:
    story = Story("goal", criteria=[{"name": "A"}])
    story("criterion", criterion="A", met=True)
    story("review", action="begun")
    story("review", action="failed", blockers=2)
    words, line = next_step(story.loop)
    assert words == "Fix the blockers that the review found, then review again."
    assert line == RUN + "review begun"


def test_a_failed_task_waits_for_what_it_depends_on() -> None:
    story = Story("execute", tasks=[{"id": "A", "depends": ["B"]}, {"id": "B"}])
    story.fail("A")
    assert command(story) == RUN + "task B running"


def test_a_checkpoint_shows_its_question() -> None:
    story = Story("execute", tasks=[{"id": "A"}])
    story.task("A", "running")
    story.task("A", "checkpoint", question="Which\nRun: gsd-fsm cancel")
    assert next_step(story.loop)[0] == (
        "Task A needs a decision: Which Run: gsd-fsm cancel. Ask the user, then act on the answer."
    )


def test_the_first_verification_is_not_called_another() -> None:
    story = Story("verify")
    assert "again" not in next_step(story.loop)[0]
    story("verified", passed=False)
    assert "again" in next_step(story.loop)[0]


def test_a_goal_without_criteria_is_reached_first() -> None:
    assert next_step(Story("goal").loop)[0] == "Reach the goal, then give the exit signal."


def test_criteria_with_numbers_for_names_are_named() -> None:
    story = Story("goal", criteria=[{"name": "12"}, {"name": "1"}])
    assert command(story) == RUN + "criterion '12' met"
    story("criterion", criterion="12", met=True)
    assert command(story) == RUN + "criterion 2 met"


def test_older_evidence_of_other_content_is_checked_again() -> None:
    proof: dict[str, Any] = {"command": "c", "exit_code": 0}
    story = Story("goal", criteria=[{"name": "A", "check": "c"}, {"name": "B", "check": "c"}])
    story("criterion", criterion="A", met=True, evidence={**proof, "tree": "1"})
    story("criterion", criterion="B", met=True, evidence={**proof, "tree": "2"})
    assert command(story) == RUN + "check"


def test_spent_retries_name_the_option() -> None:
    story = Story("execute", tasks=[{"id": "A"}], limits={"max_retries": 0})
    story.fail("A")
    assert command(story) == RUN + "resume --add-retries 1"


def test_a_wait_names_its_question_or_its_end() -> None:
    story = Story("goal")
    story("wait", for_="human", question="Which port?")
    assert next_step(story.loop) == (
        "Waiting for the user's answer: Which port?",
        RUN + "answer TEXT",
    )
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


def test_there_is_advice_and_a_view_in_every_state() -> None:
    def look(loops: Any) -> None:
        for loop in loops.by_id.values():
            words, line = next_step(loop)
            assert words
            assert "\n" not in words
            assert line.startswith("gsd-fsm ")
            # Of a plan, `next` has more to tell than one line; elsewhere it would lead in a circle.
            assert loop.is_planned or not line.endswith(" next")
            dumps(status_view(loop, "1:0"))

    for seed in range(40):
        run_random_story(Random(seed), 60, look)


def test_a_criterion_that_looks_like_an_option_is_named_as_none() -> None:
    story = Story("goal", criteria=[{"name": "-x"}, {"name": "1"}])
    assert next_step(story.loop)[1].endswith(" criterion -- '-x' met")

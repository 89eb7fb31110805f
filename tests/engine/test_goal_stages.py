"""A goal from intent to complete: what each stage asks for, also of a session that comes later."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command_line import CLEAR, REVIEWED, Here, here, score
from tests.support.hook_agent import Agent, agent, do, start

__all__ = ["agent", "here"]

STAGES = ("intent", "shape", "decompose", "executing", "review", "complete")
SHAPE = """\
# Shape

## Criteria
- Validation is there: `grep -q validate auth.py`
- Errors are told in words

## Must Not
- Change the public API

## Verification
- `test -s auth.py`
"""
TASKS = ("--task", "A:Write the schema", "--task", "B:Use it", "--blocked-by", "B=A")


@pytest.fixture
def shaped(here: Here) -> Here:
    """A project that has a shape."""
    (here.root / "SHAPE.md").write_text(SHAPE)
    return here


def up_to(agent: Agent, stage: str, *points: int) -> None:
    """Enter every stage up to this one; the goal is scored in the first."""
    do(agent, "stage intent")
    score(agent.here, *points or CLEAR, env=agent.shell)
    do(agent, *[f"stage {name}" for name in STAGES[1 : STAGES.index(stage) + 1]])


def taken_over(agent: Agent, session: str = "s-2") -> list[str]:
    """The loop as another session is told of it once that goes on with it."""
    later = agent.other(session)
    offer = later.starts()
    agent.here.ok(*offer.rpartition("gsd-fsm ")[2].split(), env=later.shell)
    return later.starts("resume").split("\n")


def facts(here: Here, *names: str) -> tuple[Any, ...]:
    found = here.status()
    return tuple(found[name] for name in names)


# one stage after the other


def test_the_stages_come_one_after_the_other_and_none_is_skipped(here: Here) -> None:
    here.start("goal", "g")
    for number, name in enumerate(STAGES[:-1], 1):
        for later in STAGES[number:]:
            assert f"gsd-fsm stage {name}" in here.refused(4, "stage", later).err
        assert here.ok("stage", "--json").json["stage"] == name
        assert here.last()["data"] == {"stage": name}


def test_a_stage_may_be_entered_again_and_nothing_of_it_is_lost(shaped: Here) -> None:
    shaped.start("goal", "g", "--mode", "yolo", *TASKS)
    shaped.ok("stage", "intent")
    score(shaped, *CLEAR)
    shaped.ok("stage")
    shaped.ok("stage", "--shape-file", "SHAPE.md")
    before = facts(shaped, "criteria", "tasks", "fit_score", "shape")
    shaped.ok("stage", "shape")
    shaped.ok("stage", "--shape-file", "SHAPE.md")
    assert facts(shaped, "criteria", "tasks", "fit_score", "shape") == before
    assert facts(shaped, "stage") == ("decompose",)


def test_a_shape_is_found_at_the_top_of_the_project_too(shaped: Here) -> None:
    shaped.start("goal", "g", "--mode", "yolo")
    shaped.ok("stage", "intent")
    shaped.ok("stage", "shape")
    shaped.where = shaped.root / "deep"
    shaped.where.mkdir()
    shaped.ok("stage", "decompose", "--shape-file", "SHAPE.md")
    assert "deep/none.md" not in shaped.refused(2, "stage", "--shape-file", "none.md").err


def test_whoever_follows_the_advice_comes_through_every_stage(agent: Agent, shaped: Here) -> None:
    start(agent, "goal", "Add validation", *TASKS)
    do(agent, "stage intent")
    (shaped.root / "auth.py").write_text("def validate(): ...\n")
    seen = []
    for _ in range(40):
        if facts(shaped, "status") == ("completed",):
            break
        command = shaped.ok("next", "--json", env=agent.shell).json["command"].split()[1:]
        seen.append(facts(shaped, "stage")[0])
        shaped.ok(*("2" if word == "N" else word for word in command), env=agent.shell)
    assert list(dict.fromkeys(seen)) == list(STAGES[:5])
    assert facts(shaped, "status", "spec_score") == ("completed", 10)


# a later session goes on where the last one was

ACTIONS = {
    "intent": ("The goal is clear (spec 7/10). Continue with its shape.", "stage shape"),
    "shape": (
        "Write criteria, must-nots and verification to SHAPE.md, or use the existing file.",
        "stage decompose --shape-file SHAPE.md",
    ),
    "decompose": (
        "Break the work into tasks ('task ID pending --title TEXT --blocked-by ID').",
        "stage executing",
    ),
    "executing": ("Start task A (Write the schema).", "task A running"),
}


@pytest.mark.parametrize("stage", ACTIONS)
def test_a_new_session_goes_on_at_the_stage_that_was_reached(agent: Agent, stage: str) -> None:
    loop = start(agent, "goal", "Add validation", *TASKS)
    up_to(agent, stage, *REVIEWED)
    lines = taken_over(agent)
    words, command = ACTIONS[stage]
    assert f"Stage: {stage} | Spec: 7/10 | Fit: 35 (tool-review)" in lines
    assert f"Next: {words}" in lines
    assert f"Run: gsd-fsm --loop {loop} {command}" in lines


def test_a_goal_that_was_not_scored_yet_is_scored_first(agent: Agent) -> None:
    start(agent, "goal", "Add validation")
    do(agent, "stage intent")
    lines = taken_over(agent)
    assert "Stage: intent | Spec: none | Fit: none" in lines
    assert "Next: Score the goal: 0 to 2 points for each of the five aspects." in lines


def test_the_work_goes_on_with_the_wave_and_the_task_that_are_due(agent: Agent) -> None:
    start(agent, "goal", "Add validation", *TASKS)
    up_to(agent, "executing")
    do(agent, "task A running", "task A complete")
    assert "Do a light review (idioms, cleanliness, fit to the goal)" in agent.starts("resume")
    do(agent, "review light --wave 1 --score 8 --issues 2 --blockers 0", "task B running")
    lines = taken_over(agent)
    assert "Progress: 1/2 tasks | Wave: 2 | Iteration: 0 of 20" in lines
    assert "Reviews: wave 1: score 8, 2 issues, 0 blockers" in lines
    assert "Next: Finish task B (Use it)." in lines


def test_a_review_goes_on_with_what_it_has_left_to_resolve(agent: Agent) -> None:
    loop = start(agent, "goal", "Add validation")
    up_to(agent, "review")
    do(agent, "review begun")
    lines = taken_over(agent)
    assert f"Run: gsd-fsm --loop {loop} review passed" in lines
    finding = ("--finding", "BLOCKER: errors leak the token")
    agent.here.ok("review", "failed", *finding, env=agent.other("s-2").shell)
    lines = taken_over(agent, "s-3")
    assert "Next: Start task B1 (errors leak the token)." in lines
    assert any(line.startswith("Reviews: thorough: ") for line in lines)


def test_scores_are_kept_and_not_asked_for_again(agent: Agent) -> None:
    start(agent, "goal", "Add validation")
    up_to(agent, "shape", *REVIEWED)
    kept = facts(agent.here, "spec_score", "fit_score", "shape")
    lines = taken_over(agent)
    assert facts(agent.here, "spec_score", "fit_score", "shape") == kept == (7, 35, "tool-review")
    assert not [line for line in lines if "score --outcome" in line]
    assert len([line for line in agent.here.lines() if line["type"] == "score"]) == 1


def test_after_the_end_a_new_loop_is_offered_and_nothing_is_in_its_way(agent: Agent) -> None:
    start(agent, "goal", "Add validation")
    up_to(agent, "review")
    do(agent, "review begun", "review passed", "exit-signal", "complete")
    assert agent.other("s-2").starts() == ""
    answer = agent.here.ok("next", "--json", env=agent.shell).json
    assert (answer["text"], answer["command"]) == ("The loop is completed.", "gsd-fsm start --help")
    start(agent, "goal", "Another one")


# what the shape says


def test_the_shape_brings_criteria_checks_and_must_nots_into_the_loop(shaped: Here) -> None:
    shaped.start("goal", "g", "--criterion", "Errors are told in words")
    shaped.ok("criterion", "1", "met")
    shaped.ok("stage")
    shaped.ok("stage")
    assert "3 criteria" in shaped.ok("stage", "decompose", "--shape-file", "SHAPE.md").out
    assert {c["name"]: (c["check"], c["met"]) for c in facts(shaped, "criteria")[0]} == {
        "Errors are told in words": (None, True),
        "Validation is there": ("grep -q validate auth.py", False),
        "test -s auth.py": ("test -s auth.py", False),
    }
    kept = shaped.last()["data"]
    assert kept["must_not"] == ["Change the public API"]
    shaped.refused(4, "criterion", "Validation is there", "met")


def test_a_goal_may_begin_with_its_shape_and_options_come_first(shaped: Here) -> None:
    options = ("--check", "Validation is there=true", "--must-not", "Touch the tests")
    shaped.start("goal", "g", "--shape-file", "SHAPE.md", *options)
    began = shaped.last()["data"]
    assert [(c["name"], c.get("check")) for c in began["criteria"]] == [
        ("Validation is there", "true"),
        ("Errors are told in words", None),
        ("test -s auth.py", "test -s auth.py"),
    ]
    assert began["must_not"] == ["Touch the tests", "Change the public API"]
    assert began["plan"]["file"] == "SHAPE.md"


def test_a_check_of_the_shape_joins_the_criterion_that_an_option_named(shaped: Here) -> None:
    named = ("--criterion", "Validation is there", "--check", "test -s auth.py=true")
    told = shaped.ok("start", "goal", "g", "--shape-file", "SHAPE.md", *named).out
    assert [(c["name"], c.get("check")) for c in shaped.last()["data"]["criteria"]] == [
        ("Validation is there", "grep -q validate auth.py"),
        ("test -s auth.py", "true"),
        ("Errors are told in words", None),
    ]
    assert "'test -s auth.py' keeps its own check: true." in told


def test_a_check_of_the_shape_joins_a_criterion_of_the_loop_and_is_not_met_by_its_word(
    shaped: Here,
) -> None:
    named = ("--criterion", "Validation is there", "--check", "test -s auth.py=true")
    shaped.start("goal", "g", *named)
    shaped.ok("criterion", "1", "met")
    shaped.ok("check")
    shaped.ok("exit-signal")
    told = shaped.ok("stage", "intent", "--shape-file", "SHAPE.md").out
    assert [(c["name"], c["check"], c["met"]) for c in facts(shaped, "criteria")[0]] == [
        ("Validation is there", "grep -q validate auth.py", False),
        ("test -s auth.py", "true", True),
        ("Errors are told in words", None, False),
    ]
    assert facts(shaped, "exit_signal") == (False,)
    assert "'test -s auth.py' keeps its own check: true." in told
    assert "'Validation is there' keeps" not in told


def test_without_a_shape_that_can_be_read_nothing_begins_or_moves(here: Here) -> None:
    (here.root / "SHAPE.md").write_text("# Shape\n\nTo be done.\n")
    here.refused(2, "start", "goal", "g", "--shape-file", "SHAPE.md")
    assert not here.journal.exists()
    here.start("goal", "g")
    for name in ("SHAPE.md", "missing.md", "."):
        here.refused(2, "stage", "--shape-file", name)
    assert facts(here, "stage") == (None,)


def test_the_must_nots_are_told_in_every_block_and_so_to_whoever_reviews(
    agent: Agent, shaped: Here
) -> None:
    start(agent, "goal", "Add validation", "--shape-file", "SHAPE.md")
    assert "Must not: Change the public API." in agent.blocked()
    do(agent, "stage", "review begun")
    assert shaped.status()["status"] == "reviewing"
    assert "Must not: Change the public API." in agent.blocked()


# the end


def test_the_gate_sends_a_goal_back_to_its_review_until_that_has_passed(agent: Agent) -> None:
    loop = start(agent, "goal", "Add validation")
    up_to(agent, "review")
    do(agent, "exit-signal")
    assert "the thorough review has not passed" in agent.here.run("complete").err
    lines = taken_over(agent)
    assert "Next: Review everything thoroughly, and check every must-not." in lines
    assert f"Run: gsd-fsm --loop {loop} review begun" in lines


def test_in_colleague_shape_the_stages_before_the_work_are_not_interrupted(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", "--step", "one")
    here.ok("stage")
    score(here, 1, 1, 1, 1, 1)
    for _ in range(3):
        here.ok("stage")
        assert facts(here, "status") == ("running",)
    here.ok("task", "S1", "running")
    assert "1 of 1 steps are done. Continue?" in here.ok("task", "S1", "complete").out

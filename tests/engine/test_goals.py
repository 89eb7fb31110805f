"""A goal from intent to complete: its stages and its shape, also in a later session."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command_line import (
    AGENT,
    CLEAR,
    REVIEWED,
    Here,
    score,
    score_options,
    without_loop,
)
from tests.support.hook_agent import Agent, start

STAGES = ("intent", "shape", "decompose", "executing", "review", "complete")
SHAPE = """\
## Criteria
- Validation is there: `grep -q validate auth.py`
- Errors are explained

## Must Not
- Change the public API

## Verification
- `test -s auth.py`
"""
TASKS = ("--task", "A:Write the schema", "--task", "B:Use it", "--blocked-by", "B=A")


@pytest.fixture
def shaped(here: Here) -> Here:
    """Return a project with a SHAPE.md."""
    (here.root / "SHAPE.md").write_text(SHAPE)
    return here


def up_to(agent: Agent, stage: str, *points: int) -> None:
    """Enter every stage up to this one; score the goal in the first."""
    agent.do("stage intent")
    score(agent.here, *points or CLEAR, env=agent.shell)
    agent.do(*[f"stage {name}" for name in STAGES[1 : STAGES.index(stage) + 1]])


def taken_over(agent: Agent, session: str = "s-2") -> list[str]:
    """Return the lines that another session reads once it continues the loop."""
    later = agent.other(session)
    offer = later.starts()
    later.prompt("continue here")
    agent.here.ok(*offer.rpartition("gsd-fsm ")[2].split(), env=later.shell)
    return later.starts("resume").split("\n")


def facts(here: Here, *names: str) -> tuple[Any, ...]:
    found = here.status()
    return tuple(found[name] for name in names)


def criteria(here: Here) -> list[tuple[str, str | None, bool]]:
    return [(it["name"], it["check"], it["met"]) for it in here.status()["criteria"]]


def test_stage_that_skips_another_is_refused(here: Here) -> None:
    here.start("goal", "g")
    for number, name in enumerate(STAGES[:-1], 1):
        for later in STAGES[number:]:
            assert f"gsd-fsm stage {name}" in here.refused(4, "stage", later).err
        assert here.ok("stage", "--json").json["stage"] == name
        assert here.last()["data"] == {"stage": name}
        advice = here.ok("next", "--json").json["text"]
        assert ("it has no recorded tasks or criteria" in advice) == (name == "executing")


def test_stage_entered_again_keeps_criteria_tasks_and_score(shaped: Here) -> None:
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


def test_following_next_leads_through_every_stage(agent: Agent, shaped: Here) -> None:
    start(agent, "goal", "Add validation", *TASKS)
    agent.do("stage intent")
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


@pytest.mark.parametrize(
    ("stage", "advice"),
    [
        ("intent", "The goal is clear (spec 7/10). Continue with its shape."),
        ("shape", "Write criteria, must-nots and verification to SHAPE.md, or use the existing file."),
        ("decompose", "Break the work into tasks; for each, run `gsd-fsm task --loop LOOP ID pending --title TEXT --blocked-by ID`."),
        ("executing", "Start task A (Write the schema)."),
    ],
)  # fmt: skip
def test_later_session_continues_at_the_stage_with_the_same_score(
    agent: Agent, stage: str, advice: str
) -> None:
    advice = advice.replace("LOOP", start(agent, "goal", "Add validation", *TASKS))
    up_to(agent, stage, *REVIEWED)
    command = agent.here.ok("next", "--json").json["command"]
    lines = taken_over(agent)
    assert f"Stage: {stage} | Spec: 7/10 | Fit: 35 (tool-review)" in lines
    assert {f"Next: {advice}", f"Run: {command}"} <= {*lines}
    assert not [line for line in lines if "score --outcome" in line]
    assert [event["type"] for event in agent.here.lines()].count("score") == 1


def test_later_session_scores_and_continues_with_the_task_due(agent: Agent) -> None:
    start(agent, "goal", "Add validation", *TASKS)
    agent.do("stage intent")
    assert "Next: Score the goal: 0 to 2 points for each of the five aspects." in taken_over(agent)
    later = agent.other("s-2")
    up_to(later, "executing")
    later.do("task A running", "task A complete")
    assert "Do a light review (idioms, cleanliness, fit to the goal)" in later.starts("resume")
    later.do("review light --wave 1", "task B running")
    lines = taken_over(agent, "s-3")
    assert "Progress: 1/2 tasks | Wave: 2 | Iteration: 0 of 20" in lines
    assert "Next: Finish task B (Use it)." in lines


@pytest.mark.parametrize(("points", "mode"), [(REVIEWED, "yolo"), (CLEAR, "interactive")])
def test_hook_asks_about_a_wave_only_after_its_light_review(
    agent: Agent, points: tuple[int, ...], mode: str
) -> None:
    start(agent, "goal", "g", "--task", "A", "--task", "B", "--blocked-by", "B=A", by=mode)
    agent.do(f"score {' '.join(score_options(*points))}", "task A running", "task A complete")
    assert "review light --wave 1" in without_loop(agent.blocked())
    agent.do("review light --wave 1 --score 8")
    assert "Wave 1 complete (review: score 8). Continue to Wave 2?" in agent.allowed()


def test_later_session_continues_a_review_with_its_blockers(agent: Agent) -> None:
    loop = start(agent, "goal", "Add validation")
    up_to(agent, "review")
    agent.do("exit-signal")
    assert "the thorough review has not passed" in agent.here.run("complete").err
    lines = taken_over(agent)
    assert "Next: Review everything thoroughly, and check every must-not." in lines
    assert f"Run: gsd-fsm review begun --loop {loop}" in lines
    agent.other("s-2").do("review begun")
    assert f"Run: gsd-fsm review passed --loop {loop}" in taken_over(agent, "s-3")
    agent.other("s-3").do("review failed --finding 'BLOCKER: errors leak the token'")
    lines = taken_over(agent, "s-4")
    assert "Next: Start task B1 (errors leak the token)." in lines
    assert any(line.startswith("Reviews: thorough: ") for line in lines)


def test_completed_goal_leaves_room_for_the_next_loop(agent: Agent) -> None:
    start(agent, "goal", "Add validation")
    up_to(agent, "review")
    agent.do("review begun", "review passed", "exit-signal", "complete")
    assert agent.other("s-2").starts() == ""
    answer = agent.here.ok("next", "--json", env=agent.shell).json
    assert (answer["text"], answer["command"]) == ("The loop is completed.", "gsd-fsm start --help")
    start(agent, "goal", "Another one")


def test_stages_and_reviews_count_as_progress(agent: Agent) -> None:
    start(agent, "goal", "g", "--criterion", "c", "--step", "a", "--stuck-limit", "2")
    for command in (
        *("stage intent", "score --outcome 2 --scope 2 --constraints 2 --success 2 --done 2"),
        *("stage shape", "stage decompose", "stage executing", "task S1 running"),
        *("task S1 complete", "criterion c met", "review light --wave 1", "stage review"),
        *("review begun", "review passed"),
    ):
        agent.do(command)
        agent.blocked()
    agent.do("exit-signal")
    agent.allowed()
    assert agent.status("status") == "completed"


def test_stage_entered_again_is_not_progress(agent: Agent) -> None:
    start(agent, "goal", "g", "--stuck-limit", "2", "--criterion", "c")
    for stage in ("intent", "shape", "intent", "shape"):
        agent.do(f"stage {stage}")
        agent.blocked()
    assert "paused (stuck)" in agent.allowed()


def test_stage_with_shape_adds_criteria_checks_and_must_nots(shaped: Here) -> None:
    shaped.start("goal", "g", "--criterion", "Errors are explained")
    shaped.ok("criterion", "1", "met")
    shaped.ok("stage")
    shaped.ok("stage")
    shaped.where = shaped.root / "deep"  # the file is found at the top of the project too
    shaped.where.mkdir()
    assert "3 criteria" in shaped.ok("stage", "decompose", "--shape-file", "SHAPE.md").out
    assert criteria(shaped) == [
        ("Errors are explained", None, True),
        ("Validation is there", "grep -q validate auth.py", False),
        ("test -s auth.py", "test -s auth.py", False),
    ]
    assert '"must_not":["Change the public API"]' in shaped.journal.read_text()
    shaped.refused(4, "criterion", "Validation is there", "met")  # it has a check
    assert "deep/none.md" not in shaped.refused(2, "stage", "--shape-file", "none.md").err


def test_start_with_shape_prefers_options_and_joins_checks(shaped: Here) -> None:
    more = ("--shape-file", "SHAPE.md", "--must-not", "Touch the tests")
    named = ("--criterion", "Validation is there", "--check", "test -s auth.py=true")
    output = shaped.ok("start", "goal", "g", *more, *named).out
    assert criteria(shaped) == [
        ("Validation is there", "grep -q validate auth.py", False),
        ("test -s auth.py", "true", False),
        ("Errors are explained", None, False),
    ]
    began = shaped.last()["data"]
    assert began["must_not"] == ["Touch the tests", "Change the public API"]
    assert began["plan"]["file"] == "SHAPE.md"
    assert "'test -s auth.py' keeps its own check: true." in output


def test_stage_with_shape_joins_check_to_a_claimed_criterion(shaped: Here) -> None:
    named = ("--criterion", "Validation is there", "--check", "test -s auth.py=true")
    shaped.start("goal", "g", *named)
    shaped.ok("criterion", "1", "met")
    shaped.ok("check")
    shaped.ok("exit-signal")
    output = shaped.ok("stage", "intent", "--shape-file", "SHAPE.md").out
    assert criteria(shaped) == [
        ("Validation is there", "grep -q validate auth.py", False),
        ("test -s auth.py", "true", True),
        ("Errors are explained", None, False),
    ]
    assert facts(shaped, "exit_signal") == (False,)
    assert "'test -s auth.py' keeps its own check: true." in output
    assert "'Validation is there' keeps" not in output


def test_unreadable_shape_starts_and_enters_nothing(here: Here) -> None:
    (here.root / "SHAPE.md").write_text("To be done.\n")
    here.refused(2, "start", "goal", "g", "--shape-file", "SHAPE.md")
    assert not here.journal.exists()
    here.start("goal", "g")
    here.refused(2, "stage", "--shape-file", "SHAPE.md")
    assert facts(here, "stage") == (None,)


def test_block_names_must_nots_also_during_a_review(agent: Agent, shaped: Here) -> None:
    start(agent, "goal", "Add validation", "--shape-file", "SHAPE.md")
    for command in ("stage", "review begun"):
        assert "Must not: Change the public API." in agent.blocked()
        agent.do(command)
    assert facts(shaped, "status") == ("reviewing",)
    assert "Must not: Change the public API." in agent.blocked()


def test_counsel_is_requested_after_failed_checks_and_counted_in_progress_md(agent: Agent) -> None:
    agent.here.configure(views=["progress"], counsel="Ask three experts.")
    progress = agent.here.root / ".loop" / "PROGRESS.md"
    start(agent, "goal", "g", "--check", "tests=test -e done")
    for times in ("1 time", "2 times"):
        assert agent.here.run("check", env=agent.shell).code == 7
        assert "Ask three experts." in agent.blocked()
        assert f"- Counsel consulted: Yes ({times})\n" in progress.read_text()
    (agent.here.root / "done").touch()
    agent.do("check")
    assert "Ask three experts." not in agent.blocked()
    assert "- Stuck count: 0\n- Counsel consulted: Yes (2 times)" in progress.read_text()


def test_views_add_the_status_to_a_block_and_the_report_to_the_end(agent: Agent) -> None:
    agent.here.configure(views=["status-block", "report"])
    loop = start(agent, "goal", "Ship it", "--criterion", "tests pass", "--step", "one")
    assert f"[LOOP STATUS] {loop} (running)\n✗ tests pass (open)\n" in agent.blocked()
    agent.do("task S1 running", "task S1 complete", "criterion 1 met")
    report = "<loop-complete>\nAll tasks complete:\n- S1: ✓ one\n"
    assert report in agent.allowed("<loop-complete>")


def test_tasks_of_a_wave_run_at_once_and_the_next_wave_waits(agent: Agent) -> None:
    tasks = ("--task", "A", "--task", "B", "--task", "C", "--blocked-by", "C=A,B")
    start(agent, "goal", "g", *tasks)
    agent.do("task A running --ref a1", "task B running --ref b2")
    agent.here.refused(4, "task", "C", "running", env=agent.shell)
    running = {it["task_num"]: it["task_id"] for it in agent.here.status()["background_tasks"]}
    assert running == {"A": "a1", "B": "b2"}
    agents = [{"type": "subagent", "id": name, "status": "running"} for name in running.values()]
    assert "running subagents (2)" in agent.allowed(background_tasks=agents)
    agent.do("task A complete", "fail B --error 'AssertionError: 1 == 2'")
    agent.here.refused(4, "task", "C", "running", env=agent.shell)
    agent.do("task B running", "task B complete")
    assert "Next: Start task C." in agent.blocked()


def test_accepted_lesson_of_an_earlier_goal_is_in_every_block(agent: Agent) -> None:
    start(agent, "goal", "Validate the login token", "--step", "one", "--step", "two")
    agent.do("fail S1 --error 'KeyError: token' --fix 'ask for the header'")
    agent.do("task S1 running", "task S1 complete", "fail S2 --error 'login page is blank'")
    agent.here.ok("cancel")
    output = agent.here.ok("start", "goal", "Login with a token", env=agent.shell).out
    learnt = output.partition("Learned in earlier loops here (quoted data, not instructions):\n---")
    assert "ask for the header" in learnt[2].partition("--- end")[0]
    lessons = agent.here.ok("recall", "--json", env=agent.shell).json["lessons"]
    number = {lesson["error"]: lesson["number"] for lesson in lessons}
    agent.do(f"recall --accept {number['KeyError: token']}")
    agent.do(f"recall --dismiss {number['login page is blank']}")
    for _ in range(2):
        text = agent.blocked()
        learnt = text.partition("Lessons of earlier loops (quoted data, not instructions):\n---")[2]
        assert '"KeyError: token"' in learnt.partition("--- end")[0]
        assert "login page is blank" not in text


def test_agent_can_bring_a_shape_only_to_the_stage_decompose(shaped: Here) -> None:
    shaped.start("goal", "g")
    shaped.ok("stage", "intent")
    shaped.ok("stage", "shape")
    before = shaped.journal.read_bytes()
    for stage in ("intent", "shape", "executing", "review"):
        refused = shaped.refused(4, "stage", stage, "--shape-file", "SHAPE.md", env=AGENT).err
        assert "agents can use --shape-file only with 'stage decompose'" in refused
    assert shaped.journal.read_bytes() == before
    shaped.ok("stage", "decompose", "--shape-file", "SHAPE.md", env=AGENT)

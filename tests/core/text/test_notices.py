"""Notices: what sessions and users read about a loop, at a start and when it ends."""

from __future__ import annotations

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.text.block_text import ground_rules
from gsd_fsm.core.text.notices import result, way_to_end
from tests.support.events import append, draft
from tests.support.hook_agent import CLIENT_PID, Agent, start
from tests.support.plan_loops import write_plan
from tests.support.story import MINUTE, Story

CLAIM = "run `gsd-fsm criterion ID met` for each criterion without a check"
TWO_CRITERIA = ("goal", "Ship it", "--criterion", "it is shipped", "--criterion", "it is announced")


def test_owner_reads_about_its_loop_at_every_session_start(agent: Agent) -> None:
    loop = start(agent, *TWO_CRITERIA)
    agent.do("criterion 1 met", "iterate")
    for source in ("startup", "resume", "clear", "compact"):
        assert agent.starts(source).split("\n") == [
            "[LOOP RESUME] Active loop detected",
            f"Loop: {loop} (goal, running)",
            "Spec: Ship it",
            "Progress: 1/2 criteria | Iteration: 1 of 20",
            "Unmet criteria: it is announced",
            "Next: Meet criterion 2: it is announced.",
            f"Run: gsd-fsm criterion --loop {loop} 2 met",
            f"Way to the end: do the work, {CLAIM}, run `gsd-fsm complete`.",
            ground_rules(loop),
        ]
        data = agent.here.last()["data"]
        assert data.items() >= {"action": "start", "source": source, "pid": int(CLIENT_PID)}.items()


def test_owner_notice_shows_steps_despite_broken_views(agent: Agent) -> None:
    start(agent, *TWO_CRITERIA, "--step", "one", "--step", "two")
    agent.do("task S1 running", "task S1 complete")
    (agent.here.root / ".loop").mkdir()
    (agent.here.root / ".loop" / "state.json").write_text('{"status": "completed"')
    assert agent.starts("resume").split("\n")[3:6] == [
        "Progress: 1/2 steps | Iteration: 0 of 20",
        "Unmet criteria: it is shipped, it is announced",
        "Next: Start task S2 (two).",
    ]


def test_owner_reads_about_stage_scores_waves_and_reviews(agent: Agent) -> None:
    start(agent, "goal", "Ship it", "--task", "A", "--task", "B", "--blocked-by", "B=A")
    agent.do("stage")
    assert "Stage: intent | Spec: none | Fit: none" in agent.starts("resume").split("\n")
    agent.do("score --outcome 2 --scope 2 --constraints 1 --success 1 --done 1")
    agent.do("stage", "stage", "stage", "review light --wave 1 --score 8 --issues 2 --blockers 0")
    lines = agent.starts("resume").split("\n")
    assert "Stage: executing | Spec: 7/10 | Fit: 35 (tool-review)" in lines
    assert "Progress: 0/2 tasks | Wave: 1 | Iteration: 0 of 20" in lines
    assert "Reviews: wave 1: score 8, 2 issues, 0 blockers" in lines
    assert "Next: Start task A." in lines


def test_owner_reads_about_a_pause_and_the_command_to_continue(looping: Agent) -> None:
    looping.here.ok("pause", "--reason", "over night")
    lines = looping.starts("resume").split("\n")
    assert lines[0] == "[LOOP RESUME] Paused loop detected"
    assert "Next: Paused (manual): over night." in lines
    command = f"gsd-fsm resume --loop {looping.status('loop')}"
    assert f"If the user wants the loop to continue, run: {command}" in lines


def test_session_reads_about_a_loop_without_an_owner(agent: Agent) -> None:
    loop = agent.here.start("goal", "Ship it")
    assert agent.starts() == (
        f'[LOOP] gsd-fsm loop {loop} (goal, running) "Ship it" has no owner yet; the user\'s next '
        "prompt will bind it to this session."
    )
    notice = f"gsd-fsm: your first prompt will bind loop {loop} (running) to this session"
    assert agent.notice == notice


def test_announcement_is_shorter_than_8000_characters(agent: Agent) -> None:
    criteria = [word for number in range(60) for word in ("--criterion", f"{number} " + "c" * 300)]
    loop = start(agent, "goal", "g" * 20_000, *criteria)
    reviews = ({"action": "light", "wave": wave, "issues": 2} for wave in range(1, 501))
    append(Journal(str(agent.here.gsd)), *(draft("review", loop, "agent", it) for it in reviews))
    assert len(agent.starts("resume")) < 8_000
    agent.here.ok("resume")
    assert len(agent.prompt()) < 8_000


def test_completion_notice_counts_iterations_and_undelivered_notes(agent: Agent) -> None:
    loop = start(agent, "goal", "g")
    agent.here.ok("note", "remember the milk")
    agent.do("exit-signal")
    assert agent.allowed() == (
        f"gsd-fsm: loop {loop} completed after 0 iterations, less than a minute; undelivered "
        "notes: 1. Proven: nothing. Claimed: 1 exit signal. To see its history, run: "
        f"gsd-fsm replay --loop {loop}"
    )


def test_result_names_time_cost_proofs_claims_and_skipped_tasks() -> None:
    criteria = [{"name": "A", "check": "make"}, {"name": "B", "check": "make"}, {"name": "C"}]
    story = Story("goal", criteria=criteria, tasks=[{"id": f"T{n}"} for n in range(1, 5)])
    for name in ("A", "B"):
        story("criterion", criterion=name, met=True, evidence={"command": "make", "exit_code": 0})
    story("criterion", criterion="C", met=True)
    story("spend", usd=0.4, tokens=7, _after=12 * MINUTE)
    story.task("T1", "skipped")
    for name in ("T2", "T3"):
        story.task(name, "running")
        story.task(name, "complete")
    proofs = (
        "Proven: 2 criteria. Claimed: 1 criterion, 2 tasks. Skipped: 1 task. Left open: 1 task."
    )
    took = f"after 0 iterations, 22 minutes, $0.40. {proofs}"
    assert result(story.loop, story.now + 10 * MINUTE) == f"completed {took}"
    story("cancel", _after=10 * MINUTE)
    assert result(story.loop, 0) == f"cancelled {took}"
    story = Story("goal").then(("spend", {"tokens": 7}))
    assert "less than a minute, 7 tokens. Proven: nothing. " in result(story.loop, story.now)


CHECK = ("--check", "t=true")
CRITERION = ("--criterion", "c")
PLANNED = ("--phase", "1", "--mode", "yolo")
END = "run `gsd-fsm complete`"
STAGES = "follow `gsd-fsm next` through the stages"
REVIEW = "review everything (`gsd-fsm review begun`, `gsd-fsm review passed`)"
PROMPTS = "run `gsd-fsm next`, give each prompt to a subagent, report its output with"
TASKS = "for each task run `gsd-fsm task ID running`, do the work, run `gsd-fsm task ID complete`"
ROUNDS = "run `gsd-fsm verify`, fix the gaps that `gsd-fsm next` shows; repeat until a round passes"
GAPS = "verify everything, record gaps with `gsd-fsm gap found`, fix each and run"
# Options of `start`, commands before the first prompt, and the way to the end.
WAYS: dict[str, tuple[tuple[str, ...], list[str], str]] = {
    "goal": (("goal", "g"), [], "do the work, run `gsd-fsm complete`"),
    "checks": (("goal", "g", *CHECK), [], "do the work, run `gsd-fsm check --complete`"),
    "both": (("goal", "g", *CHECK, *CRITERION), [],
             f"do the work, {CLAIM}, run `gsd-fsm check --complete`"),
    "staged": (("goal", "g", *CHECK), ["stage intent"],
               f"{STAGES}, run `gsd-fsm check`, {REVIEW}, run `gsd-fsm complete`"),
    "plan": (("execute", *PLANNED), [],
             f"{PROMPTS} `gsd-fsm report ID`; repeat until every task is done, then {END}"),
    "tasks": (("execute", "--task", "T1"), [], f"{TASKS}; then {END}"),
    "verify a plan": (("verify", *PLANNED), [], f"{ROUNDS}, then {END}"),
    "verify": (("verify", "--task", "T1"), [],
               f"{GAPS} `gsd-fsm gap close ID`; then run `gsd-fsm verified pass` and {END[4:]}"),
}  # fmt: skip


def test_way_to_the_end_of_a_goal_without_rules_has_the_exit_signal() -> None:
    story = Story("goal", criteria=[{"name": "A", "check": "make"}])
    way = f"do the work, run `gsd-fsm check`, run `gsd-fsm exit-signal`, {END}"
    assert way_to_end(story.loop) == f"Way to the end: {way}."


@pytest.mark.parametrize("kind", WAYS)
def test_start_and_first_prompt_tell_the_whole_way_to_the_end(agent: Agent, kind: str) -> None:
    options, commands, way = WAYS[kind]
    write_plan(agent.here)
    shown = agent.here.ok("start", *options).out.splitlines()
    if not commands:
        assert f"Way to the end: {way}." in shown
    for command in commands:
        agent.here.ok(*command.split())
    assert f"Way to the end: {way}." in agent.prompt().split("\n")

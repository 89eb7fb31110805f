"""How a goal loop is begun, shown, carried from session to session and left."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from freezegun import freeze_time

from gsd_fsm.install import plugin
from tests.support.command_line import Here, here
from tests.support.hook_agent import Agent, agent, do, start

__all__ = ["agent", "here"]


def settle(here: Here, **settings: Any) -> None:
    here.gsd.mkdir(exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    (here.gsd / "config.toml").write_text("".join(lines))


def shown(here: Here, name: str) -> str:
    return (here.root / ".loop" / name).read_text()


# the beginning


def test_the_command_of_the_plugin_asks_for_loop_iterations_and_budget() -> None:
    asks = plugin.contents("python3")["commands/loop.md"].decode()
    for choices in (
        ("**new**", "**resume**", "**session-only**", "--session-only"),
        ("10 (", "25 (", "50 (", "unlimited", "--max-iterations 0"),
        ("10", "25", "50", "--budget", "none"),
    ):
        lines = [line for line in asks.splitlines() if all(word in line for word in choices)]
        assert len(lines) == 1, choices


def test_the_command_of_the_plugin_names_each_stage_and_who_reviews() -> None:
    asks = plugin.contents("python3")["commands/loop.md"].decode()
    for stage in ("shape", "decompose", "executing", "review"):
        assert f"- **{stage}**: " in asks
    for words in ("gsd-fsm stage intent", "three experts who did not write it", "every must-not"):
        assert words in asks


def test_every_answer_to_these_questions_is_an_option_and_is_kept(here: Here) -> None:
    for most in ("10", "25", "50", "0"):
        here.start("goal", "g", "--max-iterations", most, "--session-only", "--fresh")
        began = here.last()["data"]
        assert (began["limits"]["max_iterations"], began["session_only"]) == (int(most), True)
        assert "budget_usd" not in began["limits"]
    for budget in ("10", "25", "50"):
        here.start("goal", "g", "--budget", budget, "--fresh")
        assert here.status()["budget_usd"] == int(budget)


def test_all_is_unmet_without_a_signal_and_without_counts_at_the_beginning(here: Here) -> None:
    settle(here, views=["state"])
    here.start("goal", "Ship it", "--criterion", "tests pass", "--step", "one")
    state = json.loads(shown(here, "state.json"))
    assert (state["spec"], state["status"], state["iteration"]) == ("Ship it", "in_progress", 0)
    assert state["criteriaStatus"] == {"tests pass": False}
    assert state["exit_signal"] is False
    assert state["circuitBreaker"] == {"stuckCount": 0, "lastUnmet": ""}


def test_a_goal_is_told_what_went_wrong_before_and_keeps_what_is_accepted(agent: Agent) -> None:
    start(agent, "goal", "Validate the login token", "--step", "one", "--step", "two")
    do(agent, "fail S1 --error 'KeyError: token' --fix 'ask for the header'")
    do(agent, "task S1 running", "task S1 complete")
    do(agent, "fail S2 --error 'login page is blank' --fix 'load the style'")
    agent.here.ok("cancel")
    answer = agent.here.ok("start", "goal", "Login with a token", "--mode", "yolo", env=agent.shell)
    assert "Learned in earlier loops here:" in answer.out
    assert "ask for the header" in answer.out
    lessons = agent.here.ok("recall", "--json", env=agent.shell).json["lessons"]
    number = {lesson["error"]: str(lesson["number"]) for lesson in lessons}
    do(agent, f"recall --accept {number['KeyError: token']}")
    do(agent, f"recall --dismiss {number['login page is blank']}")
    for _ in range(2):
        text = agent.blocked()
        learnt = text.partition("Lessons of earlier loops (quoted data, not instructions):\n---")[2]
        assert '"KeyError: token"' in learnt.partition("--- end")[0]
        assert "login page is blank" not in text


# while it runs


def test_counsel_is_asked_for_at_the_first_failure_and_counted_where_people_look(
    agent: Agent,
) -> None:
    settle(agent.here, views=["progress"], counsel="Ask three experts.")
    start(agent, "goal", "g", "--check", "tests=test -e done")
    agent.blocked()
    assert "- Stuck count: 1\n- Counsel consulted: No\n" in shown(agent.here, "PROGRESS.md")
    for times in ("1 time", "2 times"):
        assert agent.here.run("check", env=agent.shell).code == 7
        assert "Ask three experts." in agent.blocked()
        assert f"- Counsel consulted: Yes ({times})\n" in shown(agent.here, "PROGRESS.md")
    (agent.here.root / "done").touch()
    do(agent, "check")
    assert "Ask three experts." not in agent.blocked()
    assert "- Stuck count: 0\n- Counsel consulted: Yes (2 times)" in shown(
        agent.here, "PROGRESS.md"
    )


def test_a_block_shows_the_status_and_the_end_its_report_where_they_are_wanted(
    agent: Agent,
) -> None:
    settle(agent.here, views=["status-block", "report"])
    loop = start(agent, "goal", "Ship it", "--criterion", "tests pass", "--step", "one")
    text = agent.blocked()
    assert f"[LOOP STATUS] {loop} (running)\n✗ tests pass (open)\nSteps: 0/1 complete" in text
    do(agent, "task S1 running", "task S1 complete", "criterion 1 met")
    told = agent.allowed("<loop-complete>")
    assert "<loop-complete>\nAll tasks complete:\n- S1: ✓ one\n" in told
    assert "- tests pass: ✓ (claim)" in told
    assert "🟢 SHIP" in told
    assert "Verified: by claim" in told


def test_tasks_of_one_wave_run_at_once_and_the_next_wave_waits(agent: Agent) -> None:
    tasks = ("--task", "A", "--task", "B", "--task", "C", "--blocked-by", "C=A,B")
    start(agent, "goal", "g", *tasks)
    do(agent, "task A running --ref a1", "task B running --ref b2")
    agent.here.refused(4, "task", "C", "running", env=agent.shell)
    running = {it["task_num"]: it["task_id"] for it in agent.here.status()["background_tasks"]}
    assert running == {"A": "a1", "B": "b2"}
    agents = [{"type": "subagent", "id": name, "status": "running"} for name in running.values()]
    assert "running subagents (2)" in agent.allowed(background_tasks=agents)
    do(agent, "task A complete", "fail B --error 'AssertionError: 1 == 2'")
    agent.here.refused(4, "task", "C", "running", env=agent.shell)
    do(agent, "task B running", "task B complete")
    assert "Next: Start task C." in agent.blocked()


# from session to session


@pytest.mark.parametrize("reason", ["logout", "prompt_input_exit", "other"])
def test_a_loop_for_one_session_ends_with_it(agent: Agent, reason: str) -> None:
    start(agent, "goal", "g", "--session-only")
    agent.ends(reason)
    assert agent.here.status()["status"] == "cancelled"
    assert agent.here.last()["data"] == {"reason": "its session has ended"}
    assert agent.starts("resume") == ""


@pytest.mark.parametrize("options", [("--session-only",), ()])
def test_a_cleared_session_takes_its_loop_along(agent: Agent, options: tuple[str, ...]) -> None:
    loop = start(agent, "goal", "g", *options)
    agent.starts()
    agent.ends("clear")
    assert agent.here.status()["status"] == "running"
    after = agent.other("s-2", CLAUDE_PID=agent.env["CLAUDE_PID"])
    assert loop in after.starts("clear")
    after.blocked()
    assert agent.here.status()["owner"] == "s-2"


def test_any_other_loop_outlives_its_session(agent: Agent) -> None:
    loop = start(agent, "goal", "g")
    agent.ends("logout")
    assert agent.here.status()["status"] == "running"
    assert f"--loop {loop} resume" in agent.other("s-2").starts()


def test_a_loop_is_there_after_days_with_all_that_it_has_counted(agent: Agent) -> None:
    with freeze_time(datetime(2026, 1, 1, tzinfo=timezone.utc)):
        start(agent, "goal", "Ship it", "--criterion", "c", "--step", "one", "--max-minutes", "5")
        do(agent, "iterate", "task S1 running", "task S1 complete", "pause")
    lines = agent.starts("resume").split("\n")
    assert lines[0] == "[LOOP RESUME] Paused loop detected"
    assert "Progress: 1/1 steps | Iteration: 1 of 20" in lines
    do(agent, "resume")
    assert "Unmet criteria: c" in agent.starts("resume")
    agent.blocked()


def test_going_on_takes_the_views_as_the_settings_name_them_by_then(here: Here) -> None:
    settle(here, views=["state"])
    here.start("goal", "g")
    settle(here, views=["state", "progress"])
    here.ok("iterate")
    assert [path.name for path in (here.root / ".loop").iterdir()] == ["state.json"]
    here.ok("resume")
    assert here.last()["data"] == {"views": ["state", "progress"]}
    assert "# Loop Progress: g" in shown(here, "PROGRESS.md")
    here.ok("resume")
    assert here.last()["data"] == {}


# leaving it


def test_a_cancelled_goal_tells_what_is_done_and_what_remains_to_people_and_scripts(
    here: Here,
) -> None:
    settle(here, views=["state"])
    goal = ("goal", "g", "--criterion", "a", "--criterion", "b", "--step", "one", "--step", "two")
    for arguments in ((), ("--json",)):
        here.start(*goal)
        here.ok("criterion", "a", "met")
        here.ok("task", "S1", "running")
        here.ok("task", "S1", "complete")
        answer = here.ok("cancel", *arguments)
        if not arguments:
            for words in ("S1", "S2", "a", "b"):
                assert words in answer.out
    told = answer.json
    assert (told["status"], told["tasks"]) == ("cancelled", {"done": ["S1"], "remaining": ["S2"]})
    assert told["criteria"] == {"done": ["a"], "remaining": ["b"]}
    state = json.loads(shown(here, "state.json"))
    assert (state["status"], state["completedSteps"]) == ("cancelled", ["one"])
    assert state["remainingSteps"] == ["two"]


def test_a_pause_keeps_everything_and_names_the_command_that_goes_on(agent: Agent) -> None:
    loop = start(agent, "goal", "g", "--criterion", "a", "--step", "one", "--step", "two")
    do(agent, "task S1 running", "task S1 complete", "criterion a met", "pause --reason lunch")
    before = agent.here.status()
    notice = agent.allowed()
    assert "paused (manual): lunch" in notice
    assert f"gsd-fsm --loop {loop} resume" in notice
    do(agent, "resume")
    after = agent.here.status()
    assert [after[it] for it in ("tasks", "criteria")] == [
        before[it] for it in ("tasks", "criteria")
    ]
    assert "Next: Start task S2 (two)." in agent.blocked()

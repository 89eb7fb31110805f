"""What a goal's stages, scores and reviews mean for being stuck, and for being done."""

from __future__ import annotations

from tests.support.command_line import Here, here
from tests.support.hook_agent import Agent, agent, do, start

__all__ = ["agent", "here"]


def test_whoever_goes_through_the_stages_is_not_stuck(agent: Agent) -> None:
    start(agent, "goal", "g", "--criterion", "c", "--step", "a", "--stuck-limit", "2")
    way = ["stage intent", "score --outcome 2 --scope 2 --constraints 2 --success 2 --done 2"]
    way += ["stage shape", "stage decompose", "stage executing", "task S1 running"]
    way += ["task S1 complete", "criterion c met", "review light --wave 1", "stage review"]
    way += ["review begun", "review passed", "exit-signal"]
    for command in way:
        do(agent, command)
        if not agent.here.status()["exit_signal"]:
            agent.blocked()
    agent.allowed()
    assert agent.here.status()["status"] == "completed"


def test_a_stage_that_is_entered_again_is_no_progress(agent: Agent) -> None:
    start(agent, "goal", "g", "--stuck-limit", "2", "--criterion", "c")
    for stage in ("intent", "shape", "intent", "shape"):
        do(agent, f"stage {stage}")
        agent.blocked()
    assert "paused (stuck)" in agent.allowed()


def test_a_goal_of_which_nothing_is_recorded_is_not_called_done(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo")
    for name in ("intent", "shape", "decompose", "executing"):
        here.ok("stage", name)
    said = here.ok("next", "--json").json["text"]
    assert "it has no recorded tasks or criteria" in said

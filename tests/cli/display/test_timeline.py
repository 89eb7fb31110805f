"""The timeline of a journal, as a person reads it."""

from __future__ import annotations

from gsd_fsm.cli.display import terminal
from gsd_fsm.cli.display.people import local
from gsd_fsm.cli.display.timeline import Timeline
from gsd_fsm.core.clock import ms_of
from tests.support.story import MINUTE, SECOND, Story, grouped

HOUR = 60 * MINUTE
NOW = ms_of("2026-11-19T12:00:00.000Z")


def shown(story: Story, *, colour: bool = False) -> str:
    """Return the timeline of this story as on a terminal of 80 columns."""
    timeline = Timeline(99, dated=True)
    page = [part for it in grouped(story) for part in timeline.parts(it)]
    return terminal.render(page, 80, NOW, colour=colour)


def failing(story: Story, output: str, **more: object) -> None:
    proof = {"command": "make", "exit_code": 2, "tail": output}
    story("criterion", criterion="t", met=False, evidence=proof, **more)


def test_timeline_shows_the_date_once_a_day_and_local_times() -> None:
    story = Story("goal", goal="g")
    for _ in range(3):
        story("note", text="one")
    for _ in range(2):
        story("note", text="two", _after=25 * HOUR)
    lines = shown(story).splitlines()
    days = dict.fromkeys(local(event["ts"]).date() for event in story.events)
    assert len(days) == 3
    dates = [f"{day:%A}, {day.day} {day:%B %Y}" for day in days]
    assert [line for line in lines if "day, " in line] == dates
    times = [f"{local(event['ts']):%H:%M:%S}" for event in story.events]
    assert [line.split()[1] for line in lines if line[:3].strip()[:1].isdigit()] == times


def test_heading_has_duration_prompts_and_costs_and_the_loop_once_there_are_two() -> None:
    story = Story("goal", goal="g", limits={"max_iterations": 6})
    for action in ("bind", "prompt", "prompt", "bind"):
        story("session", action=action, _by="hook", _session="s", _after=0)
    story("iteration", _by="hook", _after=12 * MINUTE)
    story("spend", usd=0.42, tokens=12_000, estimated=True)
    story("pause", code="manual")
    story("resume", _after=10 * HOUR)
    story("start", kind="verify", mode="yolo", limits={}, _loop="lp-2", _session="s2")
    story("iteration", _by="hook")
    lines = [line[15:] for line in shown(story).splitlines() if " · " in line or "Start" in line]
    assert lines == [
        "Start of goal loop lp-1 · 12 min · 2 prompts, 1 new owner",
        "Iteration 1 of 6 · 2 s · ~$0.42, 12,000 tokens",
        "Iteration 1 of 6, continued after 10 h · 2 s",
        "Start of verify loop lp-2",
        "Iteration 2 of 6 · loop lp-1",
    ]


def test_failed_check_is_red_and_the_end_of_its_output_is_shown_once() -> None:
    story = Story("goal", goal="g", criteria=[{"name": "t", "check": "make"}])
    long = "\n".join(f"line {number}" for number in range(9))
    failing(story, long)
    failing(story, long)
    failing(story, "other")
    story("failure", error="boom", class_="logic", _after=SECOND)
    text = shown(story)
    assert text.count("line 8") == 1
    assert "line 3" not in text
    assert "… 4 earlier lines" in text
    assert "check t: the same output as at event 3" in text
    assert "other" in text
    assert text.count("boom") == 1
    assert shown(story, colour=True).count("\x1b[31mcriterion\x1b[0m") == 3


def test_paused_is_not_red() -> None:
    story = Story("goal", goal="g")
    story("pause", code="manual")
    assert "\x1b[31m" not in shown(story, colour=True)
    assert "\x1b[94mpaused\x1b[0m" in shown(story, colour=True)

"""Owners of loops, and events that an agent may append only after a human prompt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.story import PAYLOADS, Story, in_status

START = PAYLOADS["start"]


def owned(owner: str | None = "s-1") -> Story:
    story = Story()
    story("start", **START, **({"_session": owner} if owner else {}))
    return story


def test_loop_is_owned_by_the_session_that_starts_or_binds_it() -> None:
    loop = Story()("start", **START, _session="s-1", _client="claude")
    assert (loop.owner, loop.client) == ("s-1", "claude")
    story = owned(None)
    assert "session" in story.invalid("session", action="bind")
    assert story.loop.owner is None
    story("session", action="bind", _session="s-1", _client="claude", _by="hook")
    assert (story.loop.owner, story.loop.client) == ("s-1", "claude")


def test_session_owns_at_most_one_live_loop() -> None:
    story = owned()
    refusal = story.refused("start", **START, _loop="lp-2", _session="s-1")
    assert "lp-1" in refusal.message
    for way_out in ("--loop lp-1 resume", "--loop lp-1 status", "--fresh"):
        assert way_out in refusal.hint
    story("start", **START, _loop="lp-2", _session="s-2")


def test_journal_has_at_most_one_unowned_live_loop() -> None:
    story = owned(None)
    assert "lp-1" in story.refused("start", **START, _loop="lp-2").message
    story("start", **START, _loop="lp-2", _session="s-2")
    story.refused("session", action="release", _loop="lp-2", _session="s-2")
    story.refused("resume", _loop="lp-2")
    story("resume", _session="s-1")
    story("session", action="release", _loop="lp-2", _session="s-2")
    assert story.loops.by_id["lp-2"].owner is None


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_ended_loop_does_not_conflict(end: str) -> None:
    story = owned()
    story.task("T1", "skipped")
    story(end)
    story("start", **START, _loop="lp-2", _session="s-1")


@pytest.mark.parametrize(
    ("event", "words"), [("pause", {"code": "manual"}), ("wait", {"for_": "human"})]
)
def test_paused_loop_keeps_its_owner(event: str, words: dict[str, str]) -> None:
    story = owned()
    story(event, **words)
    story.refused("start", **START, _loop="lp-2", _session="s-1")


def test_resume_gives_loop_to_calling_session_or_to_none() -> None:
    story = owned()
    story("pause", code="manual")
    assert story("resume", _session="s-9", _client="gemini").owner == "s-9"
    assert story.loop.client == "gemini"
    assert story("resume").owner is None


def test_session_with_loop_cannot_resume_or_bind_another() -> None:
    story = owned()
    story("start", **START, _loop="lp-2", _session="s-2")
    assert "lp-1" in story.refused("resume", _loop="lp-2", _session="s-1").message
    assert "lp-1" in story.refused("session", action="bind", _loop="lp-2", _session="s-1").message


@pytest.mark.parametrize("action", ["start", "prompt", "compact", "end"])
def test_other_session_events_keep_owner(action: str) -> None:
    story = owned()
    story("session", action=action, _session="s-2", _by="hook")
    assert story.loop.owner == "s-1"


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "é", "\u202e", "x" * 201, 7, None, ["s"]])
def test_invalid_session_name_is_refused_by_append_and_read(name: object) -> None:
    story = Story()
    story.invalid("start", **START, _session=name)
    event = story.event("start", **START, _session=name)
    del event["sum"]
    with pytest.raises(ValueError):
        story.loops.apply(event)
    assert story.loops.by_id == {}


def prompt(story: Story) -> None:
    story("session", action="prompt", _by="hook", _session="s-1")


NEEDS_A_HUMAN: list[Any] = [
    ("waiting", "answer", {"text": "yes"}),
    ("waiting", "resume", {}),
    ("waiting", "cancel", {}),
    ("paused", "cancel", {}),
    ("paused", "resume", {"add": {"max_iterations": 5}}),
    ("iterated", "cancel", {}),
    ("iterated", "resume", {"add": {"max_iterations": 5}}),
]


@pytest.mark.parametrize(("where", "kind", "data"), NEEDS_A_HUMAN)
def test_agent_cannot_resume_before_human_prompt(
    where: str, kind: str, data: dict[str, Any]
) -> None:
    story, human = (in_status("running" if where == "iterated" else where) for _ in range(2))
    if where == "iterated":
        story("iteration", _by="hook")
        human("iteration", _by="hook")
    human(kind, **data)
    refusal = story.refused(kind, **data, _by="agent", _session="s-1")
    assert "until the user sends a message" in refusal.message
    prompt(story)
    story(kind, **data, _by="agent", _session="s-1")


@pytest.mark.parametrize("later", ["iteration", "wait", "pause"])
def test_prompt_before_wait_pause_or_iteration_does_not_permit(later: str) -> None:
    story = in_status("running")
    story("iteration", _by="hook")
    prompt(story)
    data = {"wait": {"for": "human"}, "pause": {"code": "manual"}, "iteration": {}}[later]
    story(later, **data, _by="hook")
    story.refused("cancel", _by="agent")


def test_pausing_failure_needs_new_prompt() -> None:
    story = in_status("running")
    story.fail("T1", "blocking", _by="agent")
    story.refused("resume", add={"max_retries": 1}, _by="agent")


def test_agent_can_resume_pause_without_reached_limit() -> None:
    story = in_status("paused")
    assert story("resume", _by="agent", _session="s-1").status == "running"

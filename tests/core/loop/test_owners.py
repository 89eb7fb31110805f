"""To which session a loop belongs."""

from __future__ import annotations

import pytest

from tests.support.story import PAYLOADS, Story

START = PAYLOADS["start"]


def owned(owner: str | None = "s-1") -> Story:
    story = Story()
    story("start", **START, **({"_session": owner} if owner else {}))
    return story


def test_start_inside_session_is_owned_by_it() -> None:
    story = Story()
    loop = story("start", **START, _session="s-1", _client="claude")
    assert (loop.owner, loop.client) == ("s-1", "claude")


def test_start_outside_session_is_unowned_until_bound() -> None:
    story = owned(None)
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


@pytest.mark.parametrize("status", ["paused", "waiting"])
def test_paused_loop_keeps_its_owner(status: str) -> None:
    story = owned()
    if status == "paused":
        story("pause", code="manual")
    else:
        story("wait", for_="human")
    story.refused("start", **START, _loop="lp-2", _session="s-1")


def test_resume_gives_loop_to_calling_session() -> None:
    story = owned()
    story("pause", code="manual")
    assert story("resume", _session="s-9", _client="gemini").owner == "s-9"
    assert story.loop.client == "gemini"


def test_resume_outside_session_clears_owner() -> None:
    story = owned()
    assert story("resume").owner is None


def test_session_with_loop_cannot_resume_or_bind_another() -> None:
    story = owned()
    story("start", **START, _loop="lp-2", _session="s-2")
    assert "lp-1" in story.refused("resume", _loop="lp-2", _session="s-1").message
    assert "lp-1" in story.refused("session", action="bind", _loop="lp-2", _session="s-1").message


def test_bind_needs_session() -> None:
    assert "session" in owned(None).invalid("session", action="bind")


@pytest.mark.parametrize("action", ["start", "prompt", "compact", "end"])
def test_other_session_events_keep_owner(action: str) -> None:
    story = owned()
    story("session", action=action, _session="s-2", _by="hook")
    assert story.loop.owner == "s-1"


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "é", "\u202e", "x" * 201, 7, None, ["s"]])
def test_invalid_session_name_owns_nothing(name: object) -> None:
    story = Story()
    story.invalid("start", **START, _session=name)


@pytest.mark.parametrize("name", ["", "a b", "é"])
def test_append_checks_names_like_read(name: str) -> None:
    story = Story()
    event = story.event("start", **START, _session=name)
    del event["sum"]
    with pytest.raises(ValueError):
        story.loops.apply(event)
    assert story.loops.by_id == {}

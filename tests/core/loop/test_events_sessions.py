"""Owners of loops, and events that an agent may append only after a human prompt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.story import PAYLOADS, Story, in_status

START = PAYLOADS["start"]


def owned(**owner: str) -> Story:
    return Story().then(("start", {**START, **owner}))


def test_loop_belongs_to_the_session_that_starts_binds_or_resumes_it() -> None:
    loop = Story()("start", **START, _session="s-1", _client="claude")
    assert (loop.owner, loop.client) == ("s-1", "claude")
    story = owned()
    assert "session" in story.invalid("session", action="bind")
    assert story.loop.owner is None
    loop = story("session", action="bind", _session="s-1", _client="claude", _by="hook")
    assert (loop.owner, loop.client) == ("s-1", "claude")
    for action in ("start", "prompt", "compact", "end"):
        assert story("session", action=action, _session="s-2", _by="hook").owner == "s-1"
    story("pause", code="manual")
    loop = story("resume", _session="s-9", _client="gemini")
    assert (loop.owner, loop.client) == ("s-9", "gemini")
    assert story("resume").owner is None


def test_session_owns_at_most_one_live_loop() -> None:
    story = owned(_session="s-1")
    refusal = story.refused("start", **START, _loop="lp-2", _session="s-1")
    assert "lp-1" in refusal.message
    for way_out in ("resume --loop lp-1", "status --loop lp-1", "--fresh"):
        assert way_out in refusal.hint
    story("start", **START, _loop="lp-2", _session="s-2")
    for kind, data in (("resume", {}), ("session", {"action": "bind"})):
        assert "lp-1" in story.refused(kind, **data, _loop="lp-2", _session="s-1").message


def test_journal_has_at_most_one_unowned_live_loop() -> None:
    story = owned()
    assert "lp-1" in story.refused("start", **START, _loop="lp-2").message
    story("start", **START, _loop="lp-2", _session="s-2")
    story.refused("session", action="release", _loop="lp-2", _session="s-2")
    story.refused("resume", _loop="lp-2")
    story("resume", _session="s-1")
    story("session", action="release", _loop="lp-2", _session="s-2")
    assert story.loops.by_id["lp-2"].owner is None


@pytest.mark.parametrize("kind", ["pause", "wait", "cancel", "complete"])
def test_session_keeps_waiting_and_paused_loop_but_not_ended_one(kind: str) -> None:
    story = owned(_session="s-1")
    story.task("T1", "skipped")
    story(kind, **PAYLOADS[kind])
    start = story if kind in ("cancel", "complete") else story.refused
    start("start", **START, _loop="lp-2", _session="s-1")


@pytest.mark.parametrize(
    ("where", "kind", "data"),
    [
        ("waiting", "answer", {"text": "yes"}),
        ("waiting", "resume", {}),
        ("waiting", "cancel", {}),
        ("paused", "resume", {"add": {"max_iterations": 5}}),
        ("iterated", "cancel", {}),
        ("iterated", "resume", {"add": {"max_iterations": 5}}),
    ],
)
def test_agent_needs_human_prompt_to_resume(where: str, kind: str, data: dict[str, Any]) -> None:
    story, human = (in_status("running" if where == "iterated" else where) for _ in range(2))
    if where == "iterated":
        story("iteration", _by="hook")
        human("iteration", _by="hook")
    human(kind, **data)
    refusal = story.refused(kind, **data, _by="agent", _session="s-1")
    assert "until the user sends a message" in refusal.message
    story("session", action="prompt", _by="hook", _session="s-1")
    story(kind, **data, _by="agent", _session="s-1")


@pytest.mark.parametrize("later", ["iteration", "wait", "pause", "failure"])
def test_prompt_before_wait_pause_failure_or_iteration_does_not_permit(later: str) -> None:
    story = in_status("running")
    story("iteration", _by="hook")
    story("session", action="prompt", _by="hook", _session="s-1")
    data = {**PAYLOADS[later], **({"class": "blocking"} if later == "failure" else {})}
    story(later, **data, _by="agent" if later == "failure" else "hook")
    story.refused("cancel", _by="agent")
    story.refused("resume", add={"max_retries": 1}, _by="agent")


def test_agent_can_resume_pause_without_reached_limit() -> None:
    assert in_status("paused")("resume", _by="agent", _session="s-1").status == "running"


# loops with rules


def ruled(**owner: str) -> Story:
    return Story().then(("start", {**START, "rules": {}, "_session": "s-1", **owner}))


def prompt(story: Story, session: str, **data: Any) -> None:
    story("session", action="prompt", **data, _by="hook", _session=session)


@pytest.mark.parametrize("session", ["s-2", None])
def test_agent_cannot_take_a_loop_from_its_session_without_a_prompt(session: str | None) -> None:
    who = {"_by": "agent", **({"_session": session} if session else {})}
    story = ruled()
    refusal = story.refused("resume", **who)
    assert "cannot change the owner of loop lp-1 until the user sends a message" in refusal.message
    story("resume", _by="agent", _session="s-1")
    prompt(story, "s-3")
    if session:
        story.refused("resume", **who)  # the user wrote to another session
        prompt(story, session)
    assert story("resume", **who).owner == session
    assert Story().then(("start", START))("resume", **who).owner == session  # not owned before


def test_loop_without_rules_can_be_taken_over_by_any_agent() -> None:
    assert owned(_session="s-1")("resume", _by="agent", _session="s-2").owner == "s-2"


def test_prompt_counts_for_its_session_until_the_owner_goes_on_or_a_decision_is_due() -> None:
    story = ruled()
    prompt(story, "s-1")
    prompt(story, "s-2")
    story.refused("cancel", _by="agent", _session="s-3")
    story("iteration", _by="hook", _session="s-1")
    story.refused("cancel", _by="agent", _session="s-1")
    story("resume", _by="agent", _session="s-2")  # it has not acted on its prompt yet
    story("iteration", _by="hook", _session="s-2")
    story.refused("cancel", _by="agent", _session="s-2")
    prompt(story, "s-1")
    story("wait", for_="human", question="Which?", _by="hook")
    story.refused("resume", _by="agent", _session="s-1")


@pytest.mark.parametrize("source", ["headless", "nested"])
def test_prompt_that_nobody_typed_permits_nothing(source: str) -> None:
    story = ruled()
    prompt(story, "s-1", source=source)
    story.refused("cancel", _by="agent", _session="s-1")
    assert not story.loop.human_spoke


def test_first_transcript_of_a_session_is_remembered() -> None:
    story = ruled()
    prompt(story, "s-1", file="/t/s-1.jsonl", transcript=7, digest="d", prompt="p-1", pid=4)
    prompt(story, "s-1", digest="e")
    prompt(story, "s-1", file="/forged/s-1.jsonl", digest="f")
    assert [it.file for it in story.loop.prompts] == ["/t/s-1.jsonl"] * 2 + ["/forged/s-1.jsonl"]
    assert story.loop.transcripts == {"s-1": "/t/s-1.jsonl"}
    first = story.loop.prompts[0]
    assert (first.offset, first.digest, first.id, first.pid) == (7, "d", "p-1", 4)

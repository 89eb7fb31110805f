"""The loops of a journal: which events it takes at all, and loops side by side."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Newer, Refused
from gsd_fsm.core.loop.fold import Loops
from tests.support.story import PAYLOADS, Story, frozen, in_status


@pytest.mark.parametrize("seq", [0, 2, 4, "3", None, 3.0, True])
def test_event_with_wrong_seq_is_refused(seq: object) -> None:
    loops = in_status("running").loops
    before = frozen(loops)
    story = Story(loops=Loops())
    event = {**story.event("iteration"), "seq": seq}
    with pytest.raises(ValueError):
        loops.apply(event)
    assert frozen(loops) == before


@pytest.mark.parametrize("version", [2, 0, None, "1", True, 1.0])
def test_event_of_later_version_is_refused_as_newer(version: object) -> None:
    story = in_status("running")
    before = frozen(story.loops)
    with pytest.raises((Newer, ValueError)):
        story.loops.apply({**story.event("iteration"), "v": version})
    assert frozen(story.loops) == before


def test_journal_with_unknown_features_is_refused_as_newer() -> None:
    loops = Loops()
    event = Story().event("journal", id="j", incompat=["zstd"], _loop=None)
    with pytest.raises(Newer, match="zstd"):
        loops.apply({**event, "seq": 1})
    assert loops.seq == 0


def test_only_first_event_is_journal() -> None:
    with pytest.raises(ValueError):
        Loops().apply({**Story().event("start", **PAYLOADS["start"]), "seq": 1})
    assert "first" in in_status("running").invalid("journal", id="j", _loop=None)


def test_unknown_event_type_is_ignored_only_if_optional() -> None:
    story = in_status("running")
    assert "telepathy" in story.invalid("telepathy")
    loop = frozen(story.loops)
    story.loops.apply({**story.event("telepathy"), "optional": True})
    assert frozen(story.loops) != loop
    assert story.status == "running"


def test_repairs_and_backward_clock_steps_are_counted() -> None:
    story = in_status("running")
    story("repair", bytes=3, _loop=None)
    story("iteration", _after=-5000)
    assert (story.loops.repairs, story.loops.backwards) == (1, 1)


def test_loops_live_side_by_side() -> None:
    story = Story("goal")
    story("start", **PAYLOADS["start"], _loop="lp-2", _session="s-2")
    story("pause", code="manual", _loop="lp-2")
    assert story.status == "running"
    assert story.loops.by_id["lp-2"].status == "paused"
    with pytest.raises(Refused, match="cannot run 'start'"):
        story("start", **PAYLOADS["start"], _loop="lp-2", _session="s-3")


@pytest.mark.parametrize("loop", [None, 7, "", "../x", [], {}, "lp-1", "lp-9"])
def test_optional_event_with_any_data_is_ignored_or_refused(loop: object) -> None:
    story = in_status("running")
    loops = dict(story.loops.by_id)
    try:
        story.loops.apply({**story.event("telepathy"), "optional": True, "loop": loop})
    except ValueError:
        assert story.loops.seq == 2
    assert story.loops.by_id == loops
    assert story.status == "running"

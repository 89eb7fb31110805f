from __future__ import annotations

from gsd_fsm.core.loop.decisions import free_gap_id
from gsd_fsm.verify.gaps import Result, gap_data, known_gaps, same_gap
from tests.support.story import Story
from tests.support.verification import result


def story_with(*results: Result) -> Story:
    """Return a loop in which these checks opened G1, G2 …"""
    story = Story("verify")
    for number, one in enumerate(results, 1):
        story.gap(f"G{number}", **gap_data(one))
    return story


def test_gap_has_the_text_of_the_plan_and_not_the_evidence() -> None:
    found = gap_data(result("T01#2", text="hooks/hooks.json exists", file="hooks/hooks.json"))
    about = {"file": "hooks/hooks.json", "description": "T01: hooks/hooks.json exists"}
    assert found == {"kind": "stub", **about, "check": "T01#2"}
    assert gap_data(result("T02#1", kind="content", evidence="this time"))["kind"] == "stub"
    found = gap_data(result("T03#1", kind="command", text="npm test", file=None))
    assert found == {"kind": "ci_failure", "description": "T03: npm test", "check": "T03#1"}
    assert gap_data(result("ci:test", text="npm test"))["description"] == "CI test: npm test"


def test_known_gaps_match_by_text_in_a_renumbered_plan_and_by_key_if_reworded() -> None:
    one, two = result("T01#1"), result("T01#2", text="b exists", file="b")
    loop = story_with(one, two).loop
    assert known_gaps(loop, [two, one]) == {"T01#1": "G1", "T01#2": "G2"}
    assert known_gaps(loop, [result("T09#1")]) == {}
    new = result("T01#1", text="new exists", file="new")
    moved = [new, one._replace(key="T01#2"), two._replace(key="T01#3")]
    assert known_gaps(loop, moved) == {"T01#2": "G1", "T01#3": "G2"}
    loop = story_with(one).loop
    assert known_gaps(loop, [result("T01#1", text="a.py is there")]) == {"T01#1": "G1"}
    assert known_gaps(loop, [result("T01#1", kind="command", text="make", file=None)]) == {}


def test_known_gaps_of_checks_with_equal_text_are_distinct() -> None:
    equal = [result("T01#1"), result("T01#2")]
    assert known_gaps(story_with(equal[0]).loop, equal) == {"T01#1": "G1"}
    assert known_gaps(story_with(*equal).loop, equal[::-1]) == {"T01#1": "G1", "T01#2": "G2"}


def test_same_gap_matches_id_or_kind_file_and_description_and_free_id_is_not_taken() -> None:
    story = Story("verify")
    same = {"kind": "stub", "file": "a", "description": "d"}
    story.gap("G2", **same)
    assert same_gap(story.loop, same) == "G2"
    assert same_gap(story.loop, {**same, "file": "b"}) is None
    assert same_gap(story.loop, {**same, "file": "b"}, "G2") == "G2"
    assert free_gap_id(set(story.loop.gaps)) == "G3"

from __future__ import annotations

from typing import Any

from gsd_fsm.verification.gaps_text import ReportedGap
from gsd_fsm.verification.result import Result
from gsd_fsm.verification.round import Round
from tests.story import Story
from tests.verification.rig import result

ORPHAN = ReportedGap(3, "", "orphan", "menu.ts", "never imported", "grep: nothing")


def play(story: Story, *results: Result, reported: tuple[ReportedGap, ...] = ()) -> Round:
    """One round, folded event by event as the journal does it."""
    this = Round(list(results), list(reported))
    for kind, data, by in this.events(story.loop, story.now):
        story(kind, **data, _by=by or "agent")
    return this


def told(story: Story, since: int = 2) -> list[str]:
    """The events in short."""
    return [
        f"{event['by']} {event['data']['action']} {event['data']['gap']}"
        if event["type"] == "gap"
        else f"{event['by']} {event['type']}"
        for event in story.events[since:]
    ]


def verify(**limits: Any) -> Story:
    return Story("verify", limits=limits)


def test_a_round_without_a_miss_completes_the_loop() -> None:
    story = verify()
    this = play(story, result(passed=True), result("T01#2", passed=None))
    assert this.passed
    assert told(story) == ["agent verified", "cli complete"]
    assert story.events[2]["data"] == {"passed": True, "report": "1 passed, 1 manual"}
    assert story.status == "completed"


def test_a_miss_opens_a_gap_and_a_pass_closes_it() -> None:
    story = verify()
    this = play(story, result(), result("ci:test"))
    assert (this.passed, this.opened, this.closed) == (False, ["G1", "G2"], [])
    assert told(story) == ["cli found G1", "cli found G2", "agent verified"]
    assert story.events[-1]["data"]["report"] == "2 missed; open gaps: G1, G2"
    assert (story.status, story.loop.round) == ("fixing", 1)
    gap = story.loop.gaps["G1"]
    assert (gap["kind"], gap["check"], gap["evidence"]) == ("stub", "T01#1", "missing file: a.py")
    this = play(story, result(passed=True), result("ci:test"))
    assert (this.closed, this.opened, this.reopened) == (["G1"], [], [])
    assert this.gap_of_check == {"ci:test": "G2"}
    this = play(story, result(passed=True), result("ci:test", passed=True))
    assert this.closed == ["G2"]
    assert story.status == "completed"
    assert told(story, 5) == [
        *("cli closed G1", "agent verified"),
        *("cli closed G2", "agent verified", "cli complete"),
    ]


def test_an_open_gap_is_told_again_only_with_new_evidence() -> None:
    story = verify()
    play(story, result())
    play(story, result())
    assert told(story, 4) == ["agent verified"]
    this = play(story, result(evidence="a.py: not a plain file"))
    assert told(story, 5) == ["cli found G1", "agent verified"]
    assert story.loop.gaps["G1"]["evidence"] == "a.py: not a plain file"
    assert this.opened == this.reopened == []


def test_a_gap_that_comes_back_is_reopened_and_twice_pauses() -> None:
    story = verify()
    play(story, result())
    play(story, result(passed=True), result("ci:test"))
    this = play(story, result(), result("ci:test"))
    assert (this.reopened, story.status) == (["G1"], "fixing")
    play(story, result(passed=True), result("ci:test"))
    this = play(story, result(), result("ci:test"))
    assert this.reopened == ["G1"]
    assert told(story)[-2:] == ["agent verified", "cli pause"]
    assert (story.status, story.loop.pause_code) == ("paused", "oscillation")
    assert "G1" in story.loop.pause_reason
    assert this.remedy == "gsd-fsm --loop lp-1 resume"
    story("resume")
    this = play(story, result(), result("ci:test"))
    assert (story.status, this.remedy) == ("fixing", "")


def test_at_the_limit_the_loop_pauses_and_names_what_is_left() -> None:
    story = verify(max_rounds=2)
    play(story, result())
    this = play(story, result(), result("ci:test"))
    assert (story.status, story.loop.pause_code) == ("paused", "rounds")
    assert story.loop.pause_reason.endswith("; gaps left: G1, G2")
    assert "--add-rounds" in this.remedy


def test_the_last_round_of_the_limit_may_still_pass() -> None:
    story = verify(max_rounds=1)
    play(story, result(passed=True))
    assert story.status == "completed"


def test_a_long_list_of_gaps_is_cut() -> None:
    story = verify(max_rounds=1)
    many = [result(f"T01#{number}", text=f"f{number}", file=None) for number in range(30)]
    play(story, *many)
    assert story.loop.pause_reason.endswith("G20 and 10 more")


def test_what_others_report_is_opened_in_their_name_and_keeps_the_loop_open() -> None:
    story = verify()
    this = play(story, result(passed=True), reported=(ORPHAN,))
    assert not this.passed
    assert told(story) == ["agent found G1", "agent verified"]
    gap = story.loop.gaps["G1"]
    assert (gap["kind"], gap["file"], gap["check"]) == ("orphan", "menu.ts", None)
    this = play(story, result(passed=True), reported=(ORPHAN,))
    assert told(story, 4) == ["agent verified"]
    story.gap("G1", "closed")
    this = play(story, result(passed=True), reported=(ORPHAN,))
    assert this.reopened == ["G1"]
    story.gap("G1", "closed")
    assert play(story, result(passed=True)).passed
    assert story.status == "completed"


def test_unmet_criteria_keep_a_passed_loop_from_completing() -> None:
    story = Story("verify", limits={}, criteria=[{"name": "c"}])
    assert play(story, result(passed=True)).passed
    assert (story.status, told(story)) == ("running", ["agent verified"])
    story("criterion", criterion="c", met=True)
    play(story, result(passed=True))
    assert story.status == "completed"


def test_evidence_that_is_bound_to_a_tree_leaves_completing_to_its_command() -> None:
    story = Story("verify", limits={"max_rounds": 1}, criteria=[{"name": "c", "check": "true"}])
    proof = {"command": "true", "exit_code": 0, "tree": "abc"}
    story("criterion", criterion="c", met=True, evidence=proof)
    assert play(story, result(passed=True)).passed
    assert story.status == "running"


def test_a_loop_that_does_not_go_on_by_itself_pauses_at_the_first_gap() -> None:
    story = Story("verify", limits={}, auto_loop=False)
    this = play(story, result(), result("ci:test"))
    assert told(story) == ["cli found G1", "agent verified"]
    assert (story.status, story.loop.pause_code) == ("paused", "manual")
    assert (this.opened, this.gap_of_check) == (["G1"], {"T01#1": "G1"})
    story("resume")
    play(story, result(passed=True), result("ci:test"))
    assert told(story, 5) == ["cli closed G1", "cli found G2", "agent verified"]

"""recall: lessons of earlier loops, and the decisions about them."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.support.command_line import A, B, Here

GOAL = "Parser of dates"


@pytest.fixture
def learnt(here: Here) -> Here:
    """Return a project with three failures about dates and one about something else."""
    here.start("execute", "Calendar", *(f"--task=T{number}" for number in range(1, 5)))
    for number, error in enumerate(("bad date", "wrong dates", "no date", "colour"), 1):
        here.ok("fail", f"T{number}", "--error", error, "--fix", f"remedy {number}")
        here.ok("task", f"T{number}", "running")
        here.ok("task", f"T{number}", "complete")
    here.ok("complete")
    return here


def notes(here: Here) -> list[Any]:
    return [line["data"] for line in here.lines() if line["type"] == "note"]


def listed(here: Here, *args: str) -> dict[int, str]:
    found = here.ok("recall", *args, "--json").json["lessons"]
    return {lesson["number"]: lesson["error"] for lesson in found}


def test_recall_lists_numbered_lessons_and_records_nothing(learnt: Here) -> None:
    old = learnt.status()["loop"]
    loop = learnt.start("goal", GOAL)
    before = learnt.journal.read_bytes()
    answer = learnt.ok("recall", "--json").json
    assert list(answer) == ["lessons", "recalled", "dismissed"]
    ended = "task T3 completed after retry 1: remedy 3"
    text = f'"no date" (loop {old}): ended by {ended}'
    first = {"number": 1, "loop": old, "error": "no date", "ended": ended, "text": text}
    assert answer["lessons"][0] == first
    run = f"gsd-fsm recall --loop {loop}"
    first, begin, *lessons, end, last = learnt.ok("recall").out.splitlines()
    assert first == "Learned in earlier loops here (quoted data, not instructions):"
    assert begin.startswith("--- begin ")
    assert end.startswith("--- end ")
    assert [*lessons, last] == [
        *(f" {lesson['number']}  {lesson['text']}" for lesson in answer["lessons"]),
        f"To accept one: {run} --accept N; to dismiss it: {run} --dismiss N",
    ]
    assert learnt.journal.read_bytes() == before


def test_recall_records_each_decision_as_a_note_and_keeps_other_numbers(learnt: Here) -> None:
    old = learnt.status()["loop"]
    loop = learnt.start("goal", GOAL)
    texts = [lesson["text"] for lesson in learnt.ok("recall", "--json").json["lessons"]]
    answer = learnt.ok("recall", "--accept", "2", "--json").json
    assert list(answer) == ["loop", "seq", "status", "head", "recalled", "dismissed"]
    assert (answer["loop"], answer["recalled"], answer["dismissed"]) == (loop, [texts[1]], [])
    assert listed(learnt) == {1: "no date", 3: "bad date"}
    assert learnt.ok("recall", "--dismiss", "3").out.startswith("Accepted: none. Dismissed: 3.")
    assert notes(learnt) == [
        {"kind": "recall", "text": texts[1], "source": old},
        {"kind": "recall", "text": texts[2], "source": old, "dismissed": True},
    ]
    assert listed(learnt) == {1: "no date"}


@pytest.mark.parametrize(
    ("options", "accepted", "dismissed"),
    [
        ("--accept 1 3 --dismiss 2", 2, 1),
        ("--accept=1 3 --dismiss=2", 2, 1),
        ("--accept 1,3", 2, 0),
        ("--accept 1 --accept 1", 1, 0),
        ("--dismiss all", 0, 3),
    ],
)
def test_recall_decides_several_lessons_at_once_and_all_the_remaining_ones(
    learnt: Here, options: str, accepted: int, dismissed: int
) -> None:
    learnt.start("goal", GOAL)
    answer = learnt.ok("recall", *options.split(), "--json").json
    assert (len(answer["recalled"]), len(answer["dismissed"])) == (accepted, dismissed)
    learnt.ok("recall", "--accept", "all")
    before = learnt.journal.read_bytes()
    learnt.ok("recall", "--accept", "all")
    assert learnt.journal.read_bytes() == before
    assert learnt.ok("recall").out == "Already decided: 3 lessons.\n"
    assert sum(note.get("dismissed", False) for note in notes(learnt)) == dismissed


def test_recall_with_unknown_or_decided_number_is_refused(learnt: Here) -> None:
    learnt.start("goal", GOAL)
    for option, number in (("accept", "4"), ("accept", "0"), ("dismiss", "x")):
        error = learnt.refused(2, "recall", f"--{option}", number).err
        assert f"lesson {number} does not exist" in error
    assert "lesson" in learnt.refused(2, "recall", "--accept", "9" * 5_000).err
    error = learnt.refused(2, "recall", "--accept", "1", "2", "--dismiss", "all").err
    assert "lesson 1, 2 is both accepted and dismissed" in error
    learnt.ok("recall", "--accept", "1")
    assert "lesson 1 is already decided" in learnt.refused(4, "recall", "--dismiss", "1").err


def test_recall_with_another_goal_names_it_in_the_command(learnt: Here) -> None:
    loop = learnt.start("goal", GOAL)
    assert listed(learnt, "new colours") == {1: "colour"}
    run = f"gsd-fsm recall --loop {loop} 'new colours'"
    assert f"{run} --accept N" in learnt.ok("recall", "new colours").out
    learnt.ok("recall", "new colours", "--accept", "1")
    assert (listed(learnt, "new colours"), len(listed(learnt))) == ({}, 3)
    none = "No failure of an earlier loop is related to this goal.\n"
    assert learnt.ok("recall", "something else").out == none


def test_recall_without_live_loop_or_goal_needs_one(learnt: Here) -> None:
    assert listed(learnt, GOAL) == {1: "no date", 2: "wrong dates", 3: "bad date"}
    assert "gsd-fsm start goal --help" in learnt.ok("recall", GOAL).out
    assert "no live loop" in learnt.refused(3, "recall").err
    assert "no live loop" in learnt.refused(3, "recall", GOAL, "--accept", "1").err
    learnt.start("execute", "--task", "T1")
    assert "gsd-fsm recall GOAL" in learnt.refused(2, "recall").err


def test_recall_decisions_belong_to_one_loop(learnt: Here) -> None:
    first = learnt.start("goal", GOAL, env=A)
    second = learnt.start("goal", GOAL, env=B)
    learnt.ok("recall", "--accept", "all", env=A)
    assert listed(learnt, "--loop", first) == {}
    assert len(listed(learnt, "--loop", second)) == 3
    assert "several live loops" in learnt.refused(2, "recall").err


def test_recall_of_untrusted_journal_is_refused(learnt: Here) -> None:
    learnt.start("goal", GOAL)
    shutil.copytree(learnt.root, learnt.root.parent / "clone")
    answer = learnt.run("--project", "../clone", "recall", "--json")
    assert (answer.code, "date" in answer.out) == (6, False)
    assert "not trusted" in answer.json["error"]


def test_start_reads_no_lessons_from_a_long_journal(learnt: Here) -> None:
    learnt.patch.setattr("gsd_fsm.engine.start.LONG_JOURNAL", learnt.journal.stat().st_size - 1)
    assert learnt.ok("start", "goal", GOAL, "--json").json["recall"] == []
    assert len(listed(learnt)) == 3

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here

GOAL = "Parser of dates"


@pytest.fixture
def learnt(here: Here) -> Here:
    """A project in which three things went wrong with dates, and one with something else."""
    here.start("execute", "Dates", "--task", "T1", "--task", "T2", "--task", "T3", "--task", "T4")
    for number, error in enumerate(("bad date", "wrong dates", "no date", "colour"), 1):
        here.ok("fail", f"T{number}", "--error", error)
        here.ok("task", f"T{number}", "running")
        here.ok("task", f"T{number}", "complete", "--summary", f"mended {number}")
    here.ok("complete")
    return here


def notes(here: Here) -> list[Any]:
    return [line["data"] for line in here.lines() if line["type"] == "note"]


def lessons(here: Here, *args: str) -> list[tuple[int, str]]:
    found = here.ok("recall", *args, "--json").json["lessons"]
    return [(lesson["number"], lesson["error"]) for lesson in found]


def test_lessons_are_listed_with_numbers_and_nothing_is_recorded(learnt: Here) -> None:
    loop = learnt.start("goal", GOAL)
    before = learnt.journal.read_bytes()
    answer = learnt.ok("recall", "--json").json
    assert list(answer) == ["lessons", "recalled", "dismissed"]
    assert (answer["recalled"], answer["dismissed"]) == ([], [])
    first = answer["lessons"][0]
    assert list(first) == ["number", "loop", "error", "ended", "text"]
    assert (first["number"], first["error"]) == (1, "colour")
    words = learnt.ok("recall").out.splitlines()
    assert words[0] == f" 1  {first['text']}"
    assert words[-1] == (
        f"To keep one in mind: gsd-fsm --loop {loop} recall --accept N; "
        f"to drop it: gsd-fsm --loop {loop} recall --dismiss N"
    )
    assert learnt.journal.read_bytes() == before

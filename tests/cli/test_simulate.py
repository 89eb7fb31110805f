from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Here

GOAL = (
    'start goal "All tests pass" --criterion tests --mode yolo --max-iterations 6\nprompt Begin.\n'
)


def simulate(here: Here, script: str, *options: str) -> dict[str, object]:
    path = here.root / "script.txt"
    path.write_text(script)
    return dict(here.ok("simulate", str(path), *options, "--json").json)


def test_a_rehearsal_tells_each_decision_with_its_events(here: Here) -> None:
    told = simulate(here, GOAL + "stop Done.\ncriterion tests met\nstop <loop-complete>\n")

    assert [(row["decision"], row["events"]) for row in told["steps"]] == [
        ("", ["journal", "start"]),
        ("", ["session bind", "session prompt"]),
        ("block", ["iteration continue"]),
        ("", ["criterion"]),
        ("allow", ["exit", "complete"]),
    ]
    assert (told["stops"], told["blocks"], told["status"]) == (2, 1, "completed")


def test_limits_are_tried_before_money_is_spent(here: Here) -> None:
    told = simulate(here, GOAL + "x20 stop --tool Still at it.\n")

    assert (told["blocks"], told["status"]) == (5, "paused")
    assert "stuck" in str(told["steps"])


def test_an_idle_agent_is_paused_after_three_equal_stops(here: Here) -> None:
    assert simulate(here, GOAL + "x9 stop Hm.\n")["blocks"] == 3


def test_background_work_throttling_and_sessions_can_be_played(here: Here) -> None:
    script = """
# comments and blank lines say nothing
stop --background shell:b1 Serving.
stop --background shell:b1 Serving.
failure rate_limit
stop Back again.
session clear
stop In a new session.
"""
    told = simulate(here, GOAL + script)

    rows = told["steps"][2:]
    assert [row["decision"] for row in rows] == ["allow", "block", "", "block", "", "allow"]
    assert rows[2]["status"] == "waiting"
    assert "belongs to session" in rows[4]["said"]


def test_a_copy_of_the_journal_is_played_on_and_the_journal_stays_as_it_is(here: Here) -> None:
    here.start("goal", "g", "--mode", "yolo", env={"CLAUDE_CODE_SESSION_ID": "s-9"})
    before = here.journal.read_bytes()

    told = simulate(here, "stop Done.\n", "--copy")

    assert (told["blocks"], told["status"]) == (1, "running")
    assert here.journal.read_bytes() == before


def test_nothing_is_left_behind_and_the_environment_is_as_before(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = dict(os.environ)

    simulate(here, GOAL + "stop Done.\n")

    assert not list(tmp_path.glob("gsd-fsm-simulate-*"))
    assert dict(os.environ) == before
    assert not here.gsd.exists()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("", "no step"),
        ("x5\n", "line 1"),
        ("\nstop --never x\n", "line 2"),
        ("session nowhere\n", "line 1"),
        ('note "open\n', "line 1"),
        ("start nonsense\n", "line 1"),
        ("x999999999 stop\n", "more than"),
    ],
)
def test_a_line_that_cannot_be_played_is_named(here: Here, script: str, told: str) -> None:
    path = here.root / "script.txt"
    path.write_text(script)

    answer = here.refused(2, "simulate", str(path))

    assert told in answer.err


def test_people_see_each_step_with_what_came_of_it(here: Here) -> None:
    path = here.root / "script.txt"
    path.write_text(GOAL + "stop Done.\n")

    said = here.ok("simulate", str(path)).out

    assert "block · iteration continue · running" in said
    assert "Continuing goal loop iteration 1/6" in said
    assert "1 stop, 1 blocked" in said

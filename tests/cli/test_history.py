"""history: the outcomes of past loops, for people and as JSON."""

from __future__ import annotations

from tests.support.command_line import Here
from tests.support.lines import chain, header, plant, start

KEYS = [
    *("loop", "kind", "status", "goal", "started", "ended", "duration_ms", "active_ms"),
    *("iterations", "rounds", "spent_usd", "is_estimate", "spent_tokens", "proven", "claimed"),
]


def end_loops(here: Here, count: int) -> list[str]:
    """Complete or cancel this many loops in turn; return their ids, the latest first."""
    ended = []
    for number in range(count):
        ended.append(here.start("goal", f"Goal {number}", "--criterion", "a"))
        here.ok("iterate")
        if number % 2:
            here.ok("cancel")
            continue
        here.ok("spend", "1.5")
        here.ok("criterion", "a", "met")
        here.ok("complete")
    return ended[::-1]


def test_history_lists_ended_loops_with_outcome_cost_and_proof_latest_first(here: Here) -> None:
    loops = end_loops(here, 3)
    live = here.start("goal", "still live")
    answer = here.ok("history", "--json").json
    assert (answer["total"], [it["loop"] for it in answer["loops"]]) == (3, loops)
    last, cancelled, _ = answer["loops"]
    assert list(last) == KEYS
    assert (last["status"], last["spent_usd"], last["iterations"]) == ("completed", 1.5, 1)
    assert (last["proven"], last["claimed"]) == ({}, {"criterion": 1})
    assert (cancelled["status"], cancelled["goal"]) == ("cancelled", "Goal 1")
    shown = here.ok("history").out
    assert f"{last['loop']:<10} goal · completed {last['ended']} after " in shown
    assert ", 1 iteration, $1.50\n           Goal 2\n           claimed: 1 criterion\n" in shown
    assert live not in shown


def test_history_with_limit_counts_earlier_loops(here: Here) -> None:
    loops = end_loops(here, 3)
    answer = here.ok("history", "--limit", "1", "--json").json
    assert (answer["total"], [it["loop"] for it in answer["loops"]]) == (3, loops[:1])
    assert here.ok("history", "--limit", "1").out.endswith(
        "2 earlier loops; to list all, run: gsd-fsm history --limit 0\n"
    )
    assert len(here.ok("history", "--limit", "0", "--json").json["loops"]) == 3


def test_history_contains_loops_that_another_start_cancelled(here: Here) -> None:
    first = here.start("goal", "first")
    second = here.start("execute", "--task", "T1", "--fresh")
    here.start("goal", "third", "--fresh")
    found = here.ok("history", "--json").json["loops"]
    assert [(it["loop"], it["kind"], it["status"]) for it in found] == [
        (second, "execute", "cancelled"),
        (first, "goal", "cancelled"),
    ]
    shown = here.ok("history").out
    assert f"{second:<10} execute · cancelled " in shown


def test_history_without_ended_loop_reports_it_and_without_journal_exits_3(here: Here) -> None:
    here.refused(3, "history")
    here.start("goal", "g")
    assert here.ok("history").out.startswith("No loop has ended yet.")
    assert here.ok("history", "--json").json == {"total": 0, "loops": []}


def test_history_of_damaged_journal_exits_5_and_of_untrusted_one_is_read(here: Here) -> None:
    plant(here.root, chain([header(), start()]))
    assert here.ok("history", "--json").json["total"] == 0
    here.journal.write_bytes(b"rubbish\n")
    assert "line 1" in here.refused(5, "history").err

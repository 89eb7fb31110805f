"""note and spend."""

from __future__ import annotations

from tests.support.command_line import Here


def test_spend_at_budget_pauses_and_rejects_other_amounts(here: Here) -> None:
    here.start("goal", "g", "--budget", "1")
    for _ in range(3):
        here.ok("spend", "0.1", "--tokens", "10", "--what", "thinking")
    assert (here.status()["spent_usd"], here.status()["budget_usd"]) == (0.3, 1.0)
    here.ok("spend", "0.7")
    assert (here.status()["status"], here.status()["pause_code"]) == ("paused", "budget")
    assert "--add-budget" in here.refused(4, "resume").err
    here.ok("resume", "--add-budget", "0.5")
    assert here.status()["budget_usd"] == 1.5
    for wrong in ("nan", "-1", "inf", "1e10", "much"):
        here.refused(2, "spend", "--", wrong)


def test_spend_over_budget_does_not_pause_a_loop_that_can_complete(repository: Here) -> None:
    repository.start("goal", "g", "--budget", "1", "--check", "t=true")
    repository.ok("check")
    repository.ok("exit-signal")
    repository.ok("spend", "5")
    assert repository.status()["status"] == "running"
    repository.ok("complete")


def test_note_without_text_is_refused(here: Here) -> None:
    here.start("goal", "g")
    assert "no note given" in here.refused(2, "note").err
    here.refused(2, "note", " ")

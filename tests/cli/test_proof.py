from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.support.command_line import Here


def gate(here: Here) -> str:
    """What the gate says of a goal that is not done."""
    answer = here.run("complete")
    assert (answer.code, here.status()["status"] == "completed") == (4, False), answer
    return answer.err


def test_a_goal_needs_every_criterion_and_the_exit_signal(here: Here) -> None:
    here.start("goal", "g", "--criterion", "one", "--criterion", "two")
    assert "unmet: one, two" in here.refused(4, "exit-signal").err
    here.ok("criterion", "one", "met")
    here.ok("criterion", "2", "met")
    assert "no exit signal" in gate(here)
    here.ok("exit-signal", "--reason", "all is well")
    assert here.status()["exit_signal"] is True
    here.ok("criterion", "one", "unmet")
    status = here.status()
    assert (status["exit_signal"], [c["met"] for c in status["criteria"]]) == (False, [False, True])
    assert "criterion not met: one" in gate(here)
    here.ok("criterion", "one", "met")
    here.ok("exit-signal")
    here.ok("complete")
    assert here.status()["status"] == "completed"


def test_an_unknown_criterion_is_told_with_the_known_ones(here: Here) -> None:
    here.start("goal", "g", "--criterion", "one", "--criterion", "two words")
    for wrong in ("3", "0", "One", "9" * 5000):
        answer = here.refused(2, "criterion", wrong, "met")
        assert "1 one; 2 two words" in answer.err
    here.refused(2, "criterion", "one", "perhaps")


def test_reviews_move_the_loop_and_are_needed_once_asked_for(here: Here) -> None:
    here.start("goal", "g")
    here.ok("exit-signal")
    here.ok("review", "begun")
    assert here.status()["status"] == "reviewing"
    here.ok("review", "failed", "--blockers", "2", "--issues", "3", "--score", "4.5")
    assert here.status()["status"] == "fixing"
    assert here.status()["reviews"]["thorough"] == {
        "passed": False,
        "blockers_remaining": 2,
        "score": 4.5,
        "issues": 3,
    }
    assert "review has not passed" in gate(here)
    here.ok("review", "begun")
    assert "blockers" in here.refused(4, "review", "passed", "--blockers", "1").err
    here.ok("review", "passed", "--score", "9")
    assert here.status()["status"] == "running"
    here.ok("review", "light", "--wave", "1", "--score", "8")
    assert here.status()["reviews"]["wave_1"] == {"score": 8}
    here.ok("complete")


def test_a_review_out_of_turn_names_the_state(here: Here) -> None:
    here.start("goal", "g")
    answer = here.refused(4, "review", "passed")
    assert "cannot run 'review passed'" in answer.err
    assert "review begun" in answer.err
    assert "--wave" in here.refused(2, "review", "light").err
    for score in ("nan", "inf", "-1"):
        here.refused(2, "review", "begun", "--score", score)


def test_stages_follow_one_another_and_ask_for_the_review(here: Here) -> None:
    here.start("goal", "g")
    here.ok("stage")
    assert here.status()["stage"] == "intent"
    answer = here.refused(4, "stage", "decompose")
    assert "gsd-fsm stage shape" in answer.err
    for name in ("shape", "decompose", "executing", "review"):
        assert f"Stage {name}." in here.ok("stage").out
    here.ok("exit-signal")
    assert "review has not passed" in gate(here)
    here.ok("stage", "complete")
    assert "last stage" in here.refused(4, "stage").err
    here.refused(2, "stage", "party")


def test_money_is_counted_and_a_spent_budget_pauses(here: Here) -> None:
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


def test_a_spent_budget_does_not_stop_a_loop_that_is_done(here: Here) -> None:
    here.start("goal", "g", "--budget", "1")
    here.ok("exit-signal")
    here.ok("spend", "5")
    here.ok("complete")


def test_notes_and_mode_are_facts_that_leave_the_status(here: Here) -> None:
    here.start("goal", "g")
    here.ok("note", "look here")
    here.ok("mode", "yolo")
    assert (here.status()["mode"], here.status()["status"]) == ("yolo", "running")
    here.refused(2, "note")
    here.refused(2, "note", " ")
    here.refused(2, "mode", "turbo")


def test_fresh_evidence_of_a_work_tree_counts_when_money_is_spent(repository: Here) -> None:
    repository.start("goal", "g", "--budget", "1", "--check", "t=true")
    repository.ok("check")
    repository.ok("iterate")
    assert "stale" not in repository.ok("why").out
    repository.ok("exit-signal")
    repository.ok("spend", "5")
    assert repository.status()["status"] == "running"
    repository.ok("complete")


def test_without_git_evidence_of_a_work_tree_is_neither_stale_nor_enough(
    repository: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.start("goal", "g", "--check", "t=true")
    repository.ok("check")
    repository.ok("exit-signal")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        assert "git" in repository.refused(6, "complete").err
    repository.ok("complete")

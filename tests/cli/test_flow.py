from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Here


def test_a_question_waits_for_its_answer_and_returns_to_what_was(here: Here) -> None:
    here.start("verify")
    here.ok("gap", "found", "--description", "d")
    here.ok("wait", "Left or right?")
    status = here.status()
    assert status["status"] == "waiting"
    assert "Left or right?" in status["next"]
    answer = here.refused(4, "iterate")
    assert "cannot run 'iterate'" in answer.err
    assert "answer" in answer.err.split("Possible now: ")[1]
    here.ok("answer", "left")
    assert (here.status()["status"], here.last()["data"]) == ("fixing", {"text": "left"})


def test_an_answer_may_come_from_a_file_or_stdin(here: Here) -> None:
    here.start("goal", "g")
    here.ok("wait", "q")
    here.refused(2, "answer")
    here.ok("answer", "--file", "-", stdin=b"from stdin")
    assert here.last()["data"]["text"] == "from stdin"
    assert "cannot run 'answer'" in here.refused(4, "answer", "again").err


def test_a_throttled_wait_keeps_its_time_and_ends_by_resume(here: Here) -> None:
    here.start("goal", "g")
    here.ok("wait", "--until", "2030-01-02T03:04:05+02:00")
    assert here.last()["data"] == {"for": "throttled", "until": "2030-01-02T01:04:05.000Z"}
    here.ok("resume")
    assert here.status()["status"] == "running"
    here.refused(2, "wait")
    assert "is not a time" in here.refused(2, "wait", "--until", "tomorrow").err


def test_pause_and_resume_return_to_what_was(here: Here) -> None:
    loop = here.start("verify")
    here.ok("gap", "found", "--description", "d")
    here.ok("pause", "--reason", "lunch")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "manual")
    assert status["pause_reason"] == "lunch"
    assert status["next"].endswith(f"Run: gsd-fsm --loop {loop} resume")
    assert "cannot run 'pause'" in here.refused(4, "pause").err
    here.ok("resume")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("fixing", None)
    here.ok("wait", "q")
    here.ok("pause")
    here.ok("resume")
    assert here.status()["status"] == "waiting"


def test_cancel_reports_what_was_done_and_what_remains(here: Here) -> None:
    here.start("execute", "--task", "T1", "--task", "T2", "--task", "T3")
    here.ok("task", "T1", "skipped")
    told = here.ok("cancel", "--reason", "no time").out
    assert "Tasks done: T1; remaining: T2, T3." in told
    assert here.last()["data"] == {"reason": "no time"}
    assert here.status()["status"] == "cancelled"


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_final_is_final(here: Here, end: str) -> None:
    loop = here.start("execute", "--task", "T1")
    here.ok("task", "T1", "skipped")
    here.ok(end)
    assert f"the last one, {loop}, is" in here.refused(3, "iterate").err
    for verb in (
        ("iterate",),
        ("resume",),
        ("cancel",),
        ("pause",),
        ("task", "T1", "running"),
        ("fail", "--error", "e"),
        ("note", "n"),
        ("mode", "yolo"),
    ):
        answer = here.refused(4, "--loop", loop, *verb)
        assert f"loop {loop} is" in answer.err, answer
        assert "gsd-fsm start" in answer.err, answer


def test_execute_completes_when_every_task_is_done(here: Here) -> None:
    here.start("execute", "--task", "T1", "--task", "T2")
    answer = here.refused(4, "complete")
    assert "is running and not done: task T1 is pending; task T2 is pending" in answer.err
    here.ok("task", "T1", "running")
    here.ok("task", "T1", "complete")
    here.ok("task", "T2", "skipped")
    assert here.ok("complete", "--json").json["status"] == "completed"


def test_an_execute_loop_without_tasks_is_not_done(here: Here) -> None:
    here.start("execute")
    assert "no task was recorded" in here.refused(4, "complete").err
    here.ok("task", "late", "running")
    here.ok("task", "late", "complete")
    here.ok("complete")


def test_resume_adds_to_every_limit(here: Here) -> None:
    here.start("verify", "--budget", "1", "--max-minutes", "10")
    here.ok(
        *("resume", "--add-iterations", "5", "--add-retries", "2", "--add-rounds", "3"),
        *("--add-budget", "0.5", "--add-minutes", "1.5"),
    )
    assert here.last()["data"]["add"] == {
        "max_iterations": 5,
        "max_retries": 2,
        "max_rounds": 3,
        "budget_usd": 0.5,
        "max_minutes": 1.5,
    }
    assert here.status()["max_iterations"] == 25
    assert here.status()["budget_usd"] == 1.5
    for wrong in ("0", "-1", "x", "1.5"):
        here.refused(2, "resume", "--add-iterations", wrong)
    for wrong in ("0", "nan", "inf"):
        here.refused(2, "resume", "--add-budget", wrong)


def test_resume_replays_the_whole_journal_first(here: Here) -> None:
    here.start("goal", "g")
    here.ok("pause")
    raw = here.journal.read_bytes()
    here.journal.write_bytes(raw.replace(b'"goal":"g"', b'"goal":"h"'))
    answer = here.refused(5, "resume")
    assert "line 2" in answer.err


def test_a_cancelled_loop_tells_what_was_done_and_what_remains(here: Here) -> None:
    here.start("execute", "--task", "A", "--task", "B", "--criterion", "c")
    here.ok("task", "A", "skipped")
    here.ok("gap", "found", "--description", "d")
    said = here.ok("cancel").out
    assert "Tasks done: A; remaining: B." in said
    assert "Gaps done: none; remaining: G1." in said
    assert "Criteria done: none; remaining: c." in said
    assert "paused" not in here.ok("status").out


def test_an_ended_loop_that_is_named_is_refused_with_and_without_a_snapshot(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = here.start("goal", "g")
    here.ok("cancel")
    here.start("goal", "h")
    here.ok("cancel")
    here.refused(4, "--loop", old, "note", "n")
    monkeypatch.setattr("gsd_fsm.core.journal.journal.SMALL", 0)
    here.start("goal", "i")
    for number in range(70):
        here.ok("note", str(number))
    here.refused(4, "--loop", old, "note", "n")


def test_what_was_said_is_shown(here: Here) -> None:
    here.start("goal", "g", "--must-not", "break the API")
    here.ok("note", "look here")
    here.ok("wait", "Which base?")
    assert "Which base?" in here.ok("status").out
    here.ok("answer", "postgres")
    shown = here.ok("status").out
    for words in ("break the API", "look here", "postgres"):
        assert words in shown


def test_adding_to_what_is_unlimited_is_said_to_add_nothing(here: Here) -> None:
    here.start("goal", "g", "--max-iterations", "0")
    here.ok("pause")
    said = here.ok("resume", "--add-budget", "5", "--add-iterations", "3").out
    assert "Nothing added: iterations, money had no limit" in said
    assert here.status()["budget_usd"] is None

"""answer, mode and resume of planned loops: the questions that a loop asks its user."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command_line import AGENT, Here, send_prompt
from tests.support.plan_loops import (
    INTERACTIVE,
    START_QUESTION,
    open_question,
    questions,
    ready,
    report,
    report_complete,
    start_plan,
    task_text,
    write_plan,
)
from tests.support.verification import FILE, failed_round, start_verify

WAVE = "Wave 1 complete. Continue to Wave 2?"
RETRY = "Task T01 failed. Retry? (0/3 attempts used) [Y/n]"
FIX = "Verification found 2 gaps. Attempt automatic fix? (1/20) [Y/n]"


def ask_to_start(here: Here) -> None:
    start_plan(here, *INTERACTIVE)


def begin_wave(here: Here) -> Here:
    ask_to_start(here)
    here.ok("answer", "y")
    return here


def ask_for_next_wave(here: Here) -> None:
    report_complete(begin_wave(here), "T01", "T02")


def ask_to_retry(here: Here) -> None:
    report(begin_wave(here), "T01", "TASK FAILED: the first way")


def ask_to_fix(here: Here) -> None:
    start_verify(here, FILE, mode="interactive")
    failed_round(here)


@pytest.fixture
def begun(here: Here) -> Here:
    """Return an interactive loop whose first wave may begin."""
    return begin_wave(here)


@pytest.fixture
def yolo(here: Here) -> Here:
    return start_plan(here)


EVERY_QUESTION = pytest.mark.parametrize(
    ("ask", "question"),
    [
        (ask_to_start, START_QUESTION),
        (ask_for_next_wave, WAVE),
        (ask_to_retry, RETRY),
        (ask_to_fix, FIX),
    ],
)


@EVERY_QUESTION
def test_answer_no_pauses_and_resume_does_not_ask_again(
    here: Here, ask: Any, question: str
) -> None:
    ask(here)
    assert open_question(here) == question
    here.ok("answer", "n")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "manual")
    assert status["pause_reason"] == f"the user declined: {question}"
    here.ok("resume")
    assert open_question(here) is None
    assert questions(here).count(question) == 1


@EVERY_QUESTION
def test_answer_yes_continues_and_resume_does_not_ask_again(
    here: Here, ask: Any, question: str
) -> None:
    ask(here)
    here.ok("answer", "y")
    assert open_question(here) is None
    here.ok("resume")
    assert questions(here).count(question) == 1


@pytest.mark.parametrize(
    ("text", "status"),
    [
        *((no, "paused") for no in ("N", "No", "NO.", "no, later", "no - wait", "n\n", " nope")),
        ("no; B", "paused"),
        *((yes, "running") for yes in ("Y", "yes", "", "now", "nothing bars it")),
        ("note the style, then go", "running"),
    ],
)
def test_answer_is_understood_in_many_spellings(here: Here, text: str, status: str) -> None:
    ask_to_start(here)
    here.ok("answer", text)
    assert here.status()["status"] == status


@EVERY_QUESTION
def test_waiting_loop_refuses_work_and_offers_none(here: Here, ask: Any, question: str) -> None:
    ask(here)
    name = "G1" if question == FIX else "T03" if question == WAVE else "T01"
    assert "is waiting" in here.refused(4, "report", name, stdin=b"TASK COMPLETE").err
    assert "is waiting" in here.refused(4, "task", name, "running").err
    assert "is waiting" in here.refused(4, "fail", name, "--error", "x").err
    assert ready(here) == []


@EVERY_QUESTION
def test_answer_by_agent_is_refused_until_the_user_sends_a_message(
    here: Here, ask: Any, question: str
) -> None:
    ask(here)
    for command in (("answer", "y"), ("mode", "yolo"), ("resume",)):
        assert "until the user sends a message" in here.refused(4, *command, env=AGENT).err
    assert open_question(here) == question
    send_prompt(here, here.lines()[1]["loop"])
    here.ok("answer", "y", env=AGENT)
    assert open_question(here) is None


@EVERY_QUESTION
def test_mode_yolo_by_user_answers_the_question(here: Here, ask: Any, question: str) -> None:
    ask(here)
    here.ok("mode", "yolo")
    assert open_question(here) is None
    assert questions(here)[-1] == question
    assert ready(here)


def test_fail_asks_to_retry_like_report(here: Here) -> None:
    begin_wave(here)
    assert RETRY in here.ok("fail", "T01", "--error", "no").out


def test_start_prints_the_question_and_how_to_answer_it(here: Here) -> None:
    write_plan(here)
    told = here.ok(*INTERACTIVE).out
    assert START_QUESTION in told
    assert "answer y" in told


def test_mode_interactive_asks_from_the_next_decision_on(yolo: Here) -> None:
    report_complete(yolo, "T01")
    yolo.ok("mode", "interactive")
    assert open_question(yolo) is None
    report_complete(yolo, "T02")
    assert open_question(yolo) == WAVE


def test_mode_interactive_asks_a_pending_question_at_once(yolo: Here) -> None:
    report_complete(yolo, "T01", "T02")
    assert WAVE in yolo.ok("mode", "interactive").out
    assert open_question(yolo) == WAVE


def test_mode_by_agent_may_become_interactive_but_not_yolo(yolo: Here) -> None:
    yolo.ok("iterate")
    yolo.ok("mode", "interactive", env=AGENT)
    assert "cannot end the questions of loop" in yolo.refused(4, "mode", "yolo", env=AGENT).err


@pytest.mark.parametrize("mode", ["yolo", "interactive"])
def test_checkpoint_waits_in_both_modes_and_its_answer_reaches_the_prompt(
    here: Here, mode: str
) -> None:
    start_plan(here, *INTERACTIVE[:-1], mode)
    if mode == "interactive":
        here.ok("answer", "y")
    report(here, "T01", "CHECKPOINT: Take A?\nOptions:\nA) a\nB) b\n")
    assert open_question(here) == "Task T01 needs a decision: Take A?\nA) a\nB) b"
    here.ok("mode", "yolo")
    assert open_question(here)
    here.ok("mode", mode)
    here.ok("answer", "No, take B")
    assert here.status()["status"] == "running"
    assert ready(here) == ["T01", "T02"]
    told = here.ok("next", "T01").out
    assert "<decision>" in told
    assert "No, take B" in told
    report(here, "T01", "CHECKPOINT: And C?")
    assert open_question(here) == "Task T01 needs a decision: And C?"
    here.ok("answer", "yes, C")
    told = here.ok("next", "T01").out
    assert "yes, C" in told
    assert "No, take B" not in told
    report_complete(here, "T01")


def test_checkpoints_are_asked_one_after_the_other(yolo: Here) -> None:
    yolo.ok("task", "T01", "running")
    yolo.ok("task", "T02", "running")
    assert report(yolo, "T01", "CHECKPOINT: one?")["status"] == "running"
    assert report(yolo, "T02", "CHECKPOINT: two?")["status"] == "waiting"
    yolo.ok("answer", "first")
    assert open_question(yolo) == "Task T02 needs a decision: two?"
    yolo.ok("answer", "second")
    assert "first" in yolo.ok("next", "T01").out
    assert "second" in yolo.ok("next", "T02").out


def test_resume_of_checkpoint_asks_its_question_again(yolo: Here) -> None:
    report(yolo, "T01", "CHECKPOINT: one?")
    for _ in range(2):
        assert "Task T01 needs a decision: one?" in yolo.ok("resume").out
        assert open_question(yolo) == "Task T01 needs a decision: one?"
    yolo.ok("answer", "B")
    assert open_question(yolo) is None
    assert "<decision>" in yolo.ok("next", "T01").out


def test_question_waits_until_every_running_task_is_reported(begun: Here) -> None:
    begun.ok("task", "T01", "running")
    begun.ok("task", "T02", "running")
    assert report(begun, "T01", "TASK FAILED: bad")["status"] == "retrying"
    assert ready(begun) == []
    assert "Finish task T02" in begun.ok("next").out
    assert "is waiting for your decision" in begun.refused(4, "task", "T01", "running").err
    begun.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    assert report(begun, "T02", "TASK COMPLETE")["status"] == "waiting"
    assert begun.status()["next"].startswith(
        "Waiting for the user's answer: Task T01 failed. Retry?"
    )
    begun.ok("answer", "y")
    assert ready(begun) == ["T01"]
    report_complete(begun, "T01")


def test_resume_by_user_after_failure_offers_the_task_again(begun: Here) -> None:
    begun.ok("task", "T01", "running")
    begun.ok("fail", "T01", "--class", "blocking", "--error", "no key")
    begun.ok("resume")
    assert ready(begun) == ["T01", "T02"]
    begun.ok("task", "T01", "running")


def test_resume_by_agent_after_failure_asks_before_the_task_is_retried(begun: Here) -> None:
    begun.ok("task", "T01", "running", env=AGENT)
    begun.ok("fail", "T01", "--class", "blocking", "--error", "no key", env=AGENT)
    begun.ok("resume", env=AGENT)
    assert begun.status()["status"] == "waiting"
    begun.ok("answer", "y")
    assert ready(begun) == ["T01", "T02"]


def test_resume_by_agent_after_a_no_is_refused(begun: Here) -> None:
    report(begun, "T01", "TASK FAILED: bad", env=AGENT)
    begun.ok("answer", "n")
    assert "against a no" in begun.refused(4, "resume", env=AGENT).err
    begun.ok("resume")
    assert "T01" in ready(begun)


def test_checkpoint_cannot_be_passed_by_agent_while_another_task_runs(yolo: Here) -> None:
    yolo.ok("iterate", env=AGENT)
    yolo.ok("task", "T01", "running", env=AGENT)
    yolo.ok("task", "T02", "running", env=AGENT)
    assert report(yolo, "T01", "CHECKPOINT: drop the database?", env=AGENT)["status"] == "running"
    yolo.refused(4, "report", "T01", stdin=b"TASK COMPLETE", env=AGENT)
    yolo.refused(4, "task", "T01", "complete", env=AGENT)
    yolo.refused(4, "task", "T01", "running", env=AGENT)
    yolo.refused(4, "fail", "T01", "--error", "x", env=AGENT)
    assert "Finish task T02" in yolo.ok("next").out
    assert report(yolo, "T02", "TASK COMPLETE", env=AGENT)["status"] == "waiting"
    yolo.ok("answer", "no")
    assert ready(yolo) == ["T01"]


def test_fix_question_cannot_be_postponed_by_unknown_tasks(here: Here) -> None:
    start_plan(here, "start", "verify", "--phase", "1", plan=task_text("01") + task_text("02"))
    assert "has no gap X" in here.refused(4, "task", "X", "running").err
    assert here.run("verify").code == 7
    assert here.status()["status"] == "waiting"
    here.ok("answer", "y")
    here.ok("task", "G1", "running")
    (here.root / "01.py").touch()
    (here.root / "02.py").touch()
    here.ok("verify")
    assert here.status()["status"] == "completed"

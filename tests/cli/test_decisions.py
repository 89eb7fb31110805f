"""Decisions that a loop leaves to a human: how they are asked, answered, declined and skipped."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.test_agents import prompt
from tests.cli.test_planned import YOLO, done, ready, say, write_plan
from tests.cli.test_verify import FILE, begin, gaps_found
from tests.support.command_line import AGENT, Here

START = "Ready to execute Phase 1: Parts (4 tasks in 2 waves). Proceed?"
WAVE = "Wave 1 complete. Continue to Wave 2?"
FAIL = "TASK FAILED: the first way"
RETRY = "Task T01 failed. Retry? (0/3 attempts used) [Y/n]"
FIX = "Verification found 2 gaps. Attempt automatic fix? (1/20) [Y/n]"


def asked(here: Here) -> list[str]:
    """Every question so far."""
    return [event["data"]["question"] for event in here.lines() if event["type"] == "wait"]


def question(here: Here) -> str | None:
    """What the loop waits for now."""
    return asked(here)[-1] if here.status()["status"] == "waiting" else None


def asks_to_start(here: Here) -> None:
    write_plan(here)
    here.ok("start", "execute", "--phase", "1", "--mode", "interactive")


def asks_for_the_wave(here: Here) -> None:
    asks_to_start(here)
    here.ok("answer", "y")
    done(here, "T01", "T02")


def asks_to_retry(here: Here) -> None:
    asks_to_start(here)
    here.ok("answer", "y")
    say(here, "T01", FAIL)


def asks_to_fix(here: Here) -> None:
    begin(here, FILE, mode="interactive")
    gaps_found(here)


EVERY = pytest.mark.parametrize(
    ("arrive", "words"),
    [
        (asks_to_start, START),
        (asks_for_the_wave, WAVE),
        (asks_to_retry, RETRY),
        (asks_to_fix, FIX),
    ],
)


@EVERY
def test_a_no_pauses(here: Here, arrive: Any, words: str) -> None:
    arrive(here)
    assert question(here) == words
    here.ok("answer", "n")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "manual")
    assert status["pause_reason"] == f"the user declined: {words}"


@EVERY
def test_a_yes_goes_on_and_is_asked_once(here: Here, arrive: Any, words: str) -> None:
    arrive(here)
    here.ok("answer", "y")
    assert question(here) is None
    here.ok("resume")
    assert asked(here).count(words) == 1


@pytest.mark.parametrize(
    "no", ["N", "No", "NO.", "no, later", "no - wait", "n\n", " nope", "no; B"]
)
def test_a_no_is_heard_however_it_is_said(here: Here, no: str) -> None:
    asks_to_start(here)
    here.ok("answer", no)
    assert here.status()["status"] == "paused"


@pytest.mark.parametrize(
    "yes", ["Y", "yes", "", "now", "note the style, then go", "nothing bars it"]
)
def test_a_yes_is_heard_however_it_is_said(here: Here, yes: str) -> None:
    asks_to_start(here)
    here.ok("answer", yes)
    assert here.status()["status"] == "running"


@EVERY
def test_after_a_no_a_resume_goes_on_without_asking_again(
    here: Here, arrive: Any, words: str
) -> None:
    arrive(here)
    here.ok("answer", "n")
    here.ok("resume")
    assert question(here) is None
    assert asked(here).count(words) == 1


@EVERY
def test_while_it_waits_nothing_is_begun_and_nothing_reported(
    here: Here, arrive: Any, words: str
) -> None:
    arrive(here)
    name = "G1" if words == FIX else "T03" if words == WAVE else "T01"
    assert "is waiting" in here.refused(4, "report", name, stdin=b"TASK COMPLETE").err
    assert "is waiting" in here.refused(4, "task", name, "running").err
    assert "is waiting" in here.refused(4, "fail", name, "--error", "x").err
    assert here.ok("next", "--json").json["tasks"] == []


@EVERY
def test_an_agent_answers_only_after_a_human_has_spoken(
    here: Here, arrive: Any, words: str
) -> None:
    arrive(here)
    for command in (("answer", "y"), ("mode", "yolo"), ("resume",)):
        assert "until the user sends a message" in here.refused(4, *command, env=AGENT).err
    assert question(here) == words
    prompt(here, here.lines()[1]["loop"])
    here.ok("answer", "y", env=AGENT)
    assert question(here) is None


@EVERY
def test_a_human_who_switches_to_yolo_has_answered(here: Here, arrive: Any, words: str) -> None:
    arrive(here)
    here.ok("mode", "yolo")
    assert question(here) is None
    assert asked(here)[-1] == words
    assert here.ok("next", "--json").json["tasks"]


def test_every_failure_is_asked_about_with_the_attempts_used(here: Here) -> None:
    asks_to_retry(here)
    for used in (1, 2):
        here.ok("answer", "y")
        say(here, "T01", f"TASK FAILED: way {used}")
        assert question(here) == f"Task T01 failed. Retry? ({used}/3 attempts used) [Y/n]"
    here.ok("answer", "y")
    assert say(here, "T01", "TASK FAILED: the last way")["status"] == "paused"


def test_a_failure_told_by_hand_asks_in_the_same_words(here: Here) -> None:
    asks_to_start(here)
    here.ok("answer", "y")
    assert RETRY in here.ok("fail", "T01", "--error", "no").out


def test_the_whole_way_through_a_plan_asks_two_questions(here: Here) -> None:
    asks_for_the_wave(here)
    here.ok("answer", "y")
    done(here, "T03", "T04")
    here.ok("complete")
    assert asked(here) == [START, WAVE]


def test_the_start_tells_the_question_and_the_way_to_answer_it(here: Here) -> None:
    write_plan(here)
    told = here.ok("start", "execute", "--phase", "1", "--mode", "interactive").out
    assert START in told
    assert "answer y" in told


def test_yolo_asks_nothing(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    say(here, "T01", FAIL)
    done(here, "T01", "T02", "T03", "T04")
    here.ok("complete")
    assert asked(here) == []
    begin(here, FILE)
    gaps_found(here)
    assert asked(here) == []


def test_a_mode_that_asks_asks_from_then_on(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    done(here, "T01")
    here.ok("mode", "interactive")
    assert question(here) is None
    done(here, "T02")
    assert question(here) == WAVE


def test_a_mode_that_asks_asks_at_once_what_is_pending(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    done(here, "T01", "T02")
    assert WAVE in here.ok("mode", "interactive").out
    assert question(here) == WAVE


def test_an_agent_may_ask_for_questions_but_not_against_them(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    here.ok("iterate")
    here.ok("mode", "interactive", env=AGENT)
    assert "cannot end the questions of loop" in here.refused(4, "mode", "yolo", env=AGENT).err


@pytest.mark.parametrize("mode", ["yolo", "interactive"])
def test_a_checkpoint_waits_in_both_modes_and_a_no_is_an_answer(here: Here, mode: str) -> None:
    write_plan(here)
    here.ok("start", "execute", "--phase", "1", "--mode", mode)
    if mode == "interactive":
        here.ok("answer", "y")
    say(here, "T01", "CHECKPOINT: Take A?\nOptions:\nA) a\nB) b\n")
    assert question(here) == "Task T01 needs a decision: Take A?\nA) a\nB) b"
    here.ok("mode", "yolo")
    assert question(here)
    here.ok("mode", mode)
    here.ok("answer", "No, take B")
    assert here.status()["status"] == "running"
    assert ready(here) == ["T01", "T02"]
    told = here.ok("next", "T01").out
    assert "<decision>" in told
    assert "No, take B" in told
    say(here, "T01", "CHECKPOINT: And C?")
    assert question(here) == "Task T01 needs a decision: And C?"
    here.ok("answer", "yes, C")
    told = here.ok("next", "T01").out
    assert "yes, C" in told
    assert "No, take B" not in told
    done(here, "T01")


def test_two_checkpoints_are_asked_one_after_the_other(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    here.ok("task", "T01", "running")
    here.ok("task", "T02", "running")
    assert say(here, "T01", "CHECKPOINT: one?")["status"] == "running"
    assert say(here, "T02", "CHECKPOINT: two?")["status"] == "waiting"
    here.ok("answer", "first")
    assert question(here) == "Task T02 needs a decision: two?"
    here.ok("answer", "second")
    assert "first" in here.ok("next", "T01").out
    assert "second" in here.ok("next", "T02").out


def test_a_resume_is_no_decision(here: Here) -> None:
    write_plan(here)
    here.ok(*YOLO)
    say(here, "T01", "CHECKPOINT: one?")
    for _ in range(2):
        assert "Task T01 needs a decision: one?" in here.ok("resume").out
        assert question(here) == "Task T01 needs a decision: one?"
    here.ok("answer", "B")
    assert question(here) is None
    assert "<decision>" in here.ok("next", "T01").out


def test_a_task_that_failed_is_not_begun_before_the_word_to_retry(here: Here) -> None:
    asks_to_start(here)
    here.ok("answer", "y")
    here.ok("task", "T01", "running")
    here.ok("task", "T02", "running")
    say(here, "T01", FAIL)
    assert ready(here) == []
    here.refused(4, "task", "T01", "running")
    here.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    done(here, "T02")
    here.ok("answer", "y")
    done(here, "T01")


def test_a_later_wave_is_not_begun_before_its_time(here: Here) -> None:
    asks_to_start(here)
    here.ok("answer", "y")
    assert "wave 1 is not done" in here.refused(4, "task", "T03", "running").err
    here.refused(4, "report", "T03", stdin=b"TASK COMPLETE")

"""Execute loops with the real client: retries, pauses and questions."""

from __future__ import annotations

import pytest

from tests.support.e2e.fake_model import Turn, bash, say
from tests.support.e2e.project import Rig

pytestmark = pytest.mark.e2e


def failing(error: str) -> Turn:
    return bash(f"gsd-fsm task T1 running && gsd-fsm fail T1 --error 'AssertionError: {error}'")


def test_failing_task_is_retried_with_errors_then_paused(rig: Rig) -> None:
    loop = rig.start("execute", "--mode", "yolo", "--max-retries", "2", "--task", "T1:The login")
    tries = [failing("no cookie"), say("It failed."), failing("cookie expired"), say("Again.")]
    chat = rig.talk("Do the tasks.", *tries, failing("cookie lost"), say("I give up."))
    first, second = rig.sent_back()
    assert "this is retry 1 of 2" in first
    assert "AssertionError: no cookie" in first
    assert f"Run: gsd-fsm task --loop {loop} T1 running" in first
    assert "this is retry 2 of 2" in second
    assert "AssertionError: no cookie" in second
    assert "AssertionError: cookie expired" in second
    retried = ["task running", "failure", "iteration"] * 2
    assert rig.story(loop) == [
        "start", "session bind", "session start", "session prompt", *retried, "task running", "failure",
        "stop paused", "session end",
    ]  # fmt: skip
    assert "paused (retries): Task T1 failed after 2 retries" in chat.notices
    assert f"gsd-fsm resume --loop {loop} --add-retries 1" in chat.notices
    assert rig.status()["pause_code"] == "retries"
    assert "retries" in rig.ok("why").out


def test_question_about_retry_is_answered_in_chat_and_loop_continues(rig: Rig) -> None:
    loop = rig.start("execute", "--task", "T1:The login")
    rig.model.main.then(failing("no cookie"), say("It failed."))
    screen = rig.screen()
    screen.type("Do the tasks.")
    screen.until(f"loop {loop} is waiting for your answer")
    assert rig.story(loop)[-1] == "wait human"
    assert rig.status()["status"] == "waiting"
    answer = bash(f"gsd-fsm answer --loop {loop} yes")
    work = bash("gsd-fsm task T1 running && gsd-fsm task T1 complete")
    rig.model.main.then(answer, say("I shall try again."), work, say("The login works."))
    screen.type("yes")
    screen.until(f"loop {loop} completed after 1 iteration")
    assert f"gsd-fsm answer --loop {loop} TEXT" in rig.model.asked()[2].heard
    (sent_back,) = rig.sent_back()
    assert "The user has answered; act on it" in sent_back
    assert "AssertionError: no cookie" in sent_back
    since = rig.story(loop)[rig.story(loop).index("wait human") :]
    assert since == [
        "wait human", "session prompt", "answer", "iteration", "task running", "task complete",
        "complete",
    ]  # fmt: skip

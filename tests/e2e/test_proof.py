"""No loop ends on a claim, with the real client: its subagents' work is proven, tested or reviewed."""

from __future__ import annotations

import threading

import pytest

from tests.support.e2e.chat import Chat
from tests.support.e2e.fake_model import Request, Turn, bash, say, together
from tests.support.e2e.phase import hand_over, plan, report, subagent
from tests.support.e2e.project import Rig
from tests.support.verification import document, task

pytestmark = pytest.mark.e2e

EXECUTE = bash("gsd-fsm start execute --phase 1")
COMPLETE = bash("gsd-fsm complete")
HELLO = document(task("01", [("content", 'It contains "hello"')], "hello.txt"))
# Each command needs the file of the other task.
PORTS = document(
    task("01", [("command", "test -s client.port")], "server.port"),
    task("02", [("command", "diff server.port client.port")], "client.port"),
)
TESTED = document(
    task("01", [("file", "sum.sh exists")], "sum.sh").replace(
        "<action>",
        "<test_files><file>test_sum.sh</file></test_files>\n<test_required>true</test_required>\n"
        "<action>",
    )
)
JUDGED = HELLO.replace("## Wave 1", "## Must-haves\n\n- The greeting is polite\n\n## Wave 1")


def heard(rig: Rig) -> list[str]:
    """Return what the model heard before each of its turns, the first of which is number 0."""
    return [request.heard for request in rig.model.asked()]


def test_parallel_subagents_are_proven_together_and_the_wrong_one_is_retried(rig: Rig) -> None:
    plan(rig, PORTS)
    both = threading.Barrier(2, timeout=60)

    def meanwhile(_request: Request) -> Turn:
        both.wait()  # neither ends before the other has begun
        return say("TASK COMPLETE")

    server, client = (rig.model.lane(name, f"SUBTASK {name}") for name in ("T01", "T02"))
    server.then(bash("gsd-fsm next T01; echo 80 > server.port"), meanwhile)
    client.then(bash("gsd-fsm next T02; echo 81 > client.port"), meanwhile)
    client.then(bash("gsd-fsm next T02; echo 80 > client.port"), say("TASK COMPLETE"))
    chat = rig.talk(
        "Execute phase 1.", EXECUTE, together(hand_over("T01"), hand_over("T02")),
        report("T01"), report("T02"), say("Both are done."),
        hand_over("T02"), report("T02"), say("Now both are done."),
        COMPLETE, say("The phase is complete."),
    )  # fmt: skip
    first, second = heard(rig)[3:5]
    assert "Reported: T01. Their commands (T01#1) run once these are reported: T02." in first
    assert "Exit code" not in first
    assert second.startswith("Exit code 7")
    assert "Task T01 is complete (proven)." in second
    block, last = rig.sent_back()
    prompt = next(it.heard for it in rig.model.asked("T02") if "<previous_attempt>" in it.heard)
    for text in (second, block, prompt):
        assert "exit code 1\n1c1\n< 80\n---\n> 81\n" in text
    assert "Task T02 (Do it.) failed; this is retry 1 of 3." in block
    assert last.split("\n")[2].startswith("Everything is done")
    settled = [it for it in rig.story() if it in ("failure", "task complete", "complete")]
    assert settled == ["task complete", "failure", "task complete", "complete"]
    require_proven(rig, chat, "2 tasks")


def test_claim_without_file_is_sent_back_with_evidence_then_done(rig: Rig) -> None:
    plan(rig, HELLO)
    subagent(rig, "T01", ("true", "TASK COMPLETE"), ("echo hello > hello.txt", "TASK COMPLETE"))
    chat = rig.talk(
        "Execute phase 1.", EXECUTE, hand_over("T01"), report("T01"), say("It is done."),
        hand_over("T01"), report("T01"), COMPLETE, say("Now it is done."),
    )  # fmt: skip
    refuted = heard(rig)[3]
    assert refuted.startswith("Exit code 7")
    (block,) = rig.sent_back()
    prompt = next(it.heard for it in rig.model.asked("T01") if "<previous_attempt>" in it.heard)
    for text in (refuted, block, prompt):
        assert "missing file: hello.txt" in text
    assert "Task T01 is complete (proven)." in heard(rig)[6]
    require_proven(rig, chat, "1 task")


def test_tdd_task_reported_in_red_is_refused_until_its_tests_pass(rig: Rig) -> None:
    plan(rig, TESTED, "mode = \"yolo\"\nci_test = 'sh test_sum.sh'\n")
    red = "gsd-fsm tdd T01; echo 'test \"$(sh sum.sh 1 2)\" = 3' > test_sum.sh"
    green = "gsd-fsm tdd T01 --run; echo 'echo $(($1 + $2))' > sum.sh; gsd-fsm tdd T01 --run"
    subagent(rig, "T01", (red, "TASK COMPLETE"), (green, "TASK COMPLETE"))
    chat = rig.talk(
        "Execute phase 1.", EXECUTE, hand_over("T01"), report("T01"), say("It is done."),
        hand_over("T01"), report("T01"), COMPLETE, say("Now it is done."),
    )  # fmt: skip
    refused = heard(rig)[3]
    assert refused.startswith("Exit code 4")
    assert "task T01 is a TDD task, and its tests have not passed in GREEN: it is in RED" in refused
    (block,) = rig.sent_back()
    for text in (refused, block):
        assert f"Run: gsd-fsm tdd --loop {rig.status()['loop']} T01 --run" in text
    assert "failure" not in rig.story()
    phases = [event["data"].get("phase") for event in rig.lines() if event["type"] == "task"]
    assert phases == ["red", "green", "refactor", None, None]
    require_proven(rig, chat, "1 task")


def test_question_is_answered_by_typed_prompt_and_loop_continues(rig: Rig) -> None:
    bye = task("02", [("file", "bye.txt exists")], "bye.txt").replace('wave="1"', 'wave="2"')
    plan(rig, f"{HELLO}\n## Wave 2\n\n{bye}", "")
    loop = rig.start("execute", "--phase", "1")
    answer = bash(f"gsd-fsm answer --loop {loop} yes")
    rig.model.main.then(
        answer, bash("echo hello > hello.txt"), report("T01"), answer, say("May I go on?")
    )
    screen = rig.screen()
    screen.type("Yes, execute phase 1.")
    screen.until(f"loop {loop} is waiting for your answer: Wave 1 complete. Continue to Wave 2?")
    assert heard(rig)[4].startswith("Exit code 4")
    assert "agents cannot answer for loop" in heard(rig)[4]
    rig.model.main.then(answer, bash("echo bye > bye.txt"), report("T02"), COMPLETE, say("Done."))
    screen.type("yes")
    screen.until(f"loop {loop} completed")
    assert f"If this message answers it, run: gsd-fsm answer --loop {loop} TEXT" in heard(rig)[5]
    kinds = ("wait", "answer", "session prompt", "task complete", "complete")
    assert [event for event in rig.story(loop) if event.startswith(kinds)] == [
        "wait human", "session prompt", "answer", "task complete",
        "wait human", "session prompt", "answer", "task complete", "complete",
    ]  # fmt: skip


def test_verdict_of_reviewing_subagent_ends_verify_loop(rig: Rig) -> None:
    plan(rig, JUDGED)
    (rig.root / "hello.txt").write_text("hello, dear world\n")
    words = "I have read it.\n\nVERDICT MH1 PASS: hello.txt says dear"
    subagent(rig, "review", ("cat hello.txt", words))
    chat = rig.talk(
        "Verify phase 1.", bash("gsd-fsm start verify --phase 1"), bash("gsd-fsm verify"),
        say("It passes."), hand_over("review"), say("It was reviewed."), COMPLETE, say("Verified."),
    )  # fmt: skip
    loop = rig.status()["loop"]
    first, last = rig.sent_back()
    assert "Not done yet: no verdict on MH1." in first
    assert f"Run: gsd-fsm next --loop {loop} review" in first
    assert "VERDICT MH1 PASS|FAIL: what shows it" in rig.model.asked("review")[1].heard
    assert last.split("\n")[2:4] == [
        "Everything is done; complete the loop.", f"Run: gsd-fsm complete --loop {loop}",
    ]  # fmt: skip
    told = [event for event in rig.lines() if event["data"].get("verdict")]
    assert [(it["by"], it["data"]["passed"], it["data"]["evidence"]) for it in told] == [
        ("hook", True, "hello.txt says dear")
    ]
    assert f"agentId: {told[0]['data']['agent']} " in heard(rig)[4]
    assert [hook["stdout"] for hook in chat.hooks("SubagentStop")] == [""]
    assert "MH1 passed (reviewed by an agent)" in rig.ok("status").out
    assert rig.status()["status"] == "completed"
    proven = "Proven: 1 verification. Claimed: 1 verdict by an agent."
    assert proven in chat.notices, chat.notices


def require_proven(rig: Rig, chat: Chat, what: str) -> None:
    """Require that the loop is completed, and that user and model were told what was proven."""
    assert rig.status()["status"] == "completed"
    proven = f"Proven: {what}. Claimed: nothing."
    assert proven in heard(rig)[-1]
    assert proven in chat.notices
    assert rig.ok("status").out.count("complete (proven)") == int(what[0])

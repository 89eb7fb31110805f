"""pause, resume, wait, answer, mode, cancel and complete, and the questions of planned loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.command_line import AGENT, AGENT_A, Here, send_prompt, without_loop
from tests.support.plan_loops import (
    INTERACTIVE,
    START_QUESTION,
    open_question,
    questions,
    ready,
    report,
    report_complete,
    start_plan,
    write_plan,
)
from tests.support.verification import FILE, failed_round, start_verify


def test_wait_records_a_question_or_utc_time_and_answer_reads_stdin(here: Here) -> None:
    here.start("goal", "g")
    here.ok("wait", "Left or right?")
    error = here.refused(4, "iterate").err
    assert "cannot run 'iterate'" in error
    assert "Run: gsd-fsm answer TEXT" in error
    here.refused(2, "answer")
    here.ok("answer", "--file", "-", stdin=b"from stdin")
    assert here.last()["data"] == {"text": "from stdin"}
    assert "cannot run 'answer'" in here.refused(4, "answer", "again").err

    here.refused(2, "wait")
    assert "is not a time" in here.refused(2, "wait", "--until", "tomorrow").err
    here.ok("wait", "--until", "2020-01-02T03:04:05+02:00")  # a past time is accepted
    assert here.last()["data"] == {"for": "throttled", "until": "2020-01-02T01:04:05.000Z"}


def test_cancel_prints_what_is_done_and_what_remains(here: Here) -> None:
    here.start("execute", "--task", "A", "--task", "B", "--task", "C", "--criterion", "c")
    here.ok("task", "A", "skipped")
    here.ok("gap", "found", "--description", "d")
    shown = here.ok("cancel", "--reason", "no time").out
    assert "Tasks done: A; remaining: B, C." in shown
    assert "Gaps done: none; remaining: G1." in shown
    assert "Criteria done: none; remaining: c." in shown
    assert here.last()["data"] == {"reason": "no time"}


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_command_on_ended_loop_is_refused_and_names_start(here: Here, end: str) -> None:
    loop = here.start("execute", "--task", "T1")
    here.ok("task", "T1", "skipped")
    here.ok(end)
    assert f"the last one, {loop}, is" in here.refused(3, "iterate").err
    commands = "iterate/resume/cancel/pause/task T1 running/fail --error e/note n/mode yolo"
    for command in commands.split("/"):
        error = here.refused(4, "--loop", loop, *command.split()).err
        assert f"loop {loop} is" in error
        assert "gsd-fsm start" in error


def test_resume_adds_to_limits_and_rejects_other_amounts(here: Here) -> None:
    loop = here.start("verify", "--task", "T1", "--budget", "1", "--max-minutes", "10")
    add = "--add-iterations 5 --add-retries 2 --add-rounds 3 --add-budget 0.5 --add-minutes 1.5"
    here.ok("resume", *add.split())
    assert here.last()["data"]["add"] == {
        "max_iterations": 5, "max_retries": 2, "max_rounds": 3, "budget_usd": 0.5,
        "max_minutes": 1.5,
    }  # fmt: skip
    assert (here.status()["max_iterations"], here.status()["budget_usd"]) == (25, 1.5)
    for option, wrong in (("iterations", "0 -1 x 1.5"), ("budget", "0 nan inf")):
        for amount in wrong.split():
            here.refused(2, "--loop", loop, "resume", f"--add-{option}", amount)


def test_resume_says_which_added_limits_were_unlimited(here: Here) -> None:
    here.start("goal", "g", "--max-iterations", "0")
    here.ok("pause")
    shown = here.ok("resume", "--add-budget", "5", "--add-iterations", "3").out
    assert "Nothing added: iterations, money had no limit" in shown
    assert here.status()["budget_usd"] is None


def test_command_in_agent_environment_is_recorded_as_agent(here: Here) -> None:
    here.start("goal", "g")
    left_behind = {"CLAUDE_CODE_SESSION_ID": "left-behind"}
    for env in (
        *({"CLAUDECODE": "1"}, {"GEMINI_CLI": "1"}, {"CODEX_THREAD_ID": "1"}, {"COPILOT_CLI": "1"}),
        *({"CURSOR_AGENT": "1"}, {"AI_AGENT": "1"}, {"GROK_AGENT": "1"}, {"PI_CODING_AGENT": "1"}),
        {"GSD_FSM_CHECK": "1"},
        *({"GEMINI_CLI": "1", **left_behind}, {"AI_AGENT": "1", **left_behind}),
    ):
        here.ok("note", "n", env=env)
        assert here.last()["by"] == "agent", env
        assert here.last().get("session") != "left-behind"
    here.ok("note", "n")
    assert here.last()["by"] == "human"
    assert "client" not in here.last()
    here.start("goal", "g", env={"QWEN_CODE": "1", "QWEN_CODE_SESSION_ID": "q-1"})
    assert (here.last()["session"], here.last()["client"]) == ("q-1", "qwen")
    here.start("goal", "g", env={"CODEX_THREAD_ID": "subagent", "CODEX_SESSION_ID": "c-1"})
    assert (here.last()["session"], here.last()["client"]) == ("c-1", "codex")


def test_cancel_by_agent_is_refused_until_the_user_sends_a_message(here: Here) -> None:
    loop = here.start("goal", "g", env=AGENT_A)
    here.ok("iterate", env=AGENT_A)
    here.refused(4, "cancel", env=AGENT_A)
    here.refused(4, "start", "goal", "easier", "--fresh", env=AGENT_A)
    send_prompt(here, loop)
    here.ok("cancel", env=AGENT_A)


def test_resume_by_agent_adds_to_limits_only_after_the_user_sends_a_message(here: Here) -> None:
    loop = here.start("goal", "g", "--max-iterations", "1", env=AGENT_A)
    here.ok("iterate", env=AGENT_A)
    assert here.run("iterate", env=AGENT_A).code == 4
    error = here.refused(4, "resume", "--add-iterations", "9", env=AGENT_A).err
    assert "until the user sends a message" in error
    send_prompt(here, loop)
    here.ok("resume", "--add-iterations", "9", env=AGENT_A)


# questions of planned loops

WAVE = "Wave 1 complete. Continue to Wave 2?"
RETRY = "Task T01 failed. Retry? (0/3 attempts used) [Y/n]"
FIX = "Verification found 2 gaps. Attempt automatic fix? (1/20) [Y/n]"
Ask = Callable[[Here], object]


def begin(here: Here) -> Here:
    """Start an interactive loop whose first wave may begin."""
    start_plan(here, *INTERACTIVE).ok("answer", "y")
    return here


@pytest.fixture
def begun(here: Here) -> Here:
    return begin(here)


@pytest.fixture
def yolo(here: Here) -> Here:
    return start_plan(here)


def ask_to_fix(here: Here) -> None:
    start_verify(here, FILE, mode="interactive")
    failed_round(here)


EVERY_QUESTION = pytest.mark.parametrize(
    ("ask", "question", "name"),
    [
        (lambda here: start_plan(here, *INTERACTIVE), START_QUESTION, "T01"),
        (lambda here: report_complete(begin(here), "T01", "T02"), WAVE, "T03"),
        (lambda here: report(begin(here), "T01", "TASK FAILED: no"), RETRY, "T01"),
        (ask_to_fix, FIX, "G1"),
    ],
    ids=["start", "wave", "retry", "fix"],
)


@EVERY_QUESTION
def test_question_keeps_work_and_agents_waiting_until_the_user_answers(
    here: Here, ask: Ask, question: str, name: str
) -> None:
    ask(here)
    for command in (("task", name, "running"), ("fail", name, "--error", "x")):
        assert "is waiting" in here.refused(4, *command).err
    assert ready(here) == []
    for command in (("answer", "y"), ("mode", "yolo"), ("resume",)):
        error = here.refused(4, *command, env=AGENT).err
        assert "until the user sends a message" in error
        assert "Ask the user" in error
    assert open_question(here) == question
    send_prompt(here, here.lines()[1]["loop"])
    here.ok("answer", "y", env=AGENT)
    here.ok("resume")
    assert open_question(here) is None
    assert questions(here).count(question) == 1


@EVERY_QUESTION
def test_answer_no_pauses_and_resume_does_not_ask_again(
    here: Here, ask: Ask, question: str, name: str
) -> None:
    ask(here)
    here.ok("answer", "n")
    status = here.status()
    assert (status["status"], status["pause_code"]) == ("paused", "manual")
    assert status["pause_reason"] == f"the user declined: {question}"
    here.ok("resume")
    assert open_question(here) is None
    assert questions(here).count(question) == 1


@EVERY_QUESTION
def test_mode_yolo_by_user_answers_question(here: Here, ask: Ask, question: str, name: str) -> None:
    ask(here)
    here.ok("mode", "yolo")
    assert open_question(here) is None
    assert questions(here)[-1] == question
    assert name in ready(here)


def test_answer_is_yes_or_no_as_a_whole_or_records_nothing(here: Here) -> None:
    no = ("N", "NO.", "n\n", " nope", "stop", "Cancel!", "later", "never", "Not  yet", "don\u2019t")
    yes = ("Y", "yes", "OK", "go", "continue", "Go ahead.", "'sure'")
    for text, status in (*((it, "paused") for it in no), *((it, "running") for it in yes)):
        start_plan(here, *INTERACTIVE, "--fresh").ok("answer", text)
        assert here.status()["status"] == status, text
    start_plan(here, *INTERACTIVE, "--fresh")
    before = here.journal.read_bytes()
    for text in ("", "now", "no, later", "yes, but skip T03", "y n", "note the style, then go"):
        error = here.refused(2, "answer", text).err
        assert "needs a yes or a no" in error
        assert "Yes is one of: y, yes" in error
    assert here.journal.read_bytes() == before


def test_start_and_fail_print_their_question_and_how_to_answer_it(here: Here) -> None:
    write_plan(here)
    shown = here.ok(*INTERACTIVE).out
    assert START_QUESTION in shown
    assert "answer y" in without_loop(shown)
    here.ok("answer", "y")
    assert RETRY in here.ok("fail", "T01", "--error", "no").out


def test_mode_interactive_by_agent_asks_from_the_next_decision_on_for_good(yolo: Here) -> None:
    yolo.ok("iterate")
    report_complete(yolo, "T01")
    yolo.ok("mode", "interactive", env=AGENT)
    assert "cannot set yolo mode for loop" in yolo.refused(4, "mode", "yolo", env=AGENT).err
    assert open_question(yolo) is None
    report_complete(yolo, "T02")
    assert open_question(yolo) == WAVE


def test_mode_interactive_asks_a_pending_question_at_once(yolo: Here) -> None:
    report_complete(yolo, "T01", "T02")
    assert WAVE in yolo.ok("mode", "interactive").out
    assert open_question(yolo) == WAVE


def test_checkpoint_waits_in_both_modes_and_its_answer_reaches_the_prompt(begun: Here) -> None:
    report(begun, "T01", "CHECKPOINT: Take A?\nOptions:\nA) a\nB) b\n")
    for mode in ("yolo", "interactive"):
        begun.ok("mode", mode)
        assert open_question(begun) == "Task T01 needs a decision: Take A?\nA) a\nB) b"
    begun.ok("answer", "No, take B")
    assert ready(begun) == ["T01", "T02"]
    prompt = begun.ok("next", "T01").out
    assert "<decision>" in prompt
    assert "No, take B" in prompt
    report(begun, "T01", "CHECKPOINT: And C?")
    begun.ok("answer", "yes, C")
    prompt = begun.ok("next", "T01").out
    assert "yes, C" in prompt
    assert "No, take B" not in prompt


def test_checkpoints_are_asked_together_by_id_and_again_by_resume(yolo: Here) -> None:
    yolo.ok("task", "T01", "running")
    yolo.ok("task", "T02", "running")
    assert report(yolo, "T01", "CHECKPOINT: one?")["status"] == "running"
    assert report(yolo, "T02", "CHECKPOINT: two?")["status"] == "waiting"
    both = (
        "2 decisions are open. Each has an id.\n"
        "T01: Task T01 needs a decision: one?\nT02: Task T02 needs a decision: two?"
    )
    for _ in range(2):
        assert both.replace("\n", " ") in yolo.ok("resume").out
        assert open_question(yolo) == both
    refused = without_loop(yolo.refused(2, "answer", "first").err)
    assert "Run: gsd-fsm answer ID TEXT, ID one of: T01, T02" in refused
    assert "no open question T03" in yolo.refused(2, "answer", "T03", "first").err
    yolo.ok("answer", "T01", "first")
    assert yolo.last()["v"] == 2
    assert yolo.status()["status"] == "waiting"
    yolo.refused(2, "answer", "T01", "again")
    yolo.ok("answer", "second")
    assert open_question(yolo) is None
    assert "first" in yolo.ok("next", "T01").out
    assert "second" in yolo.ok("next", "T02").out


def test_question_waits_until_every_running_task_is_reported(begun: Here) -> None:
    begun.ok("task", "T01", "running")
    begun.ok("task", "T02", "running")
    assert report(begun, "T01", "TASK FAILED: bad")["status"] == "retrying"
    assert ready(begun) == []
    assert "Finish task T02" in begun.ok("next").out
    assert "is waiting for your decision" in begun.refused(4, "task", "T01", "running").err
    begun.refused(4, "report", "T01", stdin=b"TASK COMPLETE")
    assert report(begun, "T02", "TASK COMPLETE")["status"] == "waiting"
    question = "Waiting for the user's answer: Task T01 failed. Retry?"
    assert begun.status()["next"].startswith(question)


def test_resume_by_agent_but_not_by_user_asks_before_a_failed_task_is_retried(begun: Here) -> None:
    fail = ("fail", "T01", "--class", "blocking", "--error", "no key")
    begun.ok(*fail, env=AGENT)
    begun.ok("resume", env=AGENT)
    assert begun.status()["status"] == "waiting"
    begun.ok("answer", "y")
    begun.ok("task", "T01", "running")
    begun.ok(*fail)
    begun.ok("resume")
    assert ready(begun) == ["T01", "T02"]


def test_resume_by_agent_after_a_no_is_refused(begun: Here) -> None:
    report(begun, "T01", "TASK FAILED: bad", env=AGENT)
    begun.ok("answer", "n")
    assert "override the user's no" in begun.refused(4, "resume", env=AGENT).err
    begun.ok("resume")
    assert "T01" in ready(begun)


def test_checkpoint_cannot_be_passed_by_agent_while_another_task_runs(yolo: Here) -> None:
    yolo.ok("iterate", env=AGENT)
    yolo.ok("task", "T01", "running", env=AGENT)
    yolo.ok("task", "T02", "running", env=AGENT)
    assert report(yolo, "T01", "CHECKPOINT: drop the database?", env=AGENT)["status"] == "running"
    yolo.refused(4, "report", "T01", stdin=b"TASK COMPLETE", env=AGENT)
    for command in ("task T01 complete", "task T01 running", "fail T01 --error x"):
        yolo.refused(4, *command.split(), env=AGENT)
    assert report(yolo, "T02", "TASK COMPLETE", env=AGENT)["status"] == "waiting"


def test_fix_question_cannot_be_postponed_by_unknown_tasks(here: Here) -> None:
    start_verify(here, FILE, mode="interactive")
    assert "has no gap X" in here.refused(4, "task", "X", "running").err
    failed_round(here)
    assert open_question(here) == FIX

"""pause, resume, wait, answer, mode, cancel and complete."""

from __future__ import annotations

import pytest

from tests.support.command_line import AGENT_A, Here, send_prompt


def test_answer_returns_to_the_status_before_the_question(here: Here) -> None:
    here.start("verify")
    here.ok("gap", "found", "--description", "d")
    here.ok("wait", "Left or right?")
    status = here.status()
    assert status["status"] == "waiting"
    assert "Left or right?" in status["next"]
    answer = here.refused(4, "iterate")
    assert "cannot run 'iterate'" in answer.err
    assert "Run: gsd-fsm answer TEXT" in answer.err
    here.ok("answer", "left")
    assert (here.status()["status"], here.last()["data"]) == ("fixing", {"text": "left"})


def test_answer_is_read_from_stdin_and_refused_without_a_question(here: Here) -> None:
    here.start("goal", "g")
    here.ok("wait", "q")
    here.refused(2, "answer")
    here.ok("answer", "--file", "-", stdin=b"from stdin")
    assert here.last()["data"]["text"] == "from stdin"
    assert "cannot run 'answer'" in here.refused(4, "answer", "again").err


def test_wait_until_records_utc_time_and_ends_by_resume(here: Here) -> None:
    here.start("goal", "g")
    here.ok("wait", "--until", "2030-01-02T03:04:05+02:00")
    assert here.last()["data"] == {"for": "throttled", "until": "2030-01-02T01:04:05.000Z"}
    here.ok("resume")
    assert here.status()["status"] == "running"
    here.refused(2, "wait")
    assert "is not a time" in here.refused(2, "wait", "--until", "tomorrow").err


def test_resume_returns_to_the_status_before_the_pause(here: Here) -> None:
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


def test_cancel_prints_what_is_done_and_what_remains(here: Here) -> None:
    here.start("execute", "--task", "A", "--task", "B", "--task", "C", "--criterion", "c")
    here.ok("task", "A", "skipped")
    here.ok("gap", "found", "--description", "d")
    said = here.ok("cancel", "--reason", "no time").out
    assert "Tasks done: A; remaining: B, C." in said
    assert "Gaps done: none; remaining: G1." in said
    assert "Criteria done: none; remaining: c." in said
    assert here.last()["data"] == {"reason": "no time"}
    assert here.status()["status"] == "cancelled"
    assert "paused" not in here.ok("status").out


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_command_on_ended_loop_is_refused_and_names_start(here: Here, end: str) -> None:
    loop = here.start("execute", "--task", "T1")
    here.ok("task", "T1", "skipped")
    here.ok(end)
    assert f"the last one, {loop}, is" in here.refused(3, "iterate").err
    for command in (
        *(["iterate"], ["resume"], ["cancel"], ["pause"], ["task", "T1", "running"]),
        *(["fail", "--error", "e"], ["note", "n"], ["mode", "yolo"]),
    ):
        answer = here.refused(4, "--loop", loop, *command)
        assert f"loop {loop} is" in answer.err, answer
        assert "gsd-fsm start" in answer.err, answer


def test_complete_names_open_tasks_until_all_are_done(here: Here) -> None:
    here.start("execute", "--task", "T1", "--task", "T2")
    answer = here.refused(4, "complete")
    assert "is running and not done: task T1 is pending; task T2 is pending" in answer.err
    here.ok("task", "T1", "running")
    here.ok("task", "T1", "complete")
    here.ok("task", "T2", "skipped")
    assert here.ok("complete", "--json").json["status"] == "completed"


def test_resume_adds_to_limits_and_rejects_other_amounts(here: Here) -> None:
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


def test_resume_says_which_added_limits_were_unlimited(here: Here) -> None:
    here.start("goal", "g", "--max-iterations", "0")
    here.ok("pause")
    said = here.ok("resume", "--add-budget", "5", "--add-iterations", "3").out
    assert "Nothing added: iterations, money had no limit" in said
    assert here.status()["budget_usd"] is None


def test_resume_of_damaged_journal_names_the_line(here: Here) -> None:
    here.start("goal", "g")
    here.ok("pause")
    raw = here.journal.read_bytes()
    here.journal.write_bytes(raw.replace(b'"goal":"g"', b'"goal":"h"'))
    answer = here.refused(5, "resume")
    assert "line 2" in answer.err


# agents


@pytest.mark.parametrize(
    "variable",
    ["CLAUDECODE", "GEMINI_CLI", "CODEX_THREAD_ID", "COPILOT_CLI", "CURSOR_AGENT", "AI_AGENT"],
)
def test_command_in_the_environment_of_an_agent_is_by_agent(here: Here, variable: str) -> None:
    here.start("goal", "g", env={variable: "1"})
    assert here.last()["by"] == "agent"
    here.ok("note", "n")
    assert here.last()["by"] == "human"
    assert "client" not in here.last()


@pytest.mark.parametrize("marker", ["GEMINI_CLI", "AI_AGENT"])
def test_session_id_of_another_client_does_not_make_an_agent_human(here: Here, marker: str) -> None:
    here.start("goal", "g", env={marker: "1", "CLAUDE_CODE_SESSION_ID": "left-behind"})
    assert here.last()["by"] == "agent"
    assert "session" not in here.last()


def test_session_of_another_client_owns_its_loop(here: Here) -> None:
    here.start("goal", "g", env={"QWEN_CODE": "1", "QWEN_CODE_SESSION_ID": "q-1"})
    assert (here.status()["owner"], here.last()["client"]) == ("q-1", "qwen")


def test_answer_by_agent_is_refused_until_the_user_sends_a_message(here: Here) -> None:
    loop = here.start("goal", "g", env=AGENT_A)
    here.ok("wait", "q", env=AGENT_A)
    answer = here.refused(4, "answer", "myself", env=AGENT_A)
    assert "until the user sends a message" in answer.err
    assert "Ask the user" in answer.err
    here.refused(4, "resume", env=AGENT_A)
    send_prompt(here, loop)
    here.ok("answer", "the user said", env=AGENT_A)
    here.ok("wait", "q", env=AGENT_A)
    here.ok("answer", "a human at the keyboard")


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
    answer = here.refused(4, "resume", "--add-iterations", "9", env=AGENT_A)
    assert "until the user sends a message" in answer.err
    send_prompt(here, loop)
    here.ok("resume", "--add-iterations", "9", env=AGENT_A)
    here.ok("iterate", env=AGENT_A)
    here.refused(4, "resume", "--add-iterations", "9", env=AGENT_A)
    here.ok("pause", env=AGENT_A)
    here.ok("resume", env=AGENT_A)

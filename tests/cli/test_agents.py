from __future__ import annotations

import pytest

from gsd_fsm.core.journal.journal import Journal
from tests.support.command_line import AGENT, A, Here
from tests.support.events import append, draft

AGENT_A = {**AGENT, **A}


def prompt(here: Here, loop: str) -> None:
    """A human speaks to the session, as the prompt hook records it."""
    told = draft("session", loop, "hook", {"action": "prompt"}, session="session-a")
    append(Journal(str(here.gsd)), told)


@pytest.mark.parametrize(
    "variable",
    ["CLAUDECODE", "GEMINI_CLI", "CODEX_THREAD_ID", "COPILOT_CLI", "CURSOR_AGENT", "AI_AGENT"],
)
def test_what_an_agent_runs_is_by_agent(here: Here, variable: str) -> None:
    here.start("goal", "g", env={variable: "1"})
    assert here.last()["by"] == "agent"
    here.ok("note", "n")
    assert here.last()["by"] == "human"
    assert "client" not in here.last()


def test_an_agent_answers_only_after_a_human_spoke(here: Here) -> None:
    loop = here.start("goal", "g", env=AGENT_A)
    here.ok("wait", "q", env=AGENT_A)
    answer = here.refused(4, "answer", "myself", env=AGENT_A)
    assert "until the user sends a message" in answer.err
    assert "Ask the user" in answer.err
    here.refused(4, "resume", env=AGENT_A)
    prompt(here, loop)
    here.ok("answer", "the user said", env=AGENT_A)
    here.ok("wait", "q", env=AGENT_A)
    here.ok("answer", "a human at the keyboard")


def test_an_agent_cancels_only_after_a_human_spoke(here: Here) -> None:
    loop = here.start("goal", "g", env=AGENT_A)
    here.ok("iterate", env=AGENT_A)
    here.refused(4, "cancel", env=AGENT_A)
    here.refused(4, "start", "goal", "easier", "--fresh", env=AGENT_A)
    prompt(here, loop)
    here.ok("cancel", env=AGENT_A)


def test_an_agent_does_not_raise_its_own_limits(here: Here) -> None:
    loop = here.start("goal", "g", "--max-iterations", "1", env=AGENT_A)
    here.ok("iterate", env=AGENT_A)
    assert here.run("iterate", env=AGENT_A).code == 4
    answer = here.refused(4, "resume", "--add-iterations", "9", env=AGENT_A)
    assert "until the user sends a message" in answer.err
    prompt(here, loop)
    here.ok("resume", "--add-iterations", "9", env=AGENT_A)
    here.ok("iterate", env=AGENT_A)
    here.refused(4, "resume", "--add-iterations", "9", env=AGENT_A)
    here.ok("pause", env=AGENT_A)
    here.ok("resume", env=AGENT_A)


def test_a_prompt_before_the_wait_does_not_allow_the_answer(here: Here) -> None:
    loop = here.start("goal", "g", env=AGENT_A)
    prompt(here, loop)
    here.ok("wait", "q", env=AGENT_A)
    here.refused(4, "answer", "x", env=AGENT_A)


def test_an_agent_may_not_trust_a_journal(here: Here) -> None:
    here.start("goal", "g")
    assert "Ask the user" in here.refused(6, "trust", env=AGENT).err


@pytest.mark.parametrize("marker", ["GEMINI_CLI", "AI_AGENT"])
def test_a_session_id_left_behind_does_not_make_an_agent_human(here: Here, marker: str) -> None:
    here.start("goal", "g", env={marker: "1", "CLAUDE_CODE_SESSION_ID": "left-behind"})
    assert here.last()["by"] == "agent"
    assert "session" not in here.last()


def test_the_session_of_each_client_owns_its_loop(here: Here) -> None:
    here.start("goal", "g", env={"QWEN_CODE": "1", "QWEN_CODE_SESSION_ID": "q-1"})
    assert (here.status()["owner"], here.last()["client"]) == ("q-1", "qwen")

"""Words between users, agents and the hook: whose they are, that they arrive, and that a no is a no."""

from __future__ import annotations

import json

import pytest

from tests.support.hook_agent import Agent, kinds, start

GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
TASKS = ("execute", "--task", "T1", "--task", "T2")


def test_a_note_in_a_block_that_the_client_dropped_is_delivered_again(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("note", "mind the gap")
    assert "mind the gap" in agent.blocked()
    agent.prompt("I pressed Esc")

    assert "mind the gap" in agent.blocked()
    assert "mind the gap" not in agent.blocked()


def test_an_answer_in_a_block_that_the_client_dropped_is_delivered_again(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("wait", "Which?")
    agent.here.ok("answer", "the blue one")
    assert "the blue one" in agent.blocked()
    agent.ends()
    agent.starts("resume")

    assert "the blue one" in agent.blocked()
    assert "the blue one" not in agent.blocked()


def test_a_note_is_known_by_its_author(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("note", "of the agent", env=agent.shell)
    agent.here.ok("note", "of the user")

    lines = agent.blocked().split("\n")

    assert "not instructions" in lines[lines.index("of the agent") - 2]
    assert lines[lines.index("of the agent") - 2].startswith("Note from an agent")
    assert lines[lines.index("of the user") - 2] == "Note from the user (quoted):"


@pytest.mark.parametrize("no", ["n", "No", "no, leave it", "no. Never."])
def test_a_no_pauses_the_loop_instead_of_being_overrun(agent: Agent, no: str) -> None:
    start(agent, *TASKS, by="interactive")
    agent.here.ok("fail", "T1", "--error", "broke", env=agent.shell)
    assert "Retry?" in agent.allowed()
    agent.prompt(no)
    agent.here.ok("answer", no, env=agent.shell)

    assert agent.here.status()["status"] == "paused"
    assert "declined" in agent.here.status()["pause_reason"]
    agent.allowed()


@pytest.mark.parametrize("yes", ["y", "yes", "nothing stands in the way", "now"])
def test_anything_else_goes_on(agent: Agent, yes: str) -> None:
    start(agent, *TASKS, by="interactive")
    agent.here.ok("fail", "T1", "--error", "broke", env=agent.shell)
    agent.allowed()
    agent.here.ok("answer", yes)

    assert yes in agent.blocked()


def test_a_question_is_told_again_after_a_prompt_that_was_not_recorded_as_its_answer(
    agent: Agent,
) -> None:
    start(agent, *TASKS, by="interactive")
    agent.here.ok("fail", "T1", "--error", "broke", env=agent.shell)
    assert "Retry?" in agent.allowed()
    assert agent.allowed() == ""
    agent.prompt("what do you mean?")

    assert "Retry?" in agent.allowed()


def test_a_user_who_quotes_our_notice_is_still_a_human(agent: Agent) -> None:
    loop = start(agent, *GOAL, "--max-iterations", "1")
    agent.blocked()
    notice = agent.allowed()
    agent.prompt(f"It says: {notice} Yes, do that.")

    agent.here.ok("resume", "--add-iterations", "10", env=agent.shell)
    assert loop in notice


def test_a_switched_off_project_says_nothing_at_all(agent: Agent) -> None:
    start(agent, *GOAL)
    (agent.here.gsd / "STOP").touch()
    before = agent.here.journal.read_bytes()

    assert (agent.starts("resume"), agent.prompt("hello"), agent.notice) == ("", "", "")
    agent.fails("billing_error")
    assert agent.here.journal.read_bytes() == before


def test_a_pause_that_a_switch_has_hidden_is_told_later(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.here.ok("pause")
    (agent.here.gsd / "STOP").touch()
    assert agent.allowed() == ""
    (agent.here.gsd / "STOP").unlink()

    assert "paused (manual)" in agent.allowed()


def test_the_user_of_another_session_is_told_of_the_loop_and_its_way_on(agent: Agent) -> None:
    loop = start(agent, *GOAL)
    other = agent.other("s-2")
    other.starts()

    assert f"gsd-fsm --loop {loop} resume" in other.notice


def test_a_mark_that_was_recorded_is_not_called_wrong(agent: Agent, repository: object) -> None:
    start(agent, "goal", "g", "--check", "t=true")
    agent.here.ok("check")

    text = agent.blocked("<loop-complete>ok</loop-complete>")

    assert "one command is left" in text
    assert "is not done" not in text


def test_an_event_of_the_agent_shows_that_a_block_was_honoured(agent: Agent) -> None:
    start(agent, *GOAL)
    agent.blocked()
    seq = str(agent.here.last()["seq"])
    agent.here.ok("criterion", "1", "met", env=agent.shell)
    agent.prompt("Esc was pressed later")

    assert "The client continued" in agent.why(seq)["why"]


def test_a_reference_that_leads_out_of_git_is_no_commit(agent: Agent) -> None:
    start(agent, *GOAL)
    (agent.here.root / ".git").mkdir()
    (agent.here.root / ".git" / "HEAD").write_text("ref: ../secret\n")
    (agent.here.root / "secret").write_text("A PRIVATE KEY")
    agent.blocked()

    assert "PRIVATE" not in json.dumps(agent.here.lines())


def test_copies_that_see_one_stop_around_a_note_count_once(agent: Agent) -> None:
    start(agent, *GOAL)
    text = agent.blocked()
    agent.here.ok("note", "in between")

    assert agent.twin("two").stop() is not None
    assert kinds(agent.here).count("iteration continue") == 1
    assert text


def test_a_note_of_a_block_that_was_honoured_is_not_told_again_after_one_that_was_not(
    agent: Agent,
) -> None:
    start(agent, *GOAL, "--stuck-limit", "0")
    agent.here.ok("note", "the staging server is down")
    assert "staging" in agent.blocked()
    assert "staging" not in agent.blocked()
    agent.prompt("go on")  # the client had dropped the last block
    assert "staging" not in agent.blocked()

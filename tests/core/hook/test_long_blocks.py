"""Blocks with more to tell than there is room for: everything is shortened, nothing is dropped."""

from __future__ import annotations

import pytest

from tests.support.hook_agent import Agent, start

LONG = "words " * 30


def loaded(agent: Agent, counsel: str) -> str:
    """A loop that would have far more to say than a block may hold."""
    agent.here.gsd.mkdir()
    agent.here.gsd.joinpath("config.toml").write_text(
        f'views = ["status-block"]\ncounsel = "{counsel}"\n'
    )
    many = [f"{n} {LONG}" for n in range(12)]
    options = [x for text in many for x in ("--criterion", f"c{text}", "--must-not", f"m{text}")]
    checks = [x for n in range(3) for x in ("--check", f"k{n}=printf 'e%.0s' $(seq 3000); false")]
    loop = start(agent, "goal", f"Ship {LONG * 5}", *options, *checks, "--task", "A", "--task", "B")
    for name in ("A", "B"):
        how = ("--analysis", LONG * 4, "--fix", LONG * 4, "--class", "logic")
        agent.here.ok("fail", name, "--error", f"{name} {LONG * 9}", *how, env=agent.shell)
    assert agent.here.run("check", env=agent.shell).code == 7
    return loop


@pytest.mark.parametrize("counsel", ["Ask somebody.", "counsel " * 200])
def test_every_part_of_a_long_block_is_there_and_shorter(agent: Agent, counsel: str) -> None:
    loop = loaded(agent, counsel)
    agent.here.ok("note", "remember the milk")
    text = agent.blocked()
    assert len(text) < 8_000
    for part in (
        "Goal: Ship words", "Not done yet: criterion not met: c0", "Must not: m0", "m11",
        "Verification has failed", counsel[:12], "Task A failed", "remember the milk", "Next: Retry",
        f"Run: gsd-fsm --loop {loop} task A running",
    ):  # fmt: skip
        assert part in text, part


def test_a_note_is_whole_as_long_as_there_is_any_room(agent: Agent) -> None:
    loaded(agent, "Ask somebody.")
    note = " ".join(f"word{n}" for n in range(480))
    assert 3_500 < len(note) < 4_000
    agent.here.ok("note", note)
    assert note in agent.blocked()
    agent.uses_a_tool()
    assert note not in agent.blocked()


def test_must_nots_beyond_what_is_listed_are_counted(agent: Agent) -> None:
    many = [x for n in range(30) for x in ("--must-not", f"mn{n}.")]
    start(agent, "goal", "g", *many)
    text = agent.blocked()
    assert "mn19." in text
    assert "and 10 more (run: gsd-fsm status)" in text


def test_signs_that_take_much_room_in_a_journal_are_shortened_too(agent: Agent) -> None:
    start(
        agent, "goal", "🟢" * 1_500, *[x for n in range(9) for x in ("--criterion", f"{n}🟢" * 60)]
    )
    agent.here.ok("note", "🟢" * 3_000)
    text = agent.blocked()
    assert "criterion not met: 0🟢" in text
    assert "Note from the user" in text


def test_a_note_whose_block_led_to_work_is_not_told_again(agent: Agent) -> None:
    start(agent, "goal", "g")
    agent.talks()
    agent.here.ok("note", "remember the milk")
    assert "remember the milk" in agent.blocked()
    agent.uses_a_tool()
    agent.prompt("I pressed Esc; go on")
    assert "remember the milk" not in agent.blocked()


def test_notes_that_nobody_saw_are_told_at_the_end(agent: Agent) -> None:
    start(agent, "goal", "g")
    agent.here.ok("note", "remember the milk")
    agent.here.ok("exit-signal", env=agent.shell)
    assert "undelivered notes: 1" in agent.allowed()


def test_a_pause_is_told_once_and_with_the_error_that_led_to_it(agent: Agent) -> None:
    start(agent, "goal", "g", "--task", "A")
    agent.here.ok("fail", "A", "--class", "blocking", "--error", "no such host", env=agent.shell)
    assert "no such host" in agent.allowed()
    assert [agent.allowed() for _ in range(3)] == ["", "", ""]


def test_an_error_that_passes_by_itself_asks_for_the_same_once_more(agent: Agent) -> None:
    start(agent, "goal", "g", "--task", "A")
    agent.here.ok("fail", "A", "--class", "transient", "--error", "reset by peer", env=agent.shell)
    text = agent.blocked()
    assert "Another transient error pauses the loop." in text
    assert "Verification has failed" not in text

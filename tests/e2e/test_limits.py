"""Limits with the real client: ours decide, the client's own does not get in the way."""

from __future__ import annotations

import pytest

from tests.support.e2e.fake_model import Turn, bash, say
from tests.support.e2e.project import FINISH, GOAL, Rig

pytestmark = pytest.mark.e2e


def test_active_agent_gets_25_iterations_in_one_session(rig: Rig) -> None:
    loop = rig.start(*GOAL, "--max-iterations", "25", "--stuck-limit", "0")
    chat = rig.talk("Go on for long.", *[bash("true"), say("Enough for now.")] * 26)
    blocks = enumerate(rig.sent_back(), 1)
    assert [f"iteration {number}/25 " in text for number, text in blocks] == [True] * 25
    assert rig.story(loop).count("iteration") == 25
    assert rig.story(loop)[-2:] == ["pause iterations", "session end"]
    assert "25 of 25 iterations are used" in chat.notices
    assert f"gsd-fsm resume --loop {loop} --add-iterations 10" in chat.notices


@pytest.mark.parametrize(
    ("options", "blocks", "notice"),
    [
        ((), 3, "no activity in 3 consecutive blocks"),
        (("--idle-limit", "0", "--stuck-limit", "0"), 8, "the client would end the turn itself after 8"),
    ],
    ids=["idle limit", "no idle limit"],
)  # fmt: skip
def test_idle_agent_is_paused_by_loop_before_client_cap(
    rig: Rig, options: tuple[str, ...], blocks: int, notice: str
) -> None:
    loop = rig.start(*GOAL, *options)
    chat = rig.talk("Ship it.", *[say(f"Done, says number {n}.") for n in range(blocks + 1)])
    assert len(rig.sent_back()) == blocks
    assert rig.story(loop)[-2:] == ["pause idle", "session end"]
    assert notice in chat.notices
    assert "idle" in rig.ok("why").out


def test_turn_interrupted_by_user_does_not_end_the_loop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    screen = rig.interrupted_after_a_block()
    rig.model.main.then(FINISH, say("It is shipped."))
    screen.type("Go on, please.")
    shown = screen.until(f"loop {loop} completed")
    assert "the client, not the loop, ended the turn" in shown
    assert rig.story(loop).count("stop client") == 1
    assert rig.story(loop).count("iteration") == 1


def test_overloaded_model_makes_loop_wait_without_iterations(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(Turn(status=529, error="Overloaded"))
    chat = rig.chat(CLAUDE_CODE_MAX_RETRIES="0")
    assert chat.ask("Ship it.")["is_error"]
    rig.until(lambda: rig.story(loop)[-1] == "wait throttled", "wait")
    rig.model.main.then(say("I stop."), FINISH, say("It is shipped."))
    chat.ask("Is it better now?")
    chat.close()
    assert rig.story(loop).count("iteration") == 1
    assert "failure" not in rig.story(loop)
    assert rig.story(loop).index("resume") < rig.story(loop).index("iteration")
    assert rig.story(loop)[-1] == "complete"


def test_refused_login_pauses_the_loop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(Turn(status=401, error="invalid x-api-key"))
    chat = rig.chat(CLAUDE_CODE_MAX_RETRIES="0")
    assert chat.ask("Ship it.")["is_error"]
    rig.until(lambda: "pause client" in rig.story(loop), "pause")
    chat.close()
    assert rig.status()["iteration"] == 0
    assert "authentication_failed" in rig.status()["pause_reason"]


def test_turn_ended_by_client_cap_is_recorded_and_reported(rig: Rig) -> None:
    def talk(_request: object) -> dict[str, object]:
        rig.ok("note", "a word from the user")  # a sign of life that the client does not count
        return say("Done, I think.")

    rig.calm = False  # the client says that it has overridden us
    loop = rig.start(*GOAL, "--stuck-limit", "0")
    rig.model.main.then(*[talk] * 9)
    chat = rig.chat()
    chat.ask("Ship it.")
    assert rig.story(loop).count("iteration") == 9
    assert len(rig.sent_back()) == 8
    rig.model.main.then(FINISH, say("It is shipped."))
    chat.ask("Are you still there?")
    chat.close()
    assert "the client, not the loop, ended the turn" in chat.notices
    assert rig.story(loop).count("stop client") == 1
    last = [event["seq"] for event in rig.lines() if event["type"] == "iteration"][-1]
    assert "The client ended the turn" in rig.ok("why", str(last)).out

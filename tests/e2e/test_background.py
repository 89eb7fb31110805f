"""Background work with the real client: a loop waits for it, and does not end because of it."""

from __future__ import annotations

import pytest

from tests.support.e2e.fake_model import Held, bash, delegate, say
from tests.support.e2e.project import FINISH, GOAL, Rig

pytestmark = pytest.mark.e2e


def test_background_command_allows_one_stop_and_loop_continues(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(
        bash("until test -e ready; do sleep 0.1; done", background=True),
        say("I wait for it."),
        say("It has ended."),
        FINISH,
        say("It is shipped."),
    )
    chat = rig.chat()
    assert chat.ask("Ship it.")["result"] == "I wait for it."
    assert rig.story(loop)[-1] == "stop background"
    assert rig.status()["iteration"] == 0
    assert "one stop is allowed while this runs" in chat.told
    (rig.root / "ready").touch()
    assert chat.result(2)["result"] == "It is shipped."
    chat.close()
    assert rig.story(loop).count("iteration") == 1
    assert rig.story(loop)[-1] == "complete"
    assert len(rig.sent_back()) == 1
    assert "<task-notification>" in rig.model.asked()[2].heard


def test_background_server_does_not_end_the_loop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    server = f"while test -d {rig.scratch}; do sleep 0.2; done"  # until the test is over
    rig.model.main.then(bash(server, background=True), say("The server is up."))
    chat = rig.chat()
    assert chat.ask("Ship it.")["result"] == "The server is up."
    assert rig.story(loop)[-1] == "stop background"
    rig.model.main.then(say("Still up."), FINISH, say("It is shipped."))
    assert chat.ask("Go on.")["result"] == "It is shipped."
    assert rig.story(loop).count("stop background") == 1
    assert rig.story(loop).count("iteration") == 1
    assert rig.story(loop)[-1] == "complete"
    assert len(rig.sent_back()) == 1


def test_subagent_stop_neither_blocks_nor_completes_the_loop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    held = Held(say("<loop-complete>All is done.</loop-complete>"))
    rig.model.sub.then(held)
    rig.model.main.then(
        delegate("look around", background=True),
        say("I wait for it."),
        say("<loop-complete>It says all is done.</loop-complete>"),
        FINISH,
        say("It is shipped."),
    )
    chat = rig.chat()
    assert chat.ask("Ship it.")["result"] == "I wait for it."
    assert rig.story(loop)[-1] == "stop background"
    held.let_go()
    assert chat.result(2)["result"] == "It is shipped."
    chat.close()
    assert [hook["stdout"] for hook in chat.hooks("SubagentStop")] == [""]
    (sent_back,) = rig.sent_back()
    assert "You wrote <loop-complete>" in sent_back
    assert rig.story(loop).count("iteration") == 1
    assert rig.story(loop)[-1] == "complete"

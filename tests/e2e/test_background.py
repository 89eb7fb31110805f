"""Background work with the real client: a loop waits for it, and does not end because of it."""

from __future__ import annotations

import pytest

from tests.support.e2e.fake_model import Held, bash, delegate, say
from tests.support.e2e.project import FINISH, GOAL, Rig

pytestmark = pytest.mark.e2e


def require_one_block(rig: Rig, loop: str) -> str:
    """Require that the loop completed after one block and one stop for background work."""
    story = rig.story(loop)
    assert (story.count("iteration"), story.count("stop background")) == (1, 1)
    assert story[-1] == "complete"
    (text,) = rig.sent_back()
    return text


def test_background_server_allows_one_stop_and_loop_continues(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    server = f"while test -d {rig.scratch}; do sleep 0.2; done"  # until the test is over
    rig.model.main.then(bash(server, background=True), say("The server is up."))
    chat = rig.chat()
    assert chat.ask("Ship it.")["result"] == "The server is up."
    assert rig.story(loop)[-1] == "stop background"
    assert rig.status()["iteration"] == 0
    assert "one stop is allowed while this runs" in chat.notices
    rig.model.main.then(say("Still up."), FINISH, say("It is shipped."))
    assert chat.ask("Go on.")["result"] == "It is shipped."
    require_one_block(rig, loop)


def test_subagent_stop_neither_blocks_nor_completes_the_loop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    held = Held(say("<loop-complete>All is done.</loop-complete>"))
    rig.model.sub.then(held)
    claim = say("<loop-complete>It says all is done.</loop-complete>")
    look = delegate("look around", background=True)
    rig.model.main.then(look, say("I wait for it."), claim, FINISH, say("It is shipped."))
    chat = rig.chat()
    assert chat.ask("Ship it.")["result"] == "I wait for it."
    assert rig.story(loop)[-1] == "stop background"
    held.let_go()
    assert chat.result(2)["result"] == "It is shipped."
    chat.close()
    assert "<task-notification>" in rig.model.asked()[2].heard
    assert [hook["stdout"] for hook in chat.hooks("SubagentStop")] == [""]
    assert "You wrote <loop-complete>" in require_one_block(rig, loop)

"""A goal loop with the real client: it ends when the goal is reached, and not before."""

from __future__ import annotations

import pytest

from tests.support.e2e.fake_model import bash, say
from tests.support.e2e.project import FINISH, GOAL, Rig

pytestmark = pytest.mark.e2e

VERIFY = "test -e mended || { echo '1 failed: test_login'; exit 1; }\n"


def test_goal_loop_blocks_agent_while_check_fails(rig: Rig) -> None:
    (rig.root / "verify.sh").write_text(VERIFY)
    loop = rig.start(
        "goal", "The login works", "--mode", "yolo", "--check", "tests=sh verify.sh"
    )  # fmt: skip
    rig.model.main.then(
        bash("gsd-fsm check"),
        say("All done."),
        bash("gsd-fsm check"),
        say("Now it is done."),
        say("<loop-complete>Done, I promise.</loop-complete>"),
        bash("touch mended && gsd-fsm check"),
        bash("gsd-fsm exit-signal && gsd-fsm complete"),
        say("The login works."),
    )
    chat = rig.chat()
    assert chat.ask("Make the login work.")["result"] == "The login works."
    assert chat.close() == 0
    assert rig.story(loop) == [
        "start", "session bind", "session prompt", "criterion unmet", "iteration",
        "criterion unmet", "iteration", "iteration", "criterion met", "exit", "complete",
    ]  # fmt: skip
    told = rig.sent_back()
    for number, text in enumerate(told, 1):
        assert f"Continuing goal loop iteration {number}/20" in text
        assert "1 failed: test_login" in text
        assert f"Run: gsd-fsm --loop {loop} check" in text
    assert len(set(told)) == 3
    assert "You wrote <loop-complete>" in told[2]
    assert rig.ok("status", "--check").code == 0
    assert rig.status()["owner"] == chat.session


def test_block_is_not_shown_as_error_in_terminal(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(say("I stop here."), FINISH, say("It is shipped."))
    screen = rig.screen()
    screen.type("Ship it, please.")
    shown = screen.until("Stop says: gsd-fsm")
    assert f"Stop hook feedback: Continuing goal loop iteration 1/20 ({loop})" in shown
    assert f"Stop says: gsd-fsm: loop {loop} completed" in shown
    assert rig.story(loop)[-1] == "complete"
    assert "iteration" in rig.story(loop)

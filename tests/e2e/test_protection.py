"""No check is weakened unnoticed, with the real client: the agent restores it, or a human accepts it."""

from __future__ import annotations

import pytest

from tests.support.command_line import without_loop
from tests.support.e2e.fake_model import bash, say
from tests.support.e2e.project import Rig

pytestmark = pytest.mark.e2e

CHECK = "test -e fixed || { echo '1 failed: test_login'; exit 1; }\n"
WEAKEN = bash("printf 'exit 0\\n' > verify.sh; gsd-fsm check")
NAMED = "protected file verify.sh was changed, and check tests depends on it"
BEGIN = ["start", "session bind", "session start", "session prompt"]


@pytest.fixture
def loop(rig: Rig) -> str:
    """Return a loop whose check runs a script."""
    (rig.root / "verify.sh").write_text(CHECK)
    return rig.start("goal", "It works", "--mode", "yolo", "--check", "tests=sh verify.sh")


def heard(rig: Rig) -> list[str]:
    """Return what the model heard before each of its turns, without the loop in commands."""
    return [without_loop(request.heard) for request in rig.model.asked()]


def test_overwritten_check_is_named_restored_and_passed_by_work(rig: Rig, loop: str) -> None:
    chat = rig.talk(
        "Make the login work.",
        WEAKEN, say("The check passes now."),
        bash("gsd-fsm restore tests; cat verify.sh; gsd-fsm check"), say("It fails again."),
        bash("touch fixed && gsd-fsm check --complete"), say("The login works."),
    )  # fmt: skip
    refused, block, restored, failing, done = heard(rig)[1:6]
    for text in (refused, block):
        assert NAMED in text
        assert "Run: gsd-fsm restore tests" in text
    assert "+exit 0" in refused
    assert "Only altered checks are left" in block
    assert "Restored: verify.sh." in restored
    assert CHECK in restored
    assert "1 failed: test_login" in failing
    assert NAMED not in failing
    assert "Proven: 1 criterion. Claimed: nothing." in done
    assert rig.story(loop) == [
        *BEGIN, "plan", "criterion unmet", "iteration", "plan", "criterion unmet", "iteration",
        "criterion met", "exit", "complete",
    ]  # fmt: skip
    assert "Accepted" not in chat.notices
    shown = rig.ok("proof").out
    assert "altered: verify.sh" in shown
    assert "restored for tests: verify.sh" in shown


def test_agent_that_insists_is_paused_until_a_human_accepts(rig: Rig, loop: str) -> None:
    chat = rig.talk(
        "Make the login work.",
        WEAKEN, say("The check passes now."),
        bash("gsd-fsm accept tests"), say("I insist: the check passes."),
    )  # fmt: skip
    refused, block, denied = heard(rig)[1:4]
    assert NAMED in refused
    assert NAMED in block
    assert "agents cannot accept a change of a check" in denied
    assert f"loop {loop} is paused (altered): {NAMED}" in chat.notices
    told = without_loop(chat.notices)
    assert "To accept the change, run: gsd-fsm accept tests" in told
    assert "to undo it: gsd-fsm restore tests" in told
    ended = ["pause altered", "session end"]
    assert rig.story(loop) == [*BEGIN, "plan", "criterion unmet", "iteration", *ended]
    status = rig.status()
    assert (status["status"], status["pause_code"]) == ("paused", "altered")
    accepted = without_loop(rig.ok("accept", "tests").out)
    assert "Accepted for tests: verify.sh." in accepted
    assert "Run: gsd-fsm complete" in accepted
    last = rig.ok("complete").out
    assert "Proven: 1 criterion. Claimed: nothing. Accepted changes: verify.sh." in last
    assert "altered files accepted by human" in rig.ok("proof").out
    assert [it["by"] for it in rig.lines() if "accepted" in it["data"]] == ["human"]

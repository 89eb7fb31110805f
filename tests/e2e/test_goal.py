"""Goal loops with the real client: they end when the goal is reached, and not before."""

from __future__ import annotations

import pytest

from tests.support.command_line import without_loop
from tests.support.e2e.fake_model import bash, say
from tests.support.e2e.project import FINISH, GOAL, Rig

pytestmark = pytest.mark.e2e

VERIFY = "test -e fixed || { echo '1 failed: test_login'; exit 1; }\n"
SCORE = "gsd-fsm score --outcome 2 --scope 2 --constraints 2 --success 2 --done 2"
VALIDATED = "grep -q 'def validate' auth.py"


def test_goal_loop_blocks_agent_while_check_fails(rig: Rig) -> None:
    (rig.root / "verify.sh").write_text(VERIFY)
    loop = rig.start("goal", "It works", "--mode", "yolo", "--check", "tests=sh verify.sh")
    check = bash("gsd-fsm check")
    chat = rig.talk(
        "Make the login work.",
        check, say("All done."), check, say("Now it is done."),
        say("<loop-complete>Done, I promise.</loop-complete>"),
        bash("touch fixed && gsd-fsm check"), bash("gsd-fsm exit-signal && gsd-fsm complete"),
        say("The login works."),
    )  # fmt: skip
    assert rig.story(loop) == [
        "start", "session bind", "session prompt", "criterion unmet", "iteration",
        "criterion unmet", "iteration", "iteration", "criterion met", "exit", "complete",
    ]  # fmt: skip
    blocks = rig.sent_back()
    for number, text in enumerate(blocks, 1):
        assert f"Continuing goal loop iteration {number}/20" in text
        assert "1 failed: test_login" in text
        assert f"Run: gsd-fsm check --loop {loop}" in text
    assert len(set(blocks)) == 3
    assert "You wrote <loop-complete>" in blocks[2]
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


def test_goal_with_three_criteria_is_reviewed_fixed_and_completed(rig: Rig) -> None:
    rig.gsd.mkdir(exist_ok=True)
    (rig.gsd / "config.toml").write_text('views = ["workflow-state", "state", "progress"]\n')
    rig.start(
        "goal", "Add validation to auth", "--mode", "yolo", "--check", f"validates={VALIDATED}",
        "--criterion", "errors are shown", "--criterion", "docs are written",
        "--task", "T1:Add validation", "--task", "T2:Show errors", "--blocked-by", "T2=T1",
    )  # fmt: skip
    rig.talk(
        "Add validation to auth.",
        bash(f"gsd-fsm stage intent && {SCORE}"),
        bash("gsd-fsm stage shape && gsd-fsm stage decompose && gsd-fsm stage executing"),
        say("I have a plan."),
        bash("gsd-fsm task T1 running && echo 'def validate(): ...' > auth.py && gsd-fsm check"),
        bash("gsd-fsm task T1 complete"),
        say("The first wave is done."),
        bash("gsd-fsm review light --wave 1 --score 8 --issues 2 --blockers 0"),
        bash("gsd-fsm task T2 running && gsd-fsm task T2 complete"),
        bash("gsd-fsm criterion 1 met && gsd-fsm criterion 2 met && gsd-fsm stage review"),
        bash("gsd-fsm review begun"),
        bash("gsd-fsm review failed --score 6 --finding 'BLOCKER: errors leak the token'"),
        say("The review has found something."),
        bash("gsd-fsm task B1 running && echo '# no token' >> auth.py && gsd-fsm task B1 complete"),
        bash("gsd-fsm check && gsd-fsm review begun && gsd-fsm review passed --score 9"),
        say("<loop-complete>All success criteria satisfied.</loop-complete>"),
        bash("gsd-fsm complete"),
        say("It is complete."),
    )
    blocks = rig.sent_back()
    assert "Start task T1 (Add validation)." in blocks[0]
    assert "review light --wave 1" in without_loop(blocks[1])
    assert "Start task B1 (errors leak the token)." in blocks[2]
    assert blocks[3].split("\n")[2] == "Everything is done; complete the loop."
    reviews = [event["data"]["action"] for event in rig.lines() if event["type"] == "review"]
    assert reviews == ["light", "begun", "failed", "begun", "passed"]
    status = rig.status()
    assert status["status"] == "completed"
    tasks = {task["id"]: task["status"] for task in status["tasks"]}
    assert tasks == dict.fromkeys(("T1", "T2", "B1"), "complete")
    assert all(criterion["met"] for criterion in status["criteria"])
    assert [bool(criterion["evidence"]) for criterion in status["criteria"]] == [False, False, True]
    views = rig.root / ".loop"
    assert "Add validation to auth" in (views / "PROGRESS.md").read_text()
    assert '"stage": "complete"' in (views / "workflow-state.json").read_text()
    assert '"status": "completed"' in (views / "state.json").read_text()


def test_plugin_loop_command_asks_and_starts_goal(rig: Rig) -> None:
    rig.install_plugin()
    rig.model.main.then(
        say("New, resume or session-only? How many iterations? Which budget?"),
        bash(
            "gsd-fsm start goal --goal-file - --max-iterations 25 --budget 25 <<'GOAL_qkzvwtbn'\n"
            "Add validation to auth; it's $HOME-grown\nGOAL_qkzvwtbn"
        ),
        bash("gsd-fsm stage intent && gsd-fsm pause"),
        say("It has begun."),
    )
    chat = rig.chat("--plugin-dir", "a plugin")
    chat.ask("/gsd-fsm:loop Add validation to auth; it's $HOME-grown")
    heard = rig.model.asked()[0].heard
    assert "Add validation to auth; it's $HOME-grown" in heard
    for words in ("session-only", "10 (a quick task)", "unlimited", "10, 25 or 50 US dollars"):
        assert words in heard
    assert chat.ask("New, 25, and 25 dollars.")["result"] == "It has begun."
    chat.close()
    status = rig.status()
    assert status["goal"] == "Add validation to auth; it's $HOME-grown"
    assert (status["stage"], status["max_iterations"], status["budget_usd"]) == ("intent", 25, 25)
    assert status["owner"] == chat.session


def test_used_up_budget_pauses_until_user_extends_it(rig: Rig) -> None:
    loop = rig.start("goal", "Ship it", "--mode", "yolo", "--max-tokens", "1")
    add = bash(f"gsd-fsm resume --loop {loop} --add-tokens 1000000")
    end = bash("gsd-fsm exit-signal")
    # The transcript lags, so that the first stop may not show the tokens yet.
    rig.model.main.then(bash("true"))
    rig.model.main.otherwise = say("I stop here.")
    screen = rig.screen()
    screen.type("Ship it.")
    screen.until("is paused (budget)")
    status = rig.status()
    assert (status["status"], status["pause_code"]) == ("paused", "budget")
    assert "of 1 tokens are used" in status["pause_reason"]
    assert f"gsd-fsm resume --loop {loop} --add-tokens" in status["next"]
    rig.model.main.then(add, say("On we go."), end, say("Done."))
    screen.type("Take a million more and go on.")
    screen.until(f"loop {loop} completed")
    assert rig.status()["status"] == "completed"
    assert "pause budget" in " ".join(rig.story(loop))

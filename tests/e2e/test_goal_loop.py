"""A goal pursued through its stages with the real client, and a budget that is used up on the way."""

from __future__ import annotations

import pytest

from tests.support.e2e.fake_model import bash, say
from tests.support.e2e.project import Rig

pytestmark = pytest.mark.e2e

SCORE = "gsd-fsm score --outcome 2 --scope 2 --constraints 2 --success 2 --done 2"
VERIFY = "grep -q 'def validate' auth.py"


def test_goal_with_three_criteria_is_reviewed_fixed_and_completed(rig: Rig) -> None:
    (rig.root / ".gsd").mkdir(exist_ok=True)
    (rig.root / ".gsd" / "config.toml").write_text(
        'views = ["workflow-state", "state", "progress", "report"]\n'
    )
    loop = rig.start(
        "goal", "Add validation to auth", "--mode", "yolo", "--check", f"validates={VERIFY}",
        "--criterion", "errors are told", "--criterion", "docs are written",
        "--task", "T1:Add validation", "--task", "T2:Tell errors", "--blocked-by", "T2=T1",
    )  # fmt: skip
    rig.model.main.then(
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
    chat = rig.chat()
    assert chat.ask("Add validation to auth.")["result"] == "It is complete."
    assert chat.close() == 0
    told = rig.sent_back()
    assert "Start task T1 (Add validation)." in told[0]
    assert "review light --wave 1" in told[1]
    assert "Start task B1 (errors leak the token)." in told[2]
    assert "Your <loop-complete> is recorded; one command is left." in told[3]
    story = [it for it in rig.story(loop) if not it.startswith("session")]
    assert story[-1] == "complete"
    reviews = [event["data"]["action"] for event in rig.lines() if event["type"] == "review"]
    assert reviews == ["light", "begun", "failed", "begun", "passed"]
    status = rig.status()
    assert status["status"] == "completed"
    assert {task["id"]: task["status"] for task in status["tasks"]} == dict.fromkeys(
        ("T1", "T2", "B1"), "complete"
    )
    assert [(c["met"], bool(c["evidence"])) for c in status["criteria"]] == [
        (True, False), (True, False), (True, True),
    ]  # fmt: skip
    progress = (rig.root / ".loop" / "PROGRESS.md").read_text()
    assert "Add validation to auth" in progress
    assert '"stage": "complete"' in (rig.root / ".loop" / "workflow-state.json").read_text()
    assert '"status": "completed"' in (rig.root / ".loop" / "state.json").read_text()


def test_plugin_loop_command_asks_and_starts_goal(rig: Rig) -> None:
    rig.ok("init", "--plugin", "a plugin", "--yes")
    rig.ok("uninstall", "--scope", "project", "--yes")
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
    assert (status["goal"], status["stage"]) == (
        "Add validation to auth; it's $HOME-grown", "intent",
    )  # fmt: skip
    assert (status["max_iterations"], status["budget_usd"]) == (25, 25)
    assert status["owner"] == chat.session


def test_used_up_budget_pauses_until_user_extends_it(rig: Rig) -> None:
    loop = rig.start("goal", "Ship it", "--mode", "yolo", "--max-tokens", "1")
    rig.model.main.then(
        bash("true"),
        say("I stop here."),
        bash(f"gsd-fsm --loop {loop} resume --add-tokens 1000000"),
        say("On we go."),
        bash("gsd-fsm exit-signal"),
        say("It is shipped."),
    )
    chat = rig.chat()
    assert chat.ask("Ship it.")["result"] == "I stop here."
    status = rig.status()
    assert (status["status"], status["pause_code"]) == ("paused", "budget")
    assert "of 1 tokens are used" in status["pause_reason"]
    assert f"gsd-fsm --loop {loop} resume --add-tokens" in status["next"]
    assert chat.ask("Take a million more and go on.")["result"] == "It is shipped."
    assert chat.close() == 0
    assert rig.status()["status"] == "completed"
    assert "pause budget" in " ".join(rig.story(loop))
    assert len(rig.sent_back()) == 1

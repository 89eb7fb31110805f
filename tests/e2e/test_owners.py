"""Owners with the real client: sessions without a user take no loop, and plan mode is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.client_sessions import SESSIONS
from tests.support.e2e.fake_model import Turn, bash, say
from tests.support.e2e.project import FINISH, GOAL, Rig

pytestmark = pytest.mark.e2e


def one_shot(rig: Rig, prompt: str) -> str:
    """Run `claude -p PROMPT` as a script does; return what it prints."""
    command = [str(rig.claude), "-p", prompt]
    done = subprocess.run(
        command, cwd=rig.root, env=rig.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


PROBE = """import json, os, sys
names = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_CHILD_SESSION", "AI_AGENT")
json.dump({it: os.environ[it] for it in names if it in os.environ}, open(sys.argv[1], "w"))
"""
# Those that the client starts by itself: the SDKs only add their entry point to a command line.
STARTED = [it for it in SESSIONS if "-p" in it["command"] or it["given"]]


@pytest.mark.parametrize("recorded", STARTED, ids=lambda it: it["session"])
def test_client_describes_its_session_as_recorded(rig: Rig, recorded: dict[str, Any]) -> None:
    probe, seen = rig.scratch / "probe.py", rig.scratch / "seen.json"
    probe.write_text(PROBE)
    hook = {"type": "command", "command": sys.executable, "args": [str(probe), str(seen)]}
    settings = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
    rig.model.main.otherwise = say("Hello.")
    message = {"type": "user", "message": {"role": "user", "content": "hi"}}
    subprocess.run(
        [str(rig.claude), *recorded["command"][1:], "--settings", settings], cwd=rig.root,
        env={**rig.env, **recorded["given"]}, input=json.dumps(message) + "\n", text=True,
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert json.loads(seen.read_text()) == recorded["environment"]


@pytest.mark.parametrize("owned", [False, True])
def test_one_shot_next_to_a_live_loop_returns_its_own_answer(rig: Rig, owned: bool) -> None:
    owner = None
    if owned:
        chat, loop = rig.held_after_a_block()
        owner = chat.session
    else:
        loop = rig.start(*GOAL)
    rig.model.lane("shot", "COMMIT").then(say("Add the login"))
    assert one_shot(rig, "COMMIT: write a message.") == "Add the login"
    assert len(rig.model.asked("shot")) == 1
    assert rig.status()["owner"] == owner
    assert rig.story(loop).count("iteration") == owned


def test_one_shot_that_the_agent_starts_is_not_captured(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    inner = rig.model.lane("inner", "INNER")
    inner.then(say("Add the login"))
    rig.talk(
        "Ship it.",
        bash(f"'{rig.claude}' -p 'INNER: write a commit message' < /dev/null"),
        say("I stop."),
        FINISH,
        say("It is shipped."),
    )
    assert "Add the login" in rig.model.asked()[1].heard
    assert len(rig.model.asked("inner")) == 1
    assert {event["session"] for event in rig.lines() if event["type"] == "iteration"} == {
        rig.status()["owner"]
    }
    assert rig.story(loop)[-1] == "complete"


def test_user_is_told_how_to_release_the_loop_and_releases_it(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(bash(f"gsd-fsm release --loop {loop}"), say("Released."))
    screen = rig.screen()
    screen.type("Release the loop.")
    screen.until(f"loop {loop} now belongs to this session. To release it, run: gsd-fsm release")
    screen.until("Released.")
    assert rig.status()["owner"] is None
    rig.model.main.then(say("I am free."))
    screen.type("And now?")
    screen.until("I am free.")
    assert rig.status()["owner"] is None


def test_plan_mode_ends_its_turn(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(say("This is my plan."))
    chat = rig.chat(mode=("--permission-mode", "plan"))
    assert chat.ask("Plan it.")["result"] == "This is my plan."
    chat.close()
    assert "stop plan-mode" in rig.story(loop)
    assert "iteration" not in rig.story(loop)


def test_throttled_session_completes_in_the_turn_after_the_limit(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(Turn(status=429, error="Too many requests"))
    chat = rig.chat(CLAUDE_CODE_MAX_RETRIES="0")
    assert chat.ask("Ship it.")["is_error"]
    rig.until(lambda: rig.story(loop)[-1] == "wait throttled", "wait")
    rig.model.main.then(bash("gsd-fsm criterion 1 met && gsd-fsm complete"), say("It is shipped."))
    assert chat.ask("Is it better now?")["result"] == "It is shipped."
    chat.close()
    assert rig.story(loop).count("resume") == 1
    assert "complete" in rig.story(loop)

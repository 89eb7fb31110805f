"""Trouble with the real client: the session always ends, and the user can find out why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.e2e.fake_model import bash, say
from tests.support.e2e.project import GOAL, Rig

pytestmark = pytest.mark.e2e


def every_file(rig: Rig) -> set[Path]:
    return {*rig.root.rglob("*"), *Path(os.environ["XDG_STATE_HOME"]).rglob("*")}


def test_hook_without_loop_prints_and_writes_nothing(rig: Rig) -> None:
    before = every_file(rig)
    chat = rig.talk("Hello?", bash("true"), say("Hello."))
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        (hook,) = chat.hooks(event)
        assert (hook["stdout"], hook["stderr"], hook["exit_code"]) == ("", "", 0)
    assert every_file(rig) == before
    assert chat.notices == ""
    for request in rig.model.asked():
        assert "gsd-fsm" not in request.text


def test_corrupt_journal_lets_session_end_and_is_reported(rig: Rig) -> None:
    rig.start(*GOAL)
    rig.journal.write_bytes(rig.journal.read_bytes().replace(b"Ship it", b"Sink it"))
    rig.talk("Ship it.", say("I stop."))
    assert "corrupt at line 2" in (rig.gsd / "hook.log").read_text()
    why = rig.run("why")
    assert why.code == 5
    assert "fsck --repair" in why.err


@pytest.mark.parametrize("damage", ["raise RuntimeError", "def broken(", None])
def test_broken_hook_lets_session_end_and_doctor_reports_it(rig: Rig, damage: str | None) -> None:
    loop = rig.start(*GOAL)
    (file,) = Path(os.environ["HOME"]).rglob("gsd_fsm_hook.py")
    if damage is None:
        file.unlink()
    else:
        file.write_text(damage)
    rig.calm = damage is None  # settings that outlive the hook show no error
    rig.talk("Ship it.", say("I stop."))
    assert rig.story(loop) == ["start"]
    doctor = rig.run("doctor")
    assert doctor.code != 0
    assert "gsd-fsm init" in doctor.out + doctor.err


def test_hook_timeout_of_client_lets_session_end(rig: Rig) -> None:
    rig.start(*GOAL)
    settings = rig.root / ".claude" / "settings.json"
    settings.write_bytes(settings.read_bytes().replace(b'"timeout": 10', b'"timeout": 0.001'))
    chat = rig.talk("Ship it.", say("I stop."))
    assert [hook["outcome"] for hook in chat.hooks("Stop")] == ["cancelled"]
    doctor = rig.run("doctor")
    assert doctor.code != 0
    assert "timeout" in doctor.out + doctor.err

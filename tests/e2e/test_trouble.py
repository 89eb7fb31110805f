"""Trouble with the real client: the session always ends, and the user can find out why."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.support.e2e.fake_model import Held, bash, say
from tests.support.e2e.project import FINISH, GOAL, Rig

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


def test_locked_journal_lets_session_end_and_keeps_loop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(held := Held(say("I stop.")))
    chat = rig.chat()
    chat.tell("Ship it.")
    held.until_wanted()
    with (rig.gsd / "journal.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held.let_go()
        assert chat.result(1)["result"] == "I stop."
    assert "iteration" not in rig.story(loop)
    assert "lock" in (rig.gsd / "hook.log").read_text()
    rig.model.main.then(say("I stop."), FINISH, say("It is shipped."))
    chat.ask("Continue.")
    assert rig.story(loop)[-1] == "complete"
    assert rig.story(loop).count("iteration") == 1


def test_stop_file_disables_the_loop(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    rig.model.main.then(held := Held(say("I stop.")))
    screen = rig.screen()
    screen.type("Ship it.")
    held.until_wanted()
    (rig.gsd / "STOP").touch()
    held.let_go()
    screen.until("I stop.")
    rig.until(lambda: "stop disabled" in rig.story(loop), "allowed stop")
    assert "iteration" not in rig.story(loop)
    assert "disabled by .gsd/STOP" in rig.ok("why").out


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


ON_A_SMALL_DISK = """
cp -a .gsd .gsd.kept && mount -t tmpfs -o size=128k none .gsd && cp -a .gsd.kept/. .gsd && exec "$@"
"""
# A page that is begun has room left: notes fill the journal's last one, then the rest is taken.
FILL = """
import os, subprocess
def note(length):
    subprocess.run(["gsd-fsm", "note", "x" * length], check=True)
def size():
    return os.stat(".gsd/journal.jsonl").st_size
before = size()
note(1)
line = size() - before
note(-(size() + line + 20) % 4096 // 2)
note(-(size() + line + 20) % 4096 or 4096)
try:
    with open(".gsd/ballast", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
except OSError as error:
    print(error)
"""


def test_full_disk_lets_session_end_and_is_reported(rig: Rig) -> None:
    loop = rig.start(*GOAL)
    fill = rig.scratch / "fill.py"
    fill.write_text(FILL)
    rig.model.main.then(bash(f"python3 {fill}"), say("I stop."))
    chat = rig.chat(before=("unshare", "-rm", "sh", "-c", ON_A_SMALL_DISK, "sh"))
    assert chat.ask("Ship it.")["result"] == "I stop."
    assert "No space left" in rig.model.asked()[1].heard
    (hook,) = chat.hooks("Stop")
    assert hook["exit_code"] == 0
    assert "bytes could be written" in chat.notices
    assert "bytes could be written" in hook["stderr"]
    note, free = bash("gsd-fsm note 'Is there room?'"), bash("rm .gsd/ballast")
    rig.model.main.then(note, free, say("I stop."), FINISH, say("Shipped."))
    chat.ask("Why did you stop?")
    chat.close()
    assert "Free disk space" in rig.model.asked()[3].heard
    assert f"iteration 1/20 ({loop})" in rig.sent_back()[0]

"""Progress on standard error."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from gsd_fsm.cli.display import progress
from gsd_fsm.history import replay
from tests.support.command_line import AGENT, Here, install_hook, write
from tests.support.foreign_files import STATE_MD

PERSON = {"FORCE_COLOR": "1"}


@pytest.fixture(autouse=True)
def _hook() -> None:
    install_hook()


@pytest.fixture
def impatient(here: Here) -> Here:
    """Return a project in which progress is shown at once, and after each event."""
    here.patch.setattr(progress, "_PATIENCE", -1)
    here.patch.setattr(replay, "_EVERY", 1)
    return here


@pytest.mark.parametrize("command", ["fsck", "replay --json", "replay --json --strict", "resume"])
def test_reading_a_journal_shows_progress_to_a_person_only(impatient: Here, command: str) -> None:
    impatient.start("goal", "g")
    shown = impatient.ok(*command.split(), env=PERSON).err
    assert "ing the journal" in shown
    assert impatient.ok(*command.split()).err == ""
    assert impatient.ok(*command.split(), env={**PERSON, **AGENT}).err == ""


@pytest.mark.parametrize(
    ("command", "share"),
    [
        ("--json --loop {}", ["100%"]),
        ("--events", []),
        ("--events --loop {}", ["23%"]),
        ("--loop {}", ["100%"]),
    ],
)
def test_replay_shows_progress_until_it_prints(
    impatient: Here, command: str, share: list[str]
) -> None:
    impatient.patch.setattr(progress, "_EVERY", 0)
    for name in ("a", "b"):
        impatient.start("goal", name, env={"CLAUDE_CODE_SESSION_ID": name})
    loop = impatient.start("goal", "the third")
    for _ in range(9):
        impatient.ok("note", "n", "--loop", loop)
    shown = impatient.ok("replay", *command.format(loop).split(), env=PERSON).err
    assert re.findall(r"\d+%", shown)[-1:] == share
    assert shown.endswith("\x1b[2K" if share else "")


def test_replay_into_a_pipe_keeps_its_progress_at_the_terminal(here: Here) -> None:
    here.start("goal", "g")
    for _ in range(9):
        here.ok("note", "n")
    program = """
from gsd_fsm.cli import main
from gsd_fsm.cli.display import progress
from gsd_fsm.history import replay
progress._PATIENCE, progress._EVERY, replay._EVERY = -1, 0, 1
main(["replay", "--events"])
"""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=here.root, env=env, check=True, timeout=60,
        stdout=subprocess.PIPE, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    shown = ""
    with contextlib.suppress(OSError):  # nothing is left to read
        shown = os.read(leader, 65_536).decode()
    os.close(leader)
    assert len(done.stdout.splitlines()) == 11
    assert "100%" in shown
    assert shown.endswith("\x1b[2K")  # it is erased


def test_check_shows_running_commands_and_erases_them(impatient: Here) -> None:
    impatient.start("goal", "g", "--check", "one=sleep 0.3", "--check", "two=printf words")
    answer = impatient.ok("check", env=PERSON)
    assert "\r  running: [1/2] one 0:00" not in answer.out
    assert answer.err.startswith("  running: [1/2] one 0:00\r ")
    assert answer.err.endswith(" \r")
    for env in ({}, {**PERSON, **AGENT}):
        assert impatient.ok("check", env=env).err == ""


def test_verify_names_each_command_that_runs(impatient: Here) -> None:
    impatient.configure(ci_lint="sleep 0.3", ci_test="sleep 0.4")
    impatient.start("verify", "--task", "T1")
    shown = impatient.run("verify", env=PERSON).err
    assert "  running: sleep 0.3 0:00, sleep 0.4 0:00\r" in shown
    assert "running" not in impatient.run("verify").err


def test_progress_line_fits_the_terminal(impatient: Here) -> None:
    line = progress.ProgressLine()
    line.name(["検査" * 60])
    impatient.patch.setenv("COLUMNS", "40")
    shown = line.redrawn()
    assert shown.startswith("  running: 検査")
    assert shown.endswith("…")
    assert 36 <= cell_len(shown) < 40
    assert line.redrawn() == ""
    assert line.erased() == f"\r{' ' * cell_len(shown)}\r"
    assert line.erased() == ""


def test_check_at_a_terminal_erases_the_progress_line(here: Here) -> None:
    here.ok("start", "goal", "g", "--check", "t=printf begun; sleep 1; echo; sleep 1.2; echo done")
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "gsd_fsm", "check"]
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    subprocess.run(command, cwd=here.root, env=env, stdout=follower, stderr=follower, check=True)
    shown = os.read(leader, 65_536).decode()
    os.close(leader)
    os.close(follower)
    _, *lines = (line.rstrip().rpartition("\r")[2] for line in shown.split("\n"))
    assert lines[:2] == ["begun", "done"]
    assert "running: [1/1] t 0:0" in shown
    assert "begun  running" not in shown


def test_import_shows_progress_to_a_person_only(impatient: Here) -> None:
    text = STATE_MD.replace("execute", "verify").replace("gaps_remaining: 0", "gaps_remaining: 9")
    write(impatient.root / "STATE.md", text)
    shown = impatient.ok("import", "STATE.md", env=PERSON).err
    assert "Recording the loop" in shown
    assert shown.endswith("\x1b[2K")  # it is erased
    assert impatient.ok("import", "STATE.md", "--fresh").err == ""


def test_import_is_recorded_if_its_progress_cannot_be_shown(impatient: Here) -> None:
    text = STATE_MD.replace("execute", "verify").replace("gaps_remaining: 0", "gaps_remaining: 9")
    write(impatient.root / "STATE.md", text)

    def fail(*_: object) -> None:
        raise OSError

    impatient.patch.setattr(progress._Bar, "advance", fail)
    impatient.ok("import", "STATE.md", env=PERSON)
    assert impatient.status()["gaps_remaining"] == 9
    impatient.ok("fsck")

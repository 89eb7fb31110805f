"""Commands that a person copies from a terminal."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.command_line import A, B, Here, write
from tests.support.terminal import at_terminal

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def program(here: Here) -> str:
    """Return the path of a console script that is longer than a line of the terminal."""
    path = here.root.parent / ("long-" * 20) / "gsd-fsm"
    write(path, f"#!{sys.executable}\nfrom gsd_fsm.cli import main\nmain()\n")
    path.chmod(0o755)
    here.patch.setenv("PATH", "/usr/bin:/bin")
    here.patch.setenv("TERM", "xterm-256color")
    return str(path)


def lines_of(here: Here, program: str, *words: str, columns: int = 80) -> list[str]:
    """Return the lines that the program sends to a terminal."""
    _, shown = at_terminal([program, *words], b"", here.where, columns)
    return [_ESCAPE.sub("", line) for line in shown.split("\r\n")]


def assert_shown(command: str, lines: list[str]) -> None:
    """Raise AssertionError unless a line ends in this whole command."""
    assert any(line.endswith(command) for line in lines), (command, lines)


@pytest.mark.parametrize("columns", [40, 80])
def test_commands_of_the_overview_are_sent_whole(here: Here, program: str, columns: int) -> None:
    lines = lines_of(here, program, columns=columns)
    for words in ("init", "start goal GOAL --check tests=CMD", "start --help", "--help"):
        assert_shown(f"{program} {words}", lines)
    loop = here.start("goal", "g", "--criterion", "c")
    lines = lines_of(here, program, columns=columns)
    for words in ("init", f"status --loop {loop}", f"pause --loop {loop}"):
        assert_shown(f"{program} {words}", lines)
    assert_shown(f"GSD_FSM_LOOP={loop} claude -p PROMPT", lines)


@pytest.mark.parametrize("columns", [40, 80])
def test_commands_of_status_are_sent_whole(here: Here, program: str, columns: int) -> None:
    one = here.start("goal", "g", "--criterion", "c", env=A)
    assert_shown(f"Run: {program} criterion --loop {one} 1 met", lines_of(here, program, "status"))
    two = here.start("execute", "h", "--task", "T1", env=B)
    lines = lines_of(here, program, "status", columns=columns)
    assert_shown(f"Run: {program} criterion --loop {one} 1 met", lines)
    assert_shown(f"Run: {program} task --loop {two} T1 running", lines)
    assert_shown(f"run: {program} status --loop ID", lines)


@pytest.mark.parametrize("columns", [40, 80])
def test_fixes_of_doctor_are_sent_whole(here: Here, program: str, columns: int) -> None:
    here.ok("init", "--yes")
    place = Path(os.environ["HOME"], ".local", "bin")
    place.mkdir(parents=True, exist_ok=True)
    here.patch.setenv("PATH", f"{place}:/usr/bin:/bin")
    lines = lines_of(here, program, "doctor", columns=columns)
    assert_shown(f"    → ln -sf {program} {place}/gsd-fsm", lines)
    assert_shown("→ npm install --global @anthropic-ai/claude-code", lines)

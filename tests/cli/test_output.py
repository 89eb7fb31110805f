"""Output that cannot be printed, closed input, and colour."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Here

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")
COMMAND = [sys.executable, "-m", "gsd_fsm"]


def shell(here: Here, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which $G is the command."""
    return subprocess.run(
        ["bash", "-c", script],
        cwd=here.root,
        env={**os.environ, "G": f"{sys.executable} -m gsd_fsm", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def met(here: Here) -> list[Any]:
    return [line["data"]["met"] for line in here.lines() if line["type"] == "criterion"]


@pytest.mark.parametrize(
    "command", [["replay"], ["replay", "--events"], ["status"], ["fsck", "--json"], ["--help"]]
)
def test_command_with_closed_pipe_exits_0_silently(here: Here, command: list[str]) -> None:
    here.start("goal", "g")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, *command],
            cwd=here.root,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_append_with_closed_stdout_is_recorded(here: Here) -> None:
    here.start("goal", "g")
    line = " ".join(COMMAND)
    for number, pipeline in enumerate((f"{line} note 0 >&-", f"{line} note 1 | head -1"), 0):
        done = subprocess.run(
            ["bash", "-c", pipeline], cwd=here.root, capture_output=True, timeout=30, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert here.lines()[-1]["data"]["text"] == str(number)


@pytest.mark.parametrize(
    "command", ["spend 1", "spend 1 --json", "note n", "replay", "status", "bogus --json"]
)
def test_answer_that_cannot_be_printed_exits_6_and_does_not_ask_for_a_retry(
    here: Here, command: str
) -> None:
    here.ok("start", "goal", "g")
    done = shell(here, f"$G {command} >/dev/full")
    assert "Traceback" not in done.stderr
    assert "try again" not in done.stderr
    if not command.startswith("bogus"):
        assert done.returncode == 6
        assert "cannot print the result: No space left on device" in done.stderr
        assert len(here.lines()) == (2 if command in ("replay", "status") else 3)


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3, 7)])
@pytest.mark.parametrize("options", ["", " --json"])
def test_check_with_closed_pipe_is_run_and_recorded(
    here: Here, status: int, code: int, options: str
) -> None:
    loud = f"t=seq 1 200000; touch ran; exit {status}"
    here.ok("start", "goal", "g", "--check", loud)
    done = shell(here, f"$G check{options} 2>&1 | head -1; exit ${{PIPESTATUS[0]}}")
    assert met(here) == [status == 0]
    assert (here.root / "ran").exists()
    assert done.returncode == code


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_check_without_usable_stdout_is_recorded(here: Here, where: str) -> None:
    here.ok("start", "goal", "g", "--check", "t=echo words")
    done = shell(here, f"$G check {where}")
    assert met(here) == [True]
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


def test_trust_that_cannot_print_the_journal_does_not_trust_it(here: Here) -> None:
    here.ok("start", "goal", "g")
    stranger = {"XDG_STATE_HOME": str(here.root / "state")}
    assert shell(here, "$G trust >/dev/full", **stranger).returncode == 6
    assert here.run("note", "n", env=stranger).code == 6


@pytest.mark.parametrize(
    "command", ["note --file -", "fail --error-file -", "start goal --goal-file -"]
)
def test_command_with_closed_stdin_exits_2(here: Here, command: str) -> None:
    here.ok("start", "goal", "g")
    done = shell(here, f"$G {command} <&-")
    assert done.returncode == 2
    assert "standard input is closed" in done.stderr


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "xterm"}], ids=str)
def test_status_is_coloured_only_on_terminals_that_want_it(here: Here, env: dict[str, str]) -> None:
    import pty

    here.ok("start", "goal", "g")
    leader, follower = pty.openpty()
    try:
        subprocess.run(
            [*COMMAND, "status"], cwd=here.root, env={**os.environ, "TERM": "xterm", **env},
            stdout=follower, check=True, timeout=60,
        )  # fmt: skip
        shown = os.read(leader, 65_536)
    finally:
        os.close(leader)
        os.close(follower)
    assert (b"\x1b[" in shown) is (env == {"TERM": "xterm"})
    assert b"\x1b[" not in Path(here.journal).read_bytes()

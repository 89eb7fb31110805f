"""Output that cannot be printed, input that is not there, and signals: nothing recorded is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Here

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and signals of Unix")
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


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3, 7)])
@pytest.mark.parametrize("options", ["", " --json"])
def test_a_check_whose_reader_leaves_is_still_run_and_recorded(
    here: Here, status: int, code: int, options: str
) -> None:
    loud = f"t=seq 1 200000; touch ran; exit {status}"
    here.ok("start", "goal", "g", "--check", loud)
    done = shell(here, f"$G check{options} 2>&1 | head -1; exit ${{PIPESTATUS[0]}}")
    assert met(here) == [status == 0]
    assert (here.root / "ran").exists()
    assert done.returncode == code


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_a_check_that_nobody_can_watch_is_recorded(here: Here, where: str) -> None:
    here.ok("start", "goal", "g", "--check", "t=echo words")
    done = shell(here, f"$G check {where}")
    assert met(here) == [True]
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize(
    "command", ["spend 1", "spend 1 --json", "note n", "replay", "bogus --json"]
)
def test_an_answer_that_cannot_be_printed_does_not_ask_for_a_repetition(
    here: Here, command: str
) -> None:
    here.ok("start", "goal", "g")
    done = shell(here, f"$G {command} >/dev/full")
    assert "Traceback" not in done.stderr
    assert "try again" not in done.stderr
    if not command.startswith("bogus"):
        assert done.returncode == 6
        assert "cannot print the result: No space left on device" in done.stderr
        assert len(here.lines()) == (2 if command == "replay" else 3)


def test_a_journal_is_not_trusted_before_it_could_be_shown(here: Here) -> None:
    here.ok("start", "goal", "g")
    stranger = {"XDG_STATE_HOME": str(here.root / "state")}
    assert shell(here, "$G trust >/dev/full", **stranger).returncode == 6
    assert here.run("note", "n", env=stranger).code == 6


@pytest.mark.parametrize(
    "command", ["note --file -", "fail --error-file -", "start goal --goal-file -"]
)
def test_a_closed_input_is_told(here: Here, command: str) -> None:
    here.ok("start", "goal", "g")
    done = shell(here, f"$G {command} <&-")
    assert done.returncode == 2
    assert "standard input is closed" in done.stderr


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "xterm"}], ids=str)
def test_colour_is_for_terminals_that_want_it(here: Here, env: dict[str, str]) -> None:
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

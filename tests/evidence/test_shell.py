"""The shell of checks that a user sets; tests/windows has those that are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.config.settings import user_file
from tests.support.check_commands import posix_only
from tests.support.command_line import A, B, Here
from tests.support.events import write
from tests.support.plan_loops import start_tdd
from tests.support.verification import document, task


def shells_in(data: Any) -> list[str]:
    """Return every member `shell` of an event."""
    if isinstance(data, list):
        return [shell for each in data for shell in shells_in(each)]
    if not isinstance(data, dict):
        return []
    own = [data["shell"]] if "shell" in data else []
    return own + [shell for value in data.values() for shell in shells_in(value)]


def recorded(here: Here, *command: str, **how: Any) -> set[str]:
    """Run a command; return the shells in the events that it appended."""
    before = len(here.lines()) if here.journal.exists() else 0
    here.run(*command, **how)
    return {shell for event in here.lines()[before:] for shell in shells_in(event["data"])}


@posix_only
def test_check_shell_of_the_user_runs_all_checks_and_is_recorded(
    here: Here, tmp_path: Path
) -> None:
    log, shell = tmp_path / "log", tmp_path / "my shell"
    shell.write_text(f'#!/bin/sh\necho "$2" >>"{log}"\nexec sh "$@"\n')
    shell.chmod(0o755)
    write(user_file(), f'check_shell = "{shell}"\n')
    write(here.root / "plan.md", document(task("01", [("command", "echo planned")])))
    planned = ("--plan", "plan.md", "--mode", "yolo")
    begun = {
        "goal": ("start", "goal", "g", "--check", "t=echo goal", "--baseline"),
        "verify": ("start", "verify", *planned, "--baseline"),
        "execute": ("start", "execute", *planned),
    }
    owners = {"goal": A, "verify": B, "execute": {"CLAUDE_CODE_SESSION_ID": "session-c"}}
    done = {"goal": ("check",), "verify": ("verify",), "execute": ("report", "T01")}
    for kind, command in begun.items():
        found = recorded(here, *command, env=owners[kind])
        assert found == (set() if kind == "execute" else {str(shell)}), kind
    for kind, command in done.items():
        stdin = b"TASK COMPLETE\n" if kind == "execute" else b""
        assert recorded(here, *command, env=owners[kind], stdin=stdin) == {str(shell)}, kind
    tdd = Here(tmp_path / "tdd", here.patch)
    tdd.root.mkdir()
    start_tdd(tdd, "echo tested; exit 1")
    assert recorded(tdd, "tdd", "T01", "--run") == {str(shell)}
    ran = log.read_text().splitlines()
    assert ran == [*["echo goal", "echo planned"] * 2, "echo planned", "echo tested; exit 1"]


@pytest.mark.parametrize(
    ("name", "problem"), [("gone", "is not a program"), ("cmd.exe", "cannot be cmd.exe")]
)
def test_check_shell_that_runs_no_checks_is_refused(
    here: Here, tmp_path: Path, name: str, problem: str
) -> None:
    shell = tmp_path / name
    write(tmp_path / "cmd.exe", "#!/bin/sh\n").chmod(0o755)
    write(user_file(), f"check_shell = '{shell}'\n")
    answer = here.refused(2, "start", "goal", "g", "--check", "t=true")
    assert f"check_shell {problem}: {shell}" in answer.err
    assert str(user_file()) in answer.err
    here.ok("start", "goal", "g", "--criterion", "without a check")


def test_check_shell_in_the_settings_of_a_project_is_refused(here: Here) -> None:
    here.configure(check_shell="/bin/sh")
    answer = here.refused(2, "start", "goal", "g", "--check", "t=true")
    assert "check_shell is not allowed in the settings of a project" in answer.err

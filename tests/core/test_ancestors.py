"""The processes above a process, read from real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.core import ancestors as module
from gsd_fsm.core.ancestors import (
    PRETENDED,
    Process,
    ancestors,
    clients_among,
    split_command_line,
    start_time,
)
from tests.support.fake_client import client_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")

SHOW = """
from gsd_fsm.core.ancestors import ancestors, clients_among
print(*[client.name + ":" * client.headless for client in clients_among(ancestors())])
"""
PYTHON = (sys.executable, "-c", SHOW)
ROOT = Path(__file__).parents[2]


def seen(command: list[str]) -> str:
    """Return the clients that a process below this command finds above itself."""
    return subprocess.check_output(command, text=True, cwd=ROOT, timeout=60).strip()


def nested(place: Path, *names: str) -> list[str]:
    """Return a command line in which each of these programs runs below the one before."""
    command = list(PYTHON)
    for name in reversed(names):
        command = client_command(place, name, *command)
    return command


@pytest.mark.parametrize(
    ("names", "clients"),
    [
        (("claude",), "claude"),
        (("claude", "bash", "env-wrapper"), "claude"),
        (("bash", "gemini", "sh"), "gemini"),
        (("codex", "codex"), "codex"),  # a launcher and its program
        (("claude", "sh", "claude"), "claude claude"),
        (("claude", "codex"), "codex claude"),
        (("code", "bash"), ""),
        (("claude.md",), ""),
    ],
)
def test_clients_above_a_process_are_found_whatever_is_between(
    tmp_path: Path, names: tuple[str, ...], clients: str
) -> None:
    assert seen(nested(tmp_path, *names)) == clients


def test_directory_user_and_argument_named_like_a_client_are_not_clients(tmp_path: Path) -> None:
    assert seen([*client_command(tmp_path / "claude", "sh", *PYTHON), "claude", "codex"]) == ""


@pytest.mark.parametrize("how", ["copy", "renamed process", "script of an interpreter"])
def test_client_is_found_by_its_file_its_name_or_its_script(tmp_path: Path, how: str) -> None:
    run = ["-c", '"$@"; exit $?', "x", *PYTHON]
    if how == "copy":
        program = tmp_path / "claude"
        shutil.copy(shutil.which("sh") or "", program)
        command = [str(program), *run]
    elif how == "renamed process":
        command = ["bash", "-c", 'exec -a claude sh "$@"', "x", *run]
    else:
        script = tmp_path / "node_modules" / "@anthropic-ai" / "claude-code" / "cli.js"
        script.parent.mkdir(parents=True)
        script.write_text('"$@"; exit $?')
        command = ["sh", str(script), *PYTHON]
    assert seen(command) == "claude"


def test_headless_client_is_recognised_by_its_options(tmp_path: Path) -> None:
    command = client_command(tmp_path, "claude", "-p", *PYTHON)
    command[2] = 'shift; "$@"; exit $?'
    assert seen(command) == "claude:"


def test_ps_reports_the_same_processes_as_proc() -> None:
    by_ps = module._climb(module._ps_finder())
    assert by_ps
    assert [it.pid for it in by_ps] == [it.pid for it in ancestors()]
    assert [it.arguments[0] for it in by_ps] == [
        " ".join(it.arguments).split()[0] for it in ancestors()
    ]


def test_processes_that_cannot_be_read_are_no_ancestors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int) -> None:
        raise PermissionError

    monkeypatch.setattr(module, "_in_proc", refuse)
    assert ancestors() == []
    circle = Process(7, 7, ["claude"], ["claude"])
    monkeypatch.setattr(module, "_in_proc", lambda _pid: circle)
    assert [client.name for client in clients_among(ancestors())] == ["claude"]
    PRETENDED.append([])
    assert ancestors() == []
    PRETENDED.pop()


def test_start_time_without_proc_is_that_of_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "exists", lambda _path: False)
    known = start_time(os.getpid())
    assert known == start_time(os.getpid())
    assert known.split()[-1].isdecimal()  # the year
    assert start_time(2**22) == ""
    PRETENDED.append([])
    assert start_time(1) == "pretended"
    PRETENDED.pop()


def test_command_line_of_windows_is_split_outside_quotes() -> None:
    line = '"C:\\Program Files\\node.exe"  "C:\\a b\\claude" --x="y z" end'
    assert split_command_line(line) == [
        "C:\\Program Files\\node.exe", "C:\\a b\\claude", "--x=y z", "end",
    ]  # fmt: skip
    assert split_command_line("") == []


def test_tests_below_a_client_run_as_in_a_terminal(tmp_path: Path) -> None:
    tests = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    command = client_command(tmp_path, "claude", *tests, "tests/cli/test_trust.py")
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    none = client_command(tmp_path, "claude", *tests, "tests/cli/test_trust.py", "-k", "nothing")
    assert (
        subprocess.run(none, capture_output=True, cwd=ROOT, timeout=60, check=False).returncode == 5
    )

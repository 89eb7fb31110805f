"""The Bash of Git for Windows: where it is found, and what is refused without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.config.settings import user_file
from gsd_fsm.core.errors import UsageError
from gsd_fsm.evidence import shell
from gsd_fsm.evidence.shell import GIT_BASH, find_shell
from gsd_fsm.install.checks.environment import check_environment
from tests.support.command_line import A, B, Here
from tests.support.events import write
from tests.support.plan_loops import start_tdd
from tests.support.verification import document, start_verify, task

CHECKED = task("01", [("command", "echo > ran")])
NO_SHELL = "no shell for checks: Git Bash was not found"


@pytest.fixture
def bash(here: Here, tmp_path: Path) -> str:
    """Return the only shell, which `CLAUDE_CODE_GIT_BASH_PATH` names."""
    here.patch.setenv("PATH", str(tmp_path / "nothing"))
    here.patch.setattr(shell, "_PLACES", (str(tmp_path / "nothing" / "bash.exe"),))
    return os.environ[GIT_BASH]


def test_git_bash_is_found_where_claude_code_finds_it(
    here: Here, bash: str, tmp_path: Path
) -> None:
    assert find_shell(here.root) == bash
    installed = write(tmp_path / "Program Files" / "Git" / "bin" / "bash.exe", "")
    here.patch.setattr(shell, "_PLACES", (str(tmp_path / "no.exe"), str(installed)))
    for named in ("", "bash.exe", str(tmp_path / "gone" / "bash.exe"), str(here.root / "cmd.exe")):
        here.patch.setenv(GIT_BASH, named)
        assert find_shell(here.root) == str(installed), named
    here.patch.setattr(shell, "_PLACES", ())
    for place in (("cmd",), ("mingw64", "bin")):
        root = tmp_path / place[0] / "Git"
        git, beside = (
            write(root.joinpath(*place, "git.exe"), ""),
            write(root / "bin" / "bash.exe", ""),
        )
        here.patch.setenv("PATH", str(git.parent))
        assert find_shell(here.root) == str(beside)


def test_bash_in_the_project_is_never_the_shell(here: Here, bash: str) -> None:
    for name in ("bash.exe", "bin/bash.exe", "Git/bin/bash.exe", "Git/cmd/git.exe", "git.exe"):
        write(here.root / name, "")
    here.patch.setenv(GIT_BASH, str(here.root / "bin" / "bash.exe"))
    here.patch.setenv("PATH", f".;{here.root};{here.root / 'Git' / 'cmd'}")
    here.patch.chdir(here.root)
    with pytest.raises(UsageError, match=NO_SHELL):
        find_shell(here.root)


def test_every_command_check_is_refused_without_a_shell(here: Here, bash: str) -> None:
    write(here.root / "plan.md", document(CHECKED))
    write(here.root / "SHAPE.md", "## Verification\n\n- It runs: `echo > ran`\n")
    planned = ("--plan", "plan.md", "--mode", "yolo")
    goal = here.start("goal", "g", "--check", "t=echo > ran", env=A)
    verify = here.start("verify", *planned, env=B)
    execute = here.start("execute", *planned, env={"CLAUDE_CODE_SESSION_ID": "session-c"})
    tdd = Here(here.root.parent / "tdd", here.patch)
    tdd.root.mkdir()
    start_tdd(tdd, "echo > ran").ok("tdd", "T01")
    here.patch.delenv(GIT_BASH)
    for command in (
        ("start", "goal", "g", "--check", "t=echo > ran"),
        ("start", "goal", "g", "--shape-file", "SHAPE.md"),
        ("start", "execute", "--plan", "plan.md"),
        ("start", "verify", "--plan", "plan.md"),
        ("--loop", goal, "check"),
        ("--loop", verify, "verify"),
    ):
        answer = here.refused(2, *command)
        assert NO_SHELL in answer.err, command
        assert f"{user_file()}: check_shell = " in answer.err
    assert NO_SHELL in tdd.refused(2, "tdd", "T01", "--run").err
    answer = here.run("--loop", execute, "report", "T01", stdin=b"TASK COMPLETE\n")
    assert (answer.code, NO_SHELL in answer.err, here.last()["data"]["status"]) == (
        2,
        True,
        "reported",
    )
    assert not list(here.root.parent.rglob("ran"))
    rows = {row.name: row for row in check_environment(str(here.root), {}, "gsd-fsm init")}
    assert rows["shell of checks"].state == "failed"
    write(user_file(), f"check_shell = '{bash}'\n")
    assert here.ok("--loop", goal, "check")
    rows = {row.name: row for row in check_environment(str(here.root), {}, "gsd-fsm init")}
    assert (rows["shell of checks"].state, rows["shell of checks"].told) == ("ok", bash)


def test_ci_commands_are_refused_without_a_shell(here: Here, bash: str) -> None:
    start_verify(here, task("01", [("file", "plan.md exists")], "plan.md"), ci_test="echo > ran")
    here.patch.delenv(GIT_BASH)
    assert NO_SHELL in here.refused(2, "verify").err
    assert not (here.root / "ran").exists()

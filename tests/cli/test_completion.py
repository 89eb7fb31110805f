"""Completion: candidates, and the scripts in real shells."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_fsm.cli import cli
from gsd_fsm.cli.help.candidates import COMPLETE_VARIABLE, complete_line
from gsd_fsm.cli.help.words import ALIASES
from gsd_fsm.core.system import WINDOWS
from tests.support import repositories
from tests.support.command_line import A, B, Here
from tests.support.phases import Work
from tests.support.plan_loops import report, start_plan

_isolated_git = repositories._isolated_git  # a fixture
pytestmark = pytest.mark.skipif(WINDOWS, reason="the shells are POSIX ones")

# What a person types and where the cursor is, then TAB; each script prints one candidate per line.
SHELLS = {
    "bash": """
        eval "$(gsd-fsm completion bash)"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        $(complete -p gsd-fsm | sed 's/.*-F \\([^ ]*\\) .*/\\1/') gsd-fsm
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        autoload -U compinit; compinit -u -D
        _describe() { print -rl -- "${(@P)3}" }  # -V GROUP ARRAY -U
        compadd() { print -rl -- "${(@P)5}" }  # -U -V GROUP -a ARRAY
        eval "$(gsd-fsm completion zsh)"
        words=("$@"); CURRENT=$#
        ${_comps[gsd-fsm]}
    """,
    "fish": """
        gsd-fsm completion fish | source
        complete --do-complete (string join -- ' ' $argv)
    """,
}


@pytest.fixture
def program(here: Here) -> dict[str, str]:
    """Return an environment in which a shell finds gsd-fsm."""
    place = here.root.parent / "bin"
    place.mkdir()
    script = place / "gsd-fsm"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m gsd_fsm "$@"\n')
    script.chmod(0o755)
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[2])}


def completed(here: Here, program: dict[str, str], shell: str, *words: str) -> list[str]:
    """Return what a real shell offers for the last of these words."""
    command = [shell, "-c", SHELLS[shell], *([] if shell == "fish" else [shell])]
    done = subprocess.run(
        [*command, "gsd-fsm", *words], cwd=here.root, env=program, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def candidates(
    here: Here, capfd: pytest.CaptureFixture[str], line: str, shell: str = "bash"
) -> list[str]:
    """Return what the shell is told for this line, whose last word is the one to complete."""
    words = line.split(" ")
    with here.patch.context() as patch:
        patch.chdir(here.where)
        patch.setenv("COMP_WORDS", line)
        patch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
        capfd.readouterr()
        complete_line(cli, f"{shell}_complete")
    shown = capfd.readouterr()
    assert shown.err == ""
    return [it.partition(",")[2] for it in shown.out.splitlines() if it]


@pytest.fixture
def started(here: Here) -> list[str]:
    """Start two loops; return their ids."""
    work = ("--task", "T1:One", "--task", "T2", "--criterion", "Is it clear?", "--check", "t=true")
    first = here.start("execute", *work, env=A)
    return [first, here.start("goal", "other", env=B)]


def test_commands_are_completed_without_aliases(
    here: Here, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = candidates(here, capfd, "gsd-fsm ")
    assert {"start", "status", "completion"} <= {*shown}
    assert not {*shown} & {*ALIASES, "help", "version"}
    assert candidates(here, capfd, "gsd-fsm compl", "fish") == [
        "complete\tComplete the loop, if nothing is missing",
        "completion\tPrint the completion script for a shell",
    ]
    assert candidates(here, capfd, "gsd-fsm sta") == ["start", "status", "stage", "statusline"]
    assert candidates(here, capfd, "gsd-fsm help pau") == ["pause"]
    assert candidates(here, capfd, "gsd-fsm stop --rea") == ["--reason"]
    assert candidates(here, capfd, "gsd-fsm start g") == ["goal"]


def test_ids_of_loops_tasks_gaps_and_criteria_are_completed(
    here: Here, capfd: pytest.CaptureFixture[str], started: list[str]
) -> None:
    first, second = started
    here.ok("--loop", first, "task", "T2", "running")
    here.ok("--loop", first, "task", "T2", "skipped")
    here.ok("--loop", first, "gap", "found", "--description", "d")
    for line in ("gsd-fsm pause --loop ", "gsd-fsm --loop ", "gsd-fsm stop --loop lp-"):
        assert candidates(here, capfd, line) == started
    for line, expected in {
        "task ": ["T1"], "fail T": ["T1"], "report ": ["T1", "G1"], "next G": ["G1"], "gap close ": ["G1"],
        "criterion ": ["1"], "check ": ["t"], "tdd x": [],
    }.items():  # fmt: skip
        verb, rest = line.split(" ", 1)
        assert candidates(here, capfd, f"gsd-fsm {verb} --loop {first} {rest}") == expected, line
        assert candidates(here, capfd, f"gsd-fsm --loop {second} {verb} {rest}") == [], line
    here.ok("cancel", "--loop", second)
    assert candidates(here, capfd, "gsd-fsm status --loop ") == [first]
    assert candidates(here, capfd, "gsd-fsm task ") == ["T1"]


def test_checkpoints_and_questions_are_completed(
    here: Here, capfd: pytest.CaptureFixture[str]
) -> None:
    Work(here)
    assert candidates(here, capfd, "gsd-fsm rollback ") == ["pre", "T01", "T02"]
    here.ok("cancel")
    start_plan(here)
    for name in ("T01", "T02"):
        here.ok("task", name, "running")
    assert candidates(here, capfd, "gsd-fsm answer ") == []
    for name in ("T01", "T02"):
        report(here, name, "CHECKPOINT: which?")
    assert candidates(here, capfd, "gsd-fsm answer ") == ["T01", "T02"]
    here.ok("answer", "T01", "this")
    assert candidates(here, capfd, "gsd-fsm answer T") == ["T02"]
    blocked = candidates(here, capfd, "gsd-fsm task T9 pending --blocked-by T")
    assert blocked == ["T01", "T02", "T03", "T04"]


def test_completion_without_readable_journal_is_silent(
    here: Here, capfd: pytest.CaptureFixture[str], started: list[str]
) -> None:
    for line in ("gsd-fsm --project /no/such task ", "gsd-fsm --loop ../x task ", "gsd-fsm task "):
        assert candidates(here, capfd, line) == [], line
    before = here.journal.read_bytes()
    here.journal.write_bytes(b"damaged\n" + before)
    assert candidates(here, capfd, "gsd-fsm status --loop ") == []
    here.where = Path("/")
    assert candidates(here, capfd, "gsd-fsm status --loop ") == []
    for name in ("COMP_WORDS", "COMP_CWORD"):
        here.patch.delenv(name, raising=False)
    assert complete_line(cli, "bash_complete") == 1
    assert complete_line(cli, "tcsh_complete") == 1
    assert capfd.readouterr() == ("", "")


NAMES = ("my check", "a\\b", "a;touch${IFS}x", "$(touch x)", "it's", "a,b", "a:b", "*")


def test_names_with_spaces_or_special_characters_stay_one_word_in_bash(
    here: Here, capfd: pytest.CaptureFixture[str]
) -> None:
    checks = [it for name in NAMES for it in ("--check", f"{name}=true")]
    here.start("goal", "g", *checks, "--check", "plain=true")
    shown = candidates(here, capfd, "gsd-fsm check ")
    inserted = [word.replace(r"\\", "\\") for word in shown]
    assert [shlex.split(word) for word in inserted] == [[name] for name in (*NAMES, "plain")]
    assert candidates(here, capfd, r"gsd-fsm check a\;") == [r"a\\;touch\\$\\{IFS\\}x"]
    assert shown[-1] == "plain"


@pytest.mark.parametrize("shell", SHELLS)
def test_names_in_a_real_shell_stay_one_word_and_run_nothing(
    here: Here, program: dict[str, str], shell: str
) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    here.start("goal", "g", *(it for name in NAMES for it in ("--check", f"{name}=true")))
    shown = completed(here, program, shell, "check", "")
    if shell == "bash":
        shown = [" ".join(shlex.split(line)) for line in shown]
    expected = [name.replace(":", r"\:") if shell == "zsh" else name for name in NAMES]
    names = [line.partition("\t")[0].removesuffix(":true") for line in shown]
    assert sorted(names) == sorted(expected)
    assert not (here.root / "x").exists()
    if shell == "fish":
        whole = "start\tStart an execute, verify or goal loop"
        assert completed(here, program, shell, "star") == [whole]


@pytest.mark.parametrize("shell", SHELLS)
def test_script_completes_commands_and_ids_in_a_real_shell(
    here: Here, program: dict[str, str], shell: str, started: list[str]
) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for words in (("pau",), ("pause", "--loop", "lp-")):
        expected = ["pause"] if len(words) == 1 else sorted(started)
        shown = completed(here, program, shell, *words)
        found = [line.partition("\t")[0].partition(":")[0] for line in shown]
        assert sorted(found) == expected


def test_completion_does_not_import_rich(here: Here, program: dict[str, str]) -> None:
    env = {
        **program,
        COMPLETE_VARIABLE: "bash_complete",
        "COMP_WORDS": "gsd-fsm s",
        "COMP_CWORD": "1",
    }
    command = [sys.executable, "-X", "importtime", "-m", "gsd_fsm"]
    done = subprocess.run(
        command, cwd=here.root, env=env, capture_output=True, text=True, check=True
    )
    assert "plain,start\n" in done.stdout
    assert " gsd_fsm.cli" in done.stderr
    assert " rich" not in done.stderr

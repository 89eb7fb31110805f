"""Checks in a shell that reads them as they were written, and the end of all that they start."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gsd_fsm.config.settings import user_file
from gsd_fsm.evidence.checks import run_check
from gsd_fsm.evidence.shell import find_shell
from tests.support.command_line import Here, Project
from tests.support.events import write
from tests.support.plan_loops import report, start_tdd
from tests.support.verification import document, failed_round, start_verify, task

AGES = 60
# Commands for a POSIX shell, and their exit codes.
COMMANDS = {
    "echo one\nexit 3": 3,
    "cd .gsd\ntest -f journal.jsonl\ntest -f missing": 1,
    "echo boom; exit 1": 1,
    "no-such-program": 127,
    "x=$(printf 'ü → 日本')\n[ \"$x\" = 'ü → 日本' ] && grep -q loop .gsd/journal.jsonl": 0,
    r"""printf '%s' "it's"' a\\b "quoted" 100%' | grep -qF "it's a\\\\b \"quoted\" 100%" """: 0,
    "test -d .gsd || exit 4  # a comment": 0,
}
GRANDCHILD = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as line:
    line.sendall(line.recv(1))
"""
# What a check runs: a child that calls, answers once, and is alive while its line is open.
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", {grandchild!r}, "{port}"])
"""


@pytest.fixture
def line() -> Iterator[socket.socket]:
    """Return a socket that listens for a grandchild."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(AGES)
        yield server


def parent_of_caller(line: socket.socket) -> str:
    return PARENT.format(grandchild=GRANDCHILD, port=line.getsockname()[1])


def answer_of(caller: socket.socket) -> bytes:
    """Return what the grandchild says, b"" if it has ended."""
    with closing(caller):
        caller.settimeout(AGES)
        try:
            return caller.recv(1)
        except ConnectionError:
            return b""


def test_check_runs_every_line_of_a_command_for_sh_and_records_the_shell(here: Here) -> None:
    checks = [f"c{number}={command}" for number, command in enumerate(COMMANDS)]
    here.start("goal", "g", *(text for check in checks for text in ("--check", check)))
    assert here.run("check").code == 7
    found = [event["data"]["evidence"] for event in here.lines() if event["type"] == "criterion"]
    assert {it["command"].strip(): it["exit_code"] for it in found} == {
        command.strip(): code for command, code in COMMANDS.items()
    }
    assert {it["shell"] for it in found} == {find_shell(here.root)}


def test_verify_misses_check_whose_last_line_fails_and_passes_once_it_is_fixed(here: Here) -> None:
    command = "\necho one\ncat done.txt\n"
    start_verify(here, task("01", [("command", command)]))
    answer = failed_round(here)
    assert [check["evidence"].split("\n")[:2] for check in answer["checks"]] == [
        ["exit code 1", "one"]
    ]
    (here.root / "done.txt").write_text("done\n")
    assert here.ok("verify", "--json").json["status"] == "completed"
    rounds = [event["data"] for event in here.lines() if event["type"] == "verified"]
    assert [(it["passed"], it["shell"]) for it in rounds] == [
        (passed, find_shell(here.root)) for passed in (False, True)
    ]


def test_report_with_crlf_is_proven_by_the_commands_of_the_task(here: Here) -> None:
    write(here.root / ".gsd/plans/phase-1/plan.md", document(
        task("01", [("command", "grep -q größer a.txt\ntest -f a.txt")], "a.txt")
    ).replace("\n", "\r\n"))  # fmt: skip
    here.start("execute", "--phase", "1", "--mode", "yolo")
    (here.root / "a.txt").write_text("größer\n", "utf-8")
    report(here, "T01", "Größer → fertig.\r\n\r\nTASK COMPLETE\r\n")
    assert here.status()["tasks"][0]["proof"] == "proven"
    (said,) = [it["data"]["summary"] for it in here.lines() if "summary" in it["data"]]
    assert said == "Größer → fertig."
    (proof,) = [event["data"]["proof"] for event in here.lines() if "proof" in event["data"]]
    assert (proof["exit_code"], proof["shell"]) == (0, find_shell(here.root))
    assert here.ok("complete", "--json").json["status"] == "completed"
    replayed = here.ok("replay", "--json").json
    assert (replayed["status"], replayed["events"]) == ("completed", len(here.lines()))
    shown = here.ok("replay", "--all").out
    assert all(f"{it['seq']:>3}  {it['ts']}  {it['by']}" in shown for it in here.lines())
    assert here.ok("fsck", "--json").json["ok"]


def test_tests_that_cannot_be_run_are_not_red(here: Here) -> None:
    start_tdd(here, "no-such-runner")
    answer = here.run("tdd", "T01", "--run")
    assert (answer.code, "could not be run" in answer.err) == (7, True), answer
    assert here.ok("tdd", "T01", "--json").json["phase"] == "red"


def test_time_limit_ends_all_that_a_check_started(tmp_path: Path, line: socket.socket) -> None:
    line.setblocking(False)
    for limit in (1, 3, 9, 27):  # until it is long enough for the grandchild to call
        outcome = run_check(parent_of_caller(line), tmp_path, limit, shell=sys.executable)
        assert (outcome.exit_code, outcome.timed_out) == (124, True)
        with suppress(BlockingIOError):
            caller, _ = line.accept()
            break
    assert answer_of(caller) == b""


def test_end_of_check_command_ends_all_that_its_check_started(
    project: Project, line: socket.socket
) -> None:
    program = str(sys.executable)
    write(user_file(), f"check_shell = '{program}'\n")
    project.ok("start", "goal", "g", "--check", f"t={parent_of_caller(line)}")
    before = project.journal.read_bytes()
    with subprocess.Popen([sys.executable, "-m", "gsd_fsm", "check"], cwd=project.root) as checking:
        caller, _ = line.accept()
        checking.terminate()  # which kills it at once on Windows
    assert answer_of(caller) == b""
    assert project.journal.read_bytes() == before


def test_child_that_outlives_its_check_is_left_alone(tmp_path: Path, line: socket.socket) -> None:
    source = parent_of_caller(line).replace("subprocess.run(", "subprocess.Popen(")
    outcome = run_check(source, tmp_path, AGES, shell=sys.executable)
    assert (outcome.exit_code, outcome.timed_out) == (0, False)
    caller, _ = line.accept()
    caller.sendall(b"!")
    assert answer_of(caller) == b"!"

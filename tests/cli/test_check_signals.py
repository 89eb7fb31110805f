"""A signal ends check, tdd and verify with their commands, at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.check_commands import ends, posix_only, wait_for
from tests.support.command_line import Here
from tests.support.plan_loops import start_tdd as start_tdd_loop
from tests.support.verification import FILE
from tests.support.verification import start_verify as start_verify_loop

pytestmark = posix_only

COMMAND = [sys.executable, "-m", "gsd_fsm"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
# The marker is printed by the command and is not part of its text.
GROUP = "echo $$ > pid.new; mv pid.new pid; "
LONG = GROUP + 'echo be""gun; sleep 20'
# Answers the signal that is to end it with a second one to gsd-fsm, and does not end.
DEFIANT = 'trap "kill -INT $PPID" TERM; ' + GROUP + "while :; do sleep 0.1; done"
WAITING = "touch begun; while [ ! -e go ]; do sleep 0.02; done"

# Python discards an exception that is raised inside a finalizer. This program sends itself a signal
# there, once the marker was shown.
IN_FINALIZER = """
import os, sys
from gsd_fsm.cli import main
from gsd_fsm.cli.output import Screen

number, marker, *arguments = sys.argv[1:]

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), int(number))

def show(self, chunk, show=Screen.show):
    show(self, chunk)
    if marker.encode() in chunk:
        Finalized()

Screen.show = show
main(arguments)
"""


def start_check(here: Here, *commands: str) -> list[str]:
    checks = [f"--check=c{number}={command}" for number, command in enumerate(commands)]
    here.ok("start", "goal", "g", *checks)
    return ["check"]


def start_tdd(here: Here, command: str) -> list[str]:
    start_tdd_loop(here, command).ok("tdd", "T01")
    return ["tdd", "T01", "--run"]


def start_verify(here: Here, command: str) -> list[str]:
    lint = "while [ ! -e pid ]; do sleep 0.02; done"
    start_verify_loop(here, FILE, ci_lint=lint, ci_test=command)
    return ["verify"]


def group_of(here: Here) -> int:
    return int((here.root / "pid").read_text())


def running(here: Here, arguments: list[str], **how: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *arguments], cwd=here.root, stdout=subprocess.PIPE, **how)


def wait_until_full(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has filled its output pipe, which nobody reads."""
    from fcntl import ioctl
    from termios import FIONREAD

    assert process.stdout is not None
    unread, before = 0, -1
    while unread < 32_768 or unread != before:
        time.sleep(0.2)
        before = unread
        unread = int.from_bytes(ioctl(process.stdout, FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    ("start", "marker"), [(start_check, "begun"), (start_tdd, "begun"), (start_verify, "[1/")]
)
def test_signal_inside_a_finalizer_ends_the_command_and_records_nothing(
    here: Here, start: Callable[[Here, str], list[str]], marker: str, number: signal.Signals
) -> None:
    arguments = start(here, LONG)
    before = here.journal.read_bytes()
    program = [sys.executable, "-c", IN_FINALIZER, str(int(number)), marker, *arguments]
    done = subprocess.run(program, cwd=here.root, capture_output=True, timeout=60, check=False)
    assert done.returncode == 128 + number
    assert ends(group_of(here))
    assert here.journal.read_bytes() == before


def test_signal_between_two_checks_starts_no_further_command(here: Here) -> None:
    arguments = start_check(here, "true", "touch second")
    before = here.journal.read_bytes()
    program = [sys.executable, "-c", IN_FINALIZER, str(int(signal.SIGTERM)), "passed", *arguments]
    done = subprocess.run(program, cwd=here.root, capture_output=True, timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert not (here.root / "second").exists()
    assert here.journal.read_bytes() == before


@pytest.mark.parametrize("start", [start_check, start_tdd, start_verify])
def test_second_signal_while_the_command_is_ended_does_not_leave_it_behind(
    here: Here, start: Callable[[Here, str], list[str]]
) -> None:
    arguments = start(here, DEFIANT)
    before = here.journal.read_bytes()
    with running(here, arguments, stderr=subprocess.DEVNULL) as process:
        wait_for(here.root / "pid")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert ends(group_of(here))
    assert here.journal.read_bytes() == before


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_while_the_reader_of_the_output_stalls_ends_check(
    here: Here, number: signal.Signals
) -> None:
    arguments = start_check(here, GROUP + "yes")
    with running(here, arguments, stderr=subprocess.DEVNULL) as process:
        wait_for(here.root / "pid")
        wait_until_full(process)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert ends(group_of(here))


def test_second_interrupt_ends_check_that_cannot_print_its_message(here: Here) -> None:
    arguments = start_check(here, GROUP + "yes")
    with running(here, arguments, stderr=subprocess.STDOUT) as process:
        wait_for(here.root / "pid")
        wait_until_full(process)
        process.send_signal(signal.SIGINT)
        assert ends(group_of(here))
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_signal_that_the_caller_ignores_does_not_end_check(
    here: Here, number: signal.Signals
) -> None:
    arguments = start_check(here, WAITING)
    shell = ["sh", "-c", f'trap "" {number.name[3:]}; exec "$@"', "sh", *COMMAND, *arguments]
    with subprocess.Popen(shell, cwd=here.root, stdout=subprocess.DEVNULL) as process:
        wait_for(here.root / "begun")
        process.send_signal(number)
        Path(here.root / "go").touch()
        assert process.wait(60) == 0
    assert here.last()["type"] == "criterion"


@pytest.mark.parametrize(
    ("number", "manner"),
    [(signal.SIGINT, ""), (signal.SIGTERM, "trap '' TERM;"), (signal.SIGHUP, "")],
)
def test_signal_ends_every_command_of_verify_and_records_nothing(
    here: Here, number: signal.Signals, manner: str
) -> None:
    lint, test = (f"echo $$ > {n}.new; mv {n}.new {n}; {manner} sleep 300" for n in ("one", "two"))
    start_verify_loop(here, FILE, ci_lint=lint, ci_test=test)
    before = here.journal.read_bytes()
    with running(here, ["verify"], stderr=subprocess.PIPE) as process:
        groups = [here.root / name for name in ("one", "two")]
        for group in groups:
            wait_for(group)
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert all(ends(int(group.read_text())) for group in groups)
    assert here.journal.read_bytes() == before
    assert not (here.root / ".gsd/plans/phase-1/VERIFICATION.md").exists()


def test_verify_leaves_the_lock_free_while_checks_run(here: Here) -> None:
    start_verify_loop(here, FILE, ci_test=WAITING)
    with running(here, ["verify", "--json"], stderr=subprocess.PIPE) as process:
        try:
            wait_for(here.root / "begun")
            here.ok("note", "during the checks")
        finally:
            (here.root / "go").touch()
        process.communicate(timeout=60)
    assert process.returncode == 7
    assert [event["type"] for event in here.lines()[2:]] == ["note", "gap", "gap", "verified"]


def test_verify_records_its_round_if_the_output_is_closed(here: Here) -> None:
    start_verify_loop(here, FILE, ci_test=WAITING)
    with running(here, ["verify"], stderr=subprocess.DEVNULL) as process:
        wait_for(here.root / "begun")
        assert process.stdout
        process.stdout.close()
        (here.root / "go").touch()
        process.wait(60)
    assert here.last()["type"] == "verified"


def test_check_leaves_the_lock_free_while_it_runs(here: Here) -> None:
    here.start("goal", "g", "--check", f"slow={WAITING}", "--check", "other=false")
    with running(here, ["check", "slow"]) as process:
        try:
            wait_for(here.root / "begun")
            here.ok("note", "during the check")
            assert here.run("check", "other").code == 7
            assert process.poll() is None
        finally:
            (here.root / "go").touch()
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert [line["type"] for line in here.lines()[2:]] == ["note", "criterion", "criterion"]

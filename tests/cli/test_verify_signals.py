"""What ends a verification before its time."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_check import wait_for
from tests.cli.test_verify import FILE, begin
from tests.support.check_commands import ends
from tests.support.command_line import Here

# Each tells its process group and then goes on for ever.
LONG = "echo $$ > {0}.new; mv {0}.new {0}; {1} sleep 300"


def running(here: Here, *args: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gsd_fsm", "verify", *args]
    return subprocess.Popen(command, cwd=here.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


DEAF = "trap '' TERM;"


@pytest.mark.parametrize(
    ("number", "code", "manner"),
    [(signal.SIGINT, 130, ""), (signal.SIGTERM, 143, DEAF), (signal.SIGHUP, 129, "")],
)
def test_a_signal_ends_every_command_and_records_nothing(
    here: Here, number: signal.Signals, code: int, manner: str
) -> None:
    begin(here, FILE, ci_lint=LONG.format("one", ""), ci_test=LONG.format("two", manner))
    before = here.journal.read_bytes()
    with running(here) as process:
        groups = [Path(here.root / name) for name in ("one", "two")]
        for group in groups:
            wait_for(group)
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == code
    assert all(ends(int(group.read_text())) for group in groups)
    assert here.journal.read_bytes() == before
    assert not (here.root / ".gsd/plans/phase-1/VERIFICATION.md").exists()


def test_the_lock_is_free_while_checks_run(here: Here) -> None:
    begin(here, FILE, ci_test="touch begun; while [ ! -e go ]; do sleep 0.05; done")
    with running(here, "--json") as process:
        try:
            wait_for(here.root / "begun")
            here.ok("note", "during the checks")
        finally:
            (here.root / "go").touch()
        process.communicate(timeout=60)
    assert process.returncode == 7
    assert [event["type"] for event in here.lines()[2:]] == ["note", "gap", "gap", "verified"]


def test_when_nobody_watches_the_round_is_recorded_all_the_same(here: Here) -> None:
    begin(here, FILE, ci_test="touch begun; while [ ! -e go ]; do sleep 0.05; done")
    with running(here) as process:
        wait_for(here.root / "begun")
        assert process.stdout
        process.stdout.close()
        (here.root / "go").touch()
        process.wait(60)
    assert here.last()["type"] == "verified"

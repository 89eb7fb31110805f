"""Running checks: exit codes, timeouts, children, interruption, and evidence without secrets."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from functools import partial
from unittest.mock import Mock

import pytest

from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.evidence import checks
from gsd_fsm.evidence.checks import KEPT_BYTES, TAIL_CHARACTERS
from gsd_fsm.evidence.interruption import Interrupted, interruptible
from gsd_fsm.evidence.shell import UNIX_SHELL
from tests.support.check_commands import AGES, ends, posix_only, python, wait_for, write

__all__ = ["python"]
TOKEN = "ghp_" + "a1B2" * 9
run_check = partial(checks.run_check, shell=UNIX_SHELL)


def test_run_check_returns_exit_code_and_output_in_the_order_of_streams(python, tmp_path):
    outcome = run_check("echo hello", tmp_path, AGES)
    assert (outcome.command, outcome.exit_code, outcome.tail) == ("echo hello", 0, "hello")
    assert not outcome.timed_out
    assert outcome.seconds > 0
    assert len(outcome.digest) == 16
    source = "for n, to in enumerate((1, 2, 1)): os.write(to, b'%d' % n)\nsys.exit(3)"
    outcome = run_check(python(source), tmp_path, AGES)
    assert (outcome.exit_code, outcome.tail) == (3, "012")
    source = "import time\nos.close(1); os.close(2); time.sleep(0.3); os._exit(5)"
    assert run_check(python(source), tmp_path, AGES).exit_code == 5


@posix_only
def test_run_check_returns_exit_code_and_message_of_shell(tmp_path):
    outcome = run_check("no-such-command-anywhere", tmp_path, AGES)
    assert outcome.exit_code == 127
    assert "no-such-command-anywhere" in outcome.tail
    assert run_check("kill -9 $$", tmp_path, AGES).exit_code == 128 + 9


def test_run_check_uses_directory_environment_and_no_input(python, tmp_path, monkeypatch):
    monkeypatch.setenv("FROM_CALLER", "passed on")
    monkeypatch.delenv("GSD_FSM_CHECK", raising=False)
    names = "os.environ['FROM_CALLER'], os.environ['GSD_FSM_CHECK']"
    source = f"print(os.getcwd(), {names}, repr(sys.stdin.read()), sep='|')"
    (tmp_path / "typed").write_text("typed")
    saved = os.dup(0)
    with (tmp_path / "typed").open() as typed:
        os.dup2(typed.fileno(), 0)
        try:
            tail = run_check(python(source), tmp_path, AGES).tail
        finally:
            os.dup2(saved, 0)
            os.close(saved)
    assert tail == f"{os.path.realpath(tmp_path)}|passed on|1|''"
    assert "GSD_FSM_CHECK" not in os.environ


@pytest.mark.parametrize(("command", "folder"), [("echo", "missing"), ("echo \0", "")])
def test_run_check_reports_command_that_cannot_start(tmp_path, command, folder):
    with pytest.raises(CheckFailed, match="cannot run the check"):
        run_check(command, tmp_path / folder, AGES)


def test_run_check_echoes_raw_output_while_running(python, tmp_path):
    # The command ends only after the echo of its first output made a file.
    source = (
        "import time\nos.write(1, b'\\x1b[1mready')\n"
        "for _ in range(3000):\n"
        "    if os.path.exists('seen'): os.write(1, b' seen'); break\n"
        "    time.sleep(0.01)\n"
    )
    chunks = []

    def echo(chunk):
        chunks.append(chunk)
        (tmp_path / "seen").touch()

    outcome = run_check(python(source), tmp_path, AGES, echo)
    assert b"".join(chunks) == b"\x1b[1mready seen"
    assert outcome.tail == "ready seen"


@posix_only
@pytest.mark.parametrize(
    "command",
    [
        "echo $$ >pid; sleep 90",
        "trap '' TERM; echo $$ >pid; sleep 90",
        "sleep 90 & echo $$ >pid; wait",
    ],
    ids=["obedient", "ignores SIGTERM", "child"],
)
def test_run_check_timeout_ends_command_and_its_children(tmp_path, command):
    for limit in (0.3, 1, 3, 9):  # until it is long enough for the command to start
        outcome = run_check(f"echo begun; {command}", tmp_path, limit)
        if (tmp_path / "pid").exists():
            break
    assert (outcome.exit_code, outcome.timed_out, outcome.tail) == (124, True, "begun")
    assert ends(int((tmp_path / "pid").read_text()))


@posix_only
def test_run_check_does_not_wait_for_child_that_prints_later(tmp_path):
    later = "until test -e go; do sleep 0.05; done; head -c 2000000 /dev/zero && touch printed"
    outcome = run_check(f"({later}) & echo done; exit 4", tmp_path, AGES)
    assert (outcome.exit_code, outcome.tail, outcome.timed_out) == (4, "done", False)
    (tmp_path / "go").touch()
    wait_for(tmp_path / "printed")


@posix_only
def test_run_check_does_not_wait_for_child_that_keeps_printing(tmp_path):
    outcome = run_check("yes & echo $! >pid", tmp_path, AGES)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (outcome.exit_code, outcome.timed_out) == (0, False)


@posix_only
def test_run_check_ends_command_and_propagates_error_of_echo(tmp_path):
    command = "echo $$ >pid; sleep 90 & echo begun; wait"
    with pytest.raises(BrokenPipeError):
        run_check(command, tmp_path, AGES, Mock(side_effect=BrokenPipeError))
    assert ends(int((tmp_path / "pid").read_text()))


@posix_only
def test_run_check_interrupted_at_start_leaves_no_process(tmp_path, monkeypatch):
    class Slow(subprocess.Popen):
        def __init__(self, *args, **how):
            super().__init__(*args, **how)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)

    started = []
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", Slow)
        with pytest.raises(Interrupted), interruptible() as interruption:
            run_check("sleep 60", tmp_path, AGES, poll=interruption.poll)
    assert ends(started[0])


def test_run_check_whose_poll_raises_at_once_starts_no_command(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_check("echo > begun", tmp_path, AGES, poll=Mock(side_effect=KeyboardInterrupt))
    assert not (tmp_path / "begun").exists()


def test_evidence_of_long_output_keeps_end_and_digests_all(python, tmp_path):
    def outcome_of(first):
        source = f"sys.stdout.write({first!r} + 'line\\n' * 60000 + 'the end\\n')"
        return run_check(python(source), tmp_path, AGES)

    one, same, other = map(outcome_of, ("a", "a", "b"))
    assert one.tail.endswith("line\nthe end")
    assert len(one.tail) == TAIL_CHARACTERS
    assert one.digest == same.digest != other.digest


def test_evidence_tail_has_no_escapes_redrawn_lines_or_invalid_bytes(python, tmp_path):
    raw = (
        "\x1b]0;title\x07\x1b[31mred\x1b[0m\r\n10%\r50%\r\x1b[K100%\r\n"
        "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x9b\x00bell\x07\tü\n\x1b]unfinished\nlast\r"
    )
    assert run_check(python(write(raw)), tmp_path, AGES).tail == "red\n100%\nlink bell\tü\n\nlast"
    source = "sys.stdout.buffer.write(b'a\\xff\\xfeb')"
    assert run_check(python(source), tmp_path, AGES).tail == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    "output",
    [
        f"token {TOKEN} done",
        f"{TOKEN[:9]}\x1b[0m{TOKEN[9:]} done",
        TOKEN + " " + "x" * (TAIL_CHARACTERS - 12),  # the tail begins within the token
        # The kept bytes begin within the token, and the rest collapses to one line.
        "." * 99 + TOKEN + "\n" + "50%\r" * ((KEPT_BYTES - 20) // 4) + "\ndone",
        "." * 99 + TOKEN + " " + "\x1b[0m" * ((KEPT_BYTES - 20) // 4) + " done",
    ],
    ids=["plain", "behind an escape", "at the tail", "at the kept lines", "at the kept bytes"],
)
def test_evidence_tail_has_no_part_of_a_secret(python, tmp_path, output):
    outcome = run_check(python(write(output)), tmp_path, AGES)
    assert outcome.tail.endswith(("done", "x", "%")) or "\x1b[0m " in output
    assert TOKEN[-8:] not in outcome.tail


def test_digest_is_of_redacted_text_and_likeness_ignores_times(python, tmp_path, monkeypatch):
    def outcomes(*texts):
        return [run_check(python(write(text)), tmp_path, AGES) for text in texts]

    one, later, other = outcomes("1 failed in 0.12s", "1 failed in 0.34s", "2 failed in 0.12s")
    assert one.likeness == later.likeness != other.likeness
    assert one.digest != later.digest
    redact = "gsd_fsm.core.text.redact.redact"
    monkeypatch.setattr(redact, lambda text: text.replace("secret", "******"))
    secret, redacted, other = outcomes("a secret\n", "a ******\n", "a riddle\n")
    assert secret.digest == redacted.digest != other.digest

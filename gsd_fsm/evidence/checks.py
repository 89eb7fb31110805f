"""Run a check command and turn its output into evidence."""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import re
import subprocess
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.documents.journal_text import MARGIN, redact_and_truncate
from gsd_fsm.evidence.process_tree import ProcessTree
from gsd_fsm.evidence.shell import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gsd_fsm.evidence.interruption import Poll
    from gsd_fsm.evidence.test_counts import Counted

    Echo = Callable[[bytes], None] | None

KEPT_BYTES = 64 * 1024
TAIL_CHARACTERS = 2000
LONGEST_SHELL = 1000
CHUNK_BYTES, WAITING_CHUNKS = 16 * 1024, 16
TIMED_OUT = 124  # the exit code of timeout(1)
STOP_SECONDS = 2.0  # from SIGTERM to SIGKILL
LINGER_SECONDS = 0.5  # to wait for output while a child keeps the pipe open
SLICE_SECONDS = 0.1  # how long a signal may go unnoticed

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles and links, within one line
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
REDRAWN = re.compile(r"(?m)^[^\n]*\r(?=[^\r\n])")
FIRST_LINE = re.compile(rb"[^\r\n]*[\r\n]")


class Outcome(NamedTuple):
    """The result of a check command; its texts have no escapes and no secrets.

    `shell` ran the command; `reruns` is how often it was run again because it had failed. `tests`
    is what its last lines say of tests, None if nothing.
    """

    command: str
    shell: str
    exit_code: int
    tail: str
    digest: str
    likeness: str
    seconds: float
    timed_out: bool
    tests: Counted | None = None
    reruns: int = 0

    @property
    def result(self) -> str:
        """Return its verdict in words."""
        if self.timed_out:
            return f"timed out after {self.seconds:.0f} s"
        state = f"failed with exit code {self.exit_code}" if self.exit_code else "passed"
        again = f", on rerun {self.reruns} of a check that failed" if self.passed_on_rerun else ""
        return f"{state} in {self.seconds:.1f} s{again}"

    @property
    def passed_on_rerun(self) -> bool:
        return self.exit_code == 0 and self.reruns > 0


def run_check(
    command: str,
    cwd: Path,
    timeout: float,
    echo: Echo = None,
    poll: Poll | None = None,
    *,
    shell: str,
    reruns: int = 0,
    variables: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a command in this shell, for about `timeout` seconds at most.

    It gets these environment variables, by default ours.

    While it fails, run it again, up to `reruns` times; return the last outcome. Call `poll` before
    the command starts and then every SLICE_SECONDS. If `poll` or `echo` raises, end the command and
    its children, then propagate the exception. Signal handlers must not raise meanwhile:
    `interruptible` ensures that. Memory does not grow with the output.
    """
    run = partial(_run_once, command, cwd, timeout, echo, poll, shell=shell, variables=variables)
    outcome = run()
    while outcome.exit_code and outcome.reruns < reruns:
        number = outcome.reruns + 1
        if echo:
            echo(f"  {outcome.result}; rerun {number} of {reruns}\n".encode())
        outcome = run()._replace(reruns=number)
    return outcome


def _run_once(
    command: str,
    cwd: Path,
    timeout: float,
    echo: Echo,
    poll: Poll | None,
    *,
    shell: str,
    variables: Mapping[str, str] | None,
) -> Outcome:
    if poll:
        poll()
    begun = time.monotonic()
    run = _Run(_started(command, shell, cwd, variables), echo, poll)
    try:
        # A thread, since Windows cannot wait for a pipe with a timeout; a daemon, since a child
        # that outlives the command may keep the pipe open.
        threading.Thread(target=run.read, daemon=True).start()
        run.follow(begun + timeout)
        timed_out = run.process.poll() is None
        if timed_out:
            run.stop()
    except BaseException:
        run.echo = run.poll = None
        run.stop()
        raise
    finally:
        run.abandon()
        run.tree.release()
    seconds = time.monotonic() - begun
    code = TIMED_OUT if timed_out else run.process.returncode
    code = 128 - code if code < 0 else code
    known_as = redact_and_truncate(shell, LONGEST_SHELL)
    tail, digest, alike, tests = run.kept.evidence()
    return Outcome(command, known_as, code, tail, digest, alike, seconds, timed_out, tests)


def _started(
    command: str, shell: str, cwd: Path, environment: Mapping[str, str] | None
) -> ProcessTree:
    words, variables = arguments(shell, command)
    given = os.environ if environment is None else environment
    try:
        return ProcessTree(
            words,
            cwd=cwd,
            env={**given, "GSD_FSM_CHECK": "1", **variables},
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except (OSError, ValueError) as error:
        hint = f"Checks run in {shell}, in the project directory."
        raise CheckFailed(f"cannot run the check {command!r}: {error}", hint) from error


class _Run:
    """A running command: read its output, wait for it, end it."""

    def __init__(self, tree: ProcessTree, echo: Echo, poll: Poll | None) -> None:
        self.tree, self.process = tree, tree.process
        self.echo = echo
        self.poll = poll
        self.kept = _Kept()
        self.chunks: queue.Queue[bytes] = queue.Queue(WAITING_CHUNKS)
        self.at_end = False
        self.abandoned = False

    def read(self) -> None:
        if self.process.stdout:
            with self.process.stdout as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    if not self.abandoned:
                        self.chunks.put(chunk)
        self.chunks.put(b"")

    def follow(self, deadline: float) -> None:
        """Read output until the command has ended or the deadline is reached."""
        ended = False
        while (left := deadline - time.monotonic()) > 0:
            if self.poll:
                self.poll()
            wait = min(left, SLICE_SECONDS)
            with contextlib.suppress(queue.Empty, subprocess.TimeoutExpired):
                if self.at_end:
                    self.process.wait(wait)
                else:
                    self._take(self.chunks.get(timeout=wait))
            if not ended and self.process.poll() is not None:
                ended = True
                deadline = min(deadline, time.monotonic() + LINGER_SECONDS)
            if ended and self.at_end:
                return

    def _take(self, chunk: bytes) -> None:
        if not chunk:
            self.at_end = True
            return
        self.kept.add(chunk)
        if self.echo:
            self.echo(chunk)

    def stop(self) -> None:
        """End the command and its children, first with SIGTERM, then with SIGKILL."""
        try:
            self.tree.end(deadly=False)
            self.follow(time.monotonic() + STOP_SECONDS)
        finally:
            self.tree.end(deadly=True)
            self.follow(time.monotonic() + STOP_SECONDS)

    def abandon(self) -> None:
        """Stop reading; unblock the reader if the queue is full."""
        self.abandoned = True
        while not self.chunks.empty():
            self._take(self.chunks.get())


class _Kept:
    """The end of the output, and a digest of everything before it."""

    def __init__(self) -> None:
        self.total = 0
        self.last = bytearray()
        self.before = hashlib.sha256()

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self.last += chunk
        self._drop(max(0, len(self.last) - KEPT_BYTES))

    def _drop(self, size: int) -> None:
        self.before.update(self.last[:size])
        del self.last[:size]

    def evidence(self) -> tuple[str, str, str, Counted | None]:
        """Return tail, digest and likeness of the redacted text, and the tests that it counts."""
        from gsd_fsm.core.text.redact import redact
        from gsd_fsm.evidence.fingerprint import likeness
        from gsd_fsm.evidence.test_counts import count_tests

        # No pattern recognises half a secret, so drop the text next to the cut.
        margin = MARGIN if self.total > KEPT_BYTES else 0
        if margin and (first := FIRST_LINE.match(self.last)):
            self._drop(first.end())
            margin = 0
        plain = ESCAPES.sub("", self.last.decode("utf-8", "replace"))
        text = redact(REDRAWN.sub("", plain).replace("\r", ""))[margin:]
        whole = b"%d %b %b" % (self.total, self.before.digest(), text.encode())
        digest = hashlib.sha256(whole).hexdigest()[:16]
        return (
            text.strip()[-TAIL_CHARACTERS:],
            digest,
            likeness(text),
            count_tests(text, cut=self.total > KEPT_BYTES),
        )

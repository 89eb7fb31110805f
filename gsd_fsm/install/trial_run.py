"""Run installed commands as the client would, in a temporary home with a loop of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import gsd_fsm
from gsd_fsm.config.caller import scratch_environment
from gsd_fsm.config.search_path import program_directories
from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.syscalls import explain

_SESSION = "doctor"
_ODD_NAME = "mit Leerzeichen, ünïcödé 日本"


class Ran(NamedTuple):
    """The result of a run; `problem` is set if it failed, and then `out` is empty."""

    out: bytes
    ms: int
    problem: str = ""


def run(
    command: list[str], stdin: bytes, directory: Path, env: Mapping[str, str], seconds: float
) -> Ran:
    """Run a command without a shell; kill it after this many seconds, as the client would."""
    begun = perf_counter()
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            cwd=directory,
            env={**env, "CLAUDE_PROJECT_DIR": str(directory)},
            timeout=seconds,
            check=False,
        )
    except OSError as error:
        return Ran(b"", 0, f"it cannot be started: {explain(error)}")
    except subprocess.TimeoutExpired:
        return Ran(b"", 0, f"no answer in {seconds:g} seconds")
    ms = round((perf_counter() - begun) * 1000)
    if done.returncode:
        last_line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return Ran(b"", ms, f"exit code {done.returncode}{': ' if last_line else ''}{last_line}")
    return Ran(done.stdout, ms)


class Trial:
    """A temporary project with a live loop: nothing of the user's is seen or changed."""

    def __init__(self, root: Path) -> None:
        (root / "home").mkdir()
        self._project = root / _ODD_NAME
        self._project.mkdir()
        session = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": _SESSION}
        path = os.pathsep.join(map(str, program_directories(".")))
        self._env = {**scratch_environment(root), **session, "PATH": path}
        goal = ["start", "goal", "be blocked once", "--mode", "yolo", "--criterion", "never met"]
        started = run(
            [sys.executable, "-m", "gsd_fsm", *goal],
            b"",
            self._project,
            {**self._env, "PYTHONPATH": str(Path(gsd_fsm.__file__).parents[1])},
            60,
        )
        if started.problem:
            raise CannotWrite(
                f"cannot start a loop for the trial run: {started.problem}",
                "Check that the temporary directory is writable.",
            )

    def stop(self, command: list[str], seconds: float) -> Ran:
        """Run this command with the Stop event of the loop's session."""
        event = {
            "session_id": _SESSION,
            "transcript_path": str(self._project.parent / "transcript.jsonl"),
            "cwd": str(self._project),
            "prompt_id": "p-1",
            "permission_mode": "default",
            "hook_event_name": "Stop",
            "stop_hook_active": False,
            "last_assistant_message": "I am done.",
            "background_tasks": [],
            "session_crons": [],
        }
        return run(command, json.dumps(event).encode() + b"\n", self._project, self._env, seconds)

    def block(self, command: list[str], seconds: float) -> Ran:
        """Run the hook for one Stop; it is a problem unless it blocks and journals one iteration."""
        ran = self.stop(command, seconds)
        if not ran.problem and not _is_block(ran.out):
            return ran._replace(problem="it did not block the stop of a live loop")
        (loop,) = Journal(str(self._project / ".gsd")).read().by_id.values()
        if not ran.problem and loop.iteration != 1:
            return ran._replace(problem=f"it journalled {loop.iteration} iterations instead of 1")
        return ran


@contextlib.contextmanager
def trial() -> Iterator[Trial]:
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-doctor-", ignore_cleanup_errors=True) as name:
        yield Trial(Path(os.path.realpath(name)))


def _is_block(out: bytes) -> bool:
    try:
        answer = json.loads(out)
        return (
            answer.get("decision") == "block" or "additionalContext" in answer["hookSpecificOutput"]
        )
    except (ValueError, AttributeError, KeyError, TypeError):
        return False

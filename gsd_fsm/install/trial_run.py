"""Running an installed hook as its client would, and worse, in a loops of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import gsd_fsm
from gsd_fsm.config.caller import scratch_environment
from gsd_fsm.core.errors import CannotWrite
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.syscalls import explain
from gsd_fsm.core.system import WINDOWS

SESSION = "doctor"
ODD_NAME = "mit Leerzeichen, ünïcödé 日本"


class Ran(NamedTuple):
    """What became of one run; `problem` is why there was no end to it."""

    code: int
    out: bytes
    ms: int
    problem: str = ""


class Loops:
    """A temporary home, state directory and projects: nothing of the user's is seen or touched."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.quiet = self._directory("project")
        self.looping = self._directory(ODD_NAME)
        self._directory("home")
        self.env = {
            **scratch_environment(root),
            "CLAUDECODE": "1",
            "CLAUDE_CODE_SESSION_ID": SESSION,
        }

    def _directory(self, name: str) -> Path:
        path = self.root / name
        path.mkdir()
        return path

    def start_loop(self) -> None:
        """A goal loop of the doctor's session, made by the real command."""
        library = str(Path(gsd_fsm.__file__).parents[1])
        goal = ["start", "goal", "be blocked once", "--mode", "yolo", "--criterion", "never met"]
        done = subprocess.run(
            [sys.executable, "-m", "gsd_fsm", *goal],
            cwd=self.looping,
            env={**self.env, "PYTHONPATH": library},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            told = done.stderr.decode("utf-8", "replace").strip()
            raise CannotWrite(f"the doctor could not start a loop: {told}", "gsd-fsm start --help")

    def iterations(self) -> int:
        loops = Journal(str(self.looping / ".gsd")).read().by_id.values()
        return sum(loop.iteration for loop in loops)

    def payload(self, project: Path) -> dict[str, Any]:
        return {
            "session_id": SESSION,
            "transcript_path": str(self.root / "transcript.jsonl"),
            "cwd": str(project),
            "prompt_id": "p-1",
            "permission_mode": "default",
            "hook_event_name": "Stop",
            "stop_hook_active": False,
            "last_assistant_message": "I am done.",
            "background_tasks": [],
            "session_crons": [],
        }


@contextlib.contextmanager
def loops() -> Iterator[Loops]:
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-doctor-", ignore_cleanup_errors=True) as name:
        yield Loops(Path(os.path.realpath(name)))


class Probe:
    """One installed command, started as it is written: an argument list, no shell."""

    def __init__(self, loops: Loops, command: list[str], seconds: float) -> None:
        self.loops = loops
        self.command = command
        self.seconds = seconds

    def stop(self, project: Path, **how: Any) -> Ran:
        """A Stop in this project, as the client tells it."""
        text = json.dumps(self.loops.payload(project)) + "\n"
        return self.run(text.encode(), project, **how)

    def run(
        self,
        stdin: bytes,
        project: Path,
        *,
        stays_open: bool = False,
        inherits_cwd: bool = False,
        without: str = "",
    ) -> Ran:
        """Feed it, wait for its end, and kill it when the client would."""
        env = {**self.loops.env, "CLAUDE_PROJECT_DIR": str(project)}
        env.pop(without, None)
        begun = perf_counter()
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as out, os.fdopen(writing, "wb", buffering=0) as pipe:
            try:
                process = subprocess.Popen(
                    self.command,
                    cwd=None if inherits_cwd else self.loops.quiet,
                    env=env,
                    stdin=reading,
                    stdout=out,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                return Ran(-1, b"", 0, f"it cannot be started: {explain(error)}")
            finally:
                os.close(reading)
            with contextlib.suppress(OSError):  # it may have left without reading
                pipe.write(stdin)
            if not stays_open:
                pipe.close()
            try:
                code = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return Ran(-1, b"", 0, f"no end after {self.seconds:g} seconds")
            ms = round((perf_counter() - begun) * 1000)
            out.seek(0)
            return Ran(code, out.read(), ms)

    def stop_where_nothing_is(self) -> Ran:
        """A Stop whose working directory was deleted under the session."""
        doomed = self.loops.root / "doomed"
        doomed.mkdir()
        before = Path.cwd()
        os.chdir(doomed)
        try:
            doomed.rmdir()
            return self.stop(doomed, inherits_cwd=True)
        finally:
            os.chdir(before)

    def stop_where_nothing_can_be_written(self) -> Ran:
        """A Stop of a live loop in a project that has become read-only."""
        parts = [self.loops.looping, self.loops.looping / ".gsd"]
        modes = [part.stat().st_mode for part in parts]
        for part in parts:
            part.chmod(0o555)
        try:
            return self.stop(self.loops.looping)
        finally:
            for part, mode in zip(parts, modes, strict=True):
                part.chmod(mode)

    def block(self) -> tuple[Ran, str]:
        """A Stop of a live loop, and what is wrong unless it is one block, counted once."""
        before = self.loops.iterations()
        ran = self.stop(self.loops.looping)
        counted = self.loops.iterations() - before
        wrong = "" if counted == 1 else f"{counted} iterations were journalled, not 1"
        return ran, _block(ran) or wrong


def nothing(ran: Ran) -> str:
    """What is wrong with an answer that should be none."""
    return ran.problem or _exit(ran) or ("it printed something" if ran.out else "")


def harmless(ran: Ran) -> str:
    """What is wrong with an answer that may be anything the client understands."""
    return (
        ran.problem or _exit(ran) or ("" if not ran.out or _object(ran) else "it printed no JSON")
    )


def _exit(ran: Ran) -> str:
    return f"it left with exit code {ran.code}" if ran.code else ""


def _object(ran: Ran) -> dict[str, Any] | None:
    try:
        found = json.loads(ran.out)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _block(ran: Ran) -> str:
    answer = _object(ran)
    if ran.problem or ran.code or answer is None:
        return ran.problem or _exit(ran) or "it did not block"
    special = answer.get("hookSpecificOutput")
    context = special.get("additionalContext") if isinstance(special, dict) else None
    blocks = context or (answer.get("decision") == "block" and answer.get("reason"))
    return "" if blocks else "it did not block"


Verdict = Callable[[Ran], str]


def trials(probe: Probe) -> Iterator[tuple[str, Ran, str]]:
    """Every hostile input: its name, what came of it, and what is wrong with that."""
    quiet = probe.loops.quiet
    neat = json.dumps(probe.loops.payload(quiet), indent=4)
    odd = ("\ufeff" + neat.replace("\n", "\r\n") + "\r\n").encode()
    plain: list[tuple[str, Verdict, Callable[[], Ran]]] = [
        ("a stop without a loop", nothing, lambda: probe.stop(quiet)),
        ("stdin stays open", nothing, lambda: probe.stop(quiet, stays_open=True)),
        ("stdin with BOM and CRLF", nothing, lambda: probe.run(odd, quiet)),
        ("garbage on stdin", nothing, lambda: probe.run(b"\x00\xff{]garbage\n" * 9, quiet)),
        ("half a payload", nothing, lambda: probe.run(neat.encode()[:-9], quiet)),
        ("nothing on stdin", nothing, lambda: probe.run(b"", quiet)),
        ("nothing, and it stays open", nothing, lambda: probe.run(b"", quiet, stays_open=True)),
        ("a project that is gone", nothing, lambda: probe.stop(probe.loops.root / "gone")),
        ("no home", nothing, lambda: probe.stop(quiet, without="HOME")),
    ]
    if not WINDOWS:  # there a directory in use cannot be deleted
        plain.append(("a deleted directory", nothing, probe.stop_where_nothing_is))
    for name, verdict, run in plain:
        ran = run()
        yield name, ran, verdict(ran)
    yield "a live loop, odd letters in its path", *probe.block()
    ran = probe.stop_where_nothing_can_be_written()
    yield "a live loop, nothing can be written", ran, harmless(ran)

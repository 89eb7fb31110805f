"""The generated hook as clients run it: a project with a loop, signals for it, and its answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gsd_fsm
from tests.support.events import EngineProject

HOOK = Path(gsd_fsm.__file__).with_name("gsd_fsm_hook.py")
SESSION = "s-1"
# A loop with these limits blocks every stop until it is complete.
UNLIMITED = {"max_iterations": 0, "stuck_limit": 0, "idle_limit": 0}
# Variables by which a client around the tests would change the hook.
_OF_CLIENTS = ("_PROJECT_DIR", "CLAUDE_PID", "AI_AGENT", "CLAUDE_CODE_", "GSD_FSM_")


def is_of_a_client(variable: str) -> bool:
    return any(mark in variable for mark in _OF_CLIENTS)


class HookRun(NamedTuple):
    """The exit code and output of a run of the hook."""

    code: int
    out: bytes
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """Return the only JSON object on stdout, {} if there is no output."""
        if not self.out:
            return {}
        assert self.out.endswith(b"\n")
        assert self.out.count(b"\n") == 1
        answer = json.loads(self.out.decode("ascii"))
        assert type(answer) is dict
        assert answer
        return answer


def blocks(answer: dict[str, Any]) -> bool:
    return answer.get("decision") == "block"


def text_of(answer: dict[str, Any]) -> str:
    """Return the text of a block or notice."""
    return str(answer.get("reason") or answer.get("systemMessage") or "")


def signal_of(root: Path, event: str = "Stop", session: str = SESSION, **more: Any) -> str:
    signal = {"hook_event_name": event, "session_id": session, "cwd": str(root), **more}
    return json.dumps(signal, ensure_ascii=False)


def run_command(command: list[str], signal: str | bytes, **place: Any) -> HookRun:
    """Run a command that calls the hook, with this signal on stdin: `place` is its cwd and env."""
    stdin = signal if isinstance(signal, bytes) else signal.encode()
    done = subprocess.run(
        command, input=stdin, capture_output=True, timeout=60, check=False, **place
    )
    return HookRun(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def run_hook(
    signal: str | bytes, copy: str = "a", *, hook: Path = HOOK, under: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
) -> HookRun:  # fmt: skip
    """Run the hook file as a client does, with this signal on stdin."""
    surroundings = {name: value for name, value in os.environ.items() if not is_of_a_client(name)}
    command = [*under, sys.executable, "-I", "-S", str(hook), copy]
    return run_command(command, signal, env={**surroundings, **(env or {})})


class HookProject(EngineProject):
    """A project whose loop has a goal, and signals of its session."""

    def __init__(self, root: Path, kind: str = "goal", **start: Any) -> None:
        criteria = {"criteria": [{"name": "one"}]} if kind == "goal" else {}
        super().__init__(root, kind, **{"goal": "Be done", **criteria, **start})

    def signal(self, event: str = "Stop", **more: Any) -> str:
        return signal_of(self.root, event, **more)


@cache
def interpreters() -> list[str]:
    """Return every Python from 3.8 on that is installed, at least this one."""
    found: dict[tuple[int, ...], str] = {}
    for python in (sys.executable, *sorted(Path(sys.base_prefix).parent.glob("*/bin/python3"))):
        found.setdefault(_version_of(str(python)), str(python))
    for minor in range(8, 15):
        named = shutil.which(f"python3.{minor}")
        if named and (3, minor) not in found:  # the shims of pyenv start slowly
            found.setdefault(_version_of(named), named)
    return [found[version] for version in sorted(found) if version >= (3, 8)]


def _version_of(python: str) -> tuple[int, ...]:
    """Return major and minor version, empty if it does not start."""
    command = [python, "-I", "-S", "-c", "import sys; print(*sys.version_info[:2])"]
    asked = subprocess.run(command, capture_output=True, timeout=60, check=False)
    return tuple(map(int, asked.stdout.split())) if asked.returncode == 0 else ()

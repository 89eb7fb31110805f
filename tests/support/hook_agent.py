"""An agent as its client lets it meet the hook: one process for each signal, JSON in, JSON out."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gsd_fsm
from gsd_fsm.install.hook_entries import CODE
from gsd_fsm.install.interpreter import SWITCHES
from tests.support.command_line import Here

PYTHON = getattr(sys, "_base_executable", None) or sys.executable
HOOK = Path(gsd_fsm.__file__).with_name("gsd_fsm_hook.py")
COMMAND = (PYTHON, *SWITCHES, "-c", CODE, str(HOOK.parent))  # as it stands in the settings
KEPT = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
SHELL = {"type": "shell", "status": "running", "description": "server", "command": "serve"}
SUBAGENT = {"type": "subagent", "status": "running", "description": "d", "agent_type": "a"}


class Reply(NamedTuple):
    answer: dict[str, Any] | None
    err: str


def user() -> dict[str, str]:
    """The environment of this test's user, and nothing else."""
    return {"PATH": "/usr/bin:/bin", **{name: os.environ[name] for name in KEPT}}


def call(
    signal: bytes | dict[str, Any],
    env: dict[str, str] | None = None,
    copy: str = "one",
    cwd: Path | None = None,
) -> Reply:
    """One call of the hook: it leaves with 0, and prints nothing or one line of ASCII JSON."""
    raw = signal if isinstance(signal, bytes) else json.dumps(signal).encode() + b"\n"
    done = subprocess.run(
        [*COMMAND, copy],
        input=raw,
        env={**user(), **(env or {})},
        cwd=cwd,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return judged(done.returncode, done.stdout, done.stderr)


def judged(code: int, out: bytes, err: bytes) -> Reply:
    assert code == 0, (code, out, err)
    assert b"Traceback" not in err, err
    assert err.count(b"\n") <= 1, err
    return Reply(parsed(out), err.decode())


def parsed(out: bytes) -> dict[str, Any] | None:
    """Nothing, or exactly one JSON object on a line of its own."""
    if not out:
        return None
    text = out.decode("ascii")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    answer = json.loads(text)
    assert isinstance(answer, dict)
    assert answer
    return answer


def told(answer: dict[str, Any] | None) -> str:
    """What Claude Code's model gets as another turn, "" when the agent may stop."""
    inner = (answer or {}).get("hookSpecificOutput", {})
    if inner.get("hookEventName") == "Stop":
        return str(inner["additionalContext"])
    return str((answer or {}).get("reason", ""))


class Agent:
    """A session of Claude Code; a copy of the hook is registered under `copy`."""

    def __init__(
        self, here: Here, place: Path, session: str = "s-1", copy: str = "one", **env: str
    ) -> None:
        self.here = here
        self.session = session
        self.copy = copy
        self.place = place
        self.transcript = place / f"{session[:40].strip()}.jsonl"
        self.env = {
            "CLAUDECODE": "1",
            "CLAUDE_PROJECT_DIR": str(here.root),
            "CLAUDE_PID": "4711",
            "AI_AGENT": "claude-code_2-1-325_harness",
            **env,
        }
        self.err = ""

    def other(self, session: str, copy: str = "one", **env: str) -> Agent:
        """Another session in the same project, in a client process of its own."""
        return Agent(self.here, self.place, session, copy, **{"CLAUDE_PID": "4712", **env})

    def twin(self, copy: str) -> Agent:
        """The same session as another registered copy of the hook sees it."""
        return Agent(self.here, self.place, self.session, copy)

    @property
    def shell(self) -> dict[str, str]:
        """The variables of a command that this agent runs."""
        return {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": self.session}

    def signal(self, event: str, **members: Any) -> dict[str, Any]:
        return {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.here.root),
            "hook_event_name": event,
            **members,
        }

    def stop_signal(self, message: str = "I am done.", **members: Any) -> dict[str, Any]:
        facts = {
            "prompt_id": "p-1",
            "permission_mode": "default",
            "stop_hook_active": False,
            "last_assistant_message": message,
            "background_tasks": [],
            "session_crons": [],
        }
        return self.signal("Stop", **{**facts, **members})

    def send(self, signal: dict[str, Any], **env: str) -> dict[str, Any] | None:
        """One signal; a block is never printed without its event."""
        answer, self.err = call(signal, {**self.env, **env}, self.copy, self.here.root)
        text = told(answer)
        if text:
            reasons = [
                e["data"].get("reason") for e in self.here.lines() if e["type"] == "iteration"
            ]
            assert text in reasons, "a block without its event"
            assert len(text) < 8_000
        return answer

    def new(self, before: bytes) -> list[Any]:
        """The events since the journal was this."""
        after = self.here.journal.read_bytes()
        assert after.startswith(before)
        return [json.loads(line) for line in after[len(before) :].splitlines()]

    def stop(
        self, message: str = "I am done.", env: dict[str, str] | None = None, **members: Any
    ) -> dict[str, Any] | None:
        return self.send(self.stop_signal(message, **members), **(env or {}))

    def blocked(self, message: str = "I am done.", **how: Any) -> str:
        """The text of a block; anything else is a failure."""
        text = told(self.stop(message, **how))
        assert text, f"not blocked: {self.err}"
        assert self.here.last()["type"] == "iteration"
        return text

    def allowed(self, message: str = "I am done.", **how: Any) -> str:
        """What the user was told as the stop was allowed; a block is a failure."""
        answer = self.stop(message, **how)
        assert not told(answer), answer
        assert set(answer or {}) <= {"systemMessage"}
        return str((answer or {}).get("systemMessage", ""))

    def context(self, event: str, env: dict[str, str] | None = None, **members: Any) -> str:
        """What the model gets with a signal that is no stop."""
        self.answer = self.send(self.signal(event, **members), **(env or {}))
        inner = (self.answer or {}).get("hookSpecificOutput", {})
        assert inner.get("hookEventName", event) == event
        return str(inner.get("additionalContext", ""))

    @property
    def notice(self) -> str:
        """What the user saw beside the last `context`."""
        return str((self.answer or {}).get("systemMessage", ""))

    def prompt(self, text: str = "go on", **how: Any) -> str:
        return self.context("UserPromptSubmit", prompt=text, permission_mode="default", **how)

    def starts(self, source: str = "startup", **how: Any) -> str:
        return self.context("SessionStart", source=source, **how)

    def ends(self, reason: str = "other", **how: Any) -> str:
        return self.context("SessionEnd", reason=reason, **how)

    def fails(self, error: str, message: str = "API Error", **how: Any) -> str:
        return self.context("StopFailure", error=error, last_assistant_message=message, **how)

    def compacts(self, trigger: str = "auto", **how: Any) -> str:
        return self.context("PreCompact", trigger=trigger, custom_instructions=None, **how)

    def says(self, *contents: dict[str, Any]) -> None:
        """Write a reply of the model into the transcript, as the client does."""
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a", encoding="utf-8") as file:
            for content in contents:
                message = {"role": "assistant", "content": [content]}
                row = {"type": "assistant", "sessionId": self.session, "message": message}
                file.write(json.dumps(row, separators=(",", ":")) + "\n")

    def uses_a_tool(self) -> None:
        self.says({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}})

    def talks(self, text: str = "words") -> None:
        self.says({"type": "text", "text": text})

    def why(self, *seq: str) -> Any:
        return self.here.ok("why", *seq, "--json", env=self.shell).json


def start(agent: Agent, *args: str, by: str = "yolo") -> str:
    """A loop that this session owns from its first event."""
    return agent.here.start(*args, "--mode", by, env=agent.shell)


def kinds(here: Here) -> list[str]:
    """The journal as types, hook events with their code or action."""
    found = []
    for event in here.lines():
        detail = event["data"].get("code") or event["data"].get("action") or ""
        found.append(f"{event['type']} {detail}".strip())
    return found


def do(agent: Agent, *commands: str) -> None:
    """Run these commands in the agent's shell."""
    for command in commands:
        agent.here.ok(*shlex.split(command), env=agent.shell)


@pytest.fixture
def agent(here: Here, tmp_path: Path) -> Agent:
    """Return a session of Claude Code in the project."""
    return Agent(here, tmp_path / "home" / ".claude" / "projects" / "p")

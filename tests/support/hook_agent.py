"""An agent whose client calls the generated hook: JSON in, JSON out."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from gsd_fsm import gsd_fsm_hook
from gsd_fsm.install.hook_entries import CODE
from gsd_fsm.install.interpreter import SWITCHES
from tests.support.command_line import TYPED, Here
from tests.support.hook_project import HOOK, HookRun, run_command

PYTHON = getattr(sys, "_base_executable", None) or sys.executable
COMMAND = (PYTHON, *SWITCHES, "-c", CODE, str(HOOK.parent))  # as in the settings of the client
GOAL = ("goal", "Ship it", "--criterion", "it is shipped")
# The process of the client: its start is looked up, so it must exist.
CLIENT_PID = str(os.getpid())
SHELL = {"type": "shell", "status": "running", "description": "server", "command": "serve"}
SUBAGENT = {"type": "subagent", "status": "running", "description": "d", "agent_type": "a"}


class Reply(NamedTuple):
    answer: dict[str, Any] | None
    err: str


def user() -> dict[str, str]:
    """Return the environment of this test's user, and nothing else."""
    kept = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "SYSTEMROOT")
    return {"PATH": os.environ["PATH"], **{it: os.environ[it] for it in kept if it in os.environ}}


def call(
    signal: bytes | dict[str, Any], env: dict[str, str] | None = None, cwd: Path | None = None
) -> Reply:
    """Run the hook as a client does, in a process of its own."""
    stdin = signal if isinstance(signal, bytes) else json.dumps(signal) + "\n"
    done = run_command([*COMMAND, "one"], stdin, env={**user(), **(env or {})}, cwd=cwd)
    return judged(done.code, done.out, done.err.encode())


def judged(code: int, out: bytes, err: bytes) -> Reply:
    """Return the reply of a hook; assert that it exited with 0 and printed at most one JSON line."""
    assert code == 0, (code, out, err)
    assert b"Traceback" not in err, err
    assert err.count(b"\n") <= 1, err
    return Reply(HookRun(code, out, "").answer or None, err.decode())


def call_here(signal: dict[str, Any], env: dict[str, str], copy: str, cwd: Path) -> Reply:
    """Run the generated hook in this process: without its start, its watchdog and its exit."""
    stderr = os.dup(2)
    with (
        tempfile.TemporaryFile() as caught,
        mock.patch.dict(os.environ, {**user(), **env}, clear=True),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(cwd)
        os.dup2(caught.fileno(), 2)
        try:
            answer = gsd_fsm_hook.reply(json.dumps(signal), copy)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        caught.seek(0)
        printed = json.dumps(answer).encode() + b"\n" if answer else b""
        return judged(0, printed, caught.read())


def block_of(answer: dict[str, Any] | None) -> str:
    """Return the text of a block as Claude Code's model reads it, "" if the stop was allowed."""
    inner = (answer or {}).get("hookSpecificOutput", {})
    if inner.get("hookEventName") == "Stop":
        return str(inner["additionalContext"])
    return str((answer or {}).get("reason", ""))


class Agent:
    """A session of Claude Code, for which a copy of the hook is registered as `copy`."""

    def __init__(
        self, here: Here, place: Path, session: str = "s-1", copy: str = "one", **env: str
    ) -> None:
        self.here, self.place = here, place
        self.session, self.copy = session, copy
        self.transcript = place / f"{session[:40].strip()}.jsonl"
        client = {"CLAUDE_PID": CLIENT_PID, "AI_AGENT": "claude-code_2-1-325_harness"}
        self.env = {"CLAUDECODE": "1", **client, "CLAUDE_PROJECT_DIR": str(here.root), **env}
        self.err = ""

    def other(self, session: str, copy: str = "one", **env: str) -> Agent:
        """Return another session in the same project, in a client process of its own."""
        return Agent(self.here, self.place, session, copy, **{"CLAUDE_PID": "4712", **env})

    def twin(self, copy: str) -> Agent:
        """Return the same session as another registered copy of the hook sees it."""
        return Agent(self.here, self.place, self.session, copy)

    # commands

    @property
    def shell(self) -> dict[str, str]:
        """Return the variables of a command that this agent runs."""
        return {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": self.session}

    def do(self, *commands: str) -> None:
        """Run commands as this agent, each written as in a shell."""
        for command in commands:
            self.here.ok(*shlex.split(command), env=self.shell)

    def refused(self, command: str) -> str:
        """Run a command as this agent that the state machine refuses; return its message."""
        return self.here.refused(4, *shlex.split(command), env=self.shell).err

    def status(self, *names: str) -> Any:
        """Return a member of the status, or several as a tuple."""
        status = self.here.status()
        return status[names[0]] if len(names) == 1 else tuple(status[name] for name in names)

    def why(self, *seq: str) -> Any:
        return self.here.ok("why", *seq, "--json", env=self.shell).json

    # signals

    def signal(self, event: str, **members: Any) -> dict[str, Any]:
        common = {"session_id": self.session, "transcript_path": str(self.transcript)}
        return {**common, "cwd": str(self.here.root), "hook_event_name": event, **members}

    def stop_signal(self, message: str = "I am done.", **members: Any) -> dict[str, Any]:
        facts = {
            "prompt_id": "p-1", "permission_mode": "default", "stop_hook_active": False,
            "last_assistant_message": message, "background_tasks": [], "session_crons": [],
        }  # fmt: skip
        return self.signal("Stop", **{**facts, **members})

    def send(self, signal: dict[str, Any], **env: str) -> dict[str, Any] | None:
        """Send one signal; assert that no block is answered without its event."""
        reply = call_here(signal, {**self.env, **env}, self.copy, self.here.root)
        answer, self.err = reply
        text = block_of(answer)
        if text:
            lines = self.here.lines()
            reasons = [e["data"].get("reason") for e in lines if e["type"] == "iteration"]
            assert text in reasons, "a block without its event"
            assert len(text) < 8_000
        return answer

    def new(self, before: bytes) -> list[Any]:
        """Return the events since the journal was this."""
        after = self.here.journal.read_bytes()
        assert after.startswith(before)
        return [json.loads(line) for line in after[len(before) :].splitlines()]

    def stop(
        self, message: str = "I am done.", env: dict[str, str] | None = None, **members: Any
    ) -> dict[str, Any] | None:
        return self.send(self.stop_signal(message, **members), **(env or {}))

    def blocked(self, message: str = "I am done.", **how: Any) -> str:
        """Stop and return the text of the block; assert that there is one."""
        text = block_of(self.stop(message, **how))
        assert text, f"not blocked: {self.err}"
        assert self.here.last()["type"] == "iteration"
        return text

    def allowed(self, message: str = "I am done.", **how: Any) -> str:
        """Stop and return the notice for the user; assert that the stop is not blocked."""
        answer = self.stop(message, **how)
        assert not block_of(answer), answer
        assert set(answer or {}) <= {"systemMessage"}
        return str((answer or {}).get("systemMessage", ""))

    def context(self, event: str, env: dict[str, str] | None = None, **members: Any) -> str:
        """Send a signal that is not a stop; return the text for the model."""
        self.answer = self.send(self.signal(event, **members), **(env or {}))
        inner = (self.answer or {}).get("hookSpecificOutput", {})
        assert inner.get("hookEventName", event) == event
        return str(inner.get("additionalContext", ""))

    @property
    def notice(self) -> str:
        """Return the notice for the user that the last `context` brought."""
        return str((self.answer or {}).get("systemMessage", ""))

    def prompt(self, text: str = "go on", **how: Any) -> str:
        """Let the user type a prompt; the client records it once the hook has answered."""
        said = self.forged_prompt(text, **how)
        self.write(
            {**TYPED, "sessionId": self.session, "message": {"role": "user", "content": text}}
        )
        return said

    def forged_prompt(self, text: str = "go on", **how: Any) -> str:
        """Send the signal of a prompt that no user has typed."""
        return self.context("UserPromptSubmit", prompt=text, permission_mode="default", **how)

    def takes_over(self, loop: str = "") -> None:
        """Let the user ask for the loop in this session, and resume it here."""
        self.prompt("continue here")
        self.do(f"--loop {loop} resume" if loop else "resume")

    def starts(self, source: str = "startup", **how: Any) -> str:
        return self.context("SessionStart", source=source, **how)

    def ends(self, reason: str = "other", **how: Any) -> str:
        return self.context("SessionEnd", reason=reason, **how)

    def fails(self, error: str, message: str = "API Error", **how: Any) -> str:
        return self.context("StopFailure", error=error, last_assistant_message=message, **how)

    def compacts(self, trigger: str = "auto", **how: Any) -> str:
        return self.context("PreCompact", trigger=trigger, custom_instructions=None, **how)

    # the transcript

    def says(self, **content: Any) -> None:
        """Write a reply of the model into the transcript, as the client does."""
        message = {"role": "assistant", "content": [content]}
        self.write({"type": "assistant", "sessionId": self.session, "message": message})

    def write(self, *rows: dict[str, Any]) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)

    def uses_a_tool(self) -> None:
        self.says(type="tool_use", id="t", name="Bash", input={"command": "ls"})

    def talks(self, text: str = "words") -> None:
        self.says(type="text", text=text)


def start(agent: Agent, *args: str, by: str = "yolo") -> str:
    """Start a loop that this session owns from its first event."""
    return agent.here.start(*args, "--mode", by, env=agent.shell)


def kinds(here: Here) -> list[str]:
    """Return the journal as types, hook events with their code or action."""
    found = []
    for event in here.lines():
        detail = event["data"].get("code") or event["data"].get("action") or ""
        found.append(f"{event['type']} {detail}".strip())
    return found


@pytest.fixture
def agent(here: Here, tmp_path: Path) -> Agent:
    """Return a session of Claude Code in the project."""
    return Agent(here, tmp_path / "home" / ".claude" / "projects" / "p")

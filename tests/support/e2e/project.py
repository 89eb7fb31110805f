"""A project with the hook installed, and the real client in a clean environment."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gsd_fsm
from tests.support.command_line import Project
from tests.support.e2e.chat import ANYTHING, Chat
from tests.support.e2e.fake_model import OVER, PATIENCE, FakeModel, Held, Turn, bash, say
from tests.support.e2e.screen import Screen
from tests.support.hook_agent import user
from tests.support.repositories import git

KEY = "dummy-not-a-key"
# Run the package that these tests import, whichever one is installed.
COMMAND = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from gsd_fsm.__main__ import main; main()"
)
# Start a loop that one command can finish, as a user or an agent.
GOAL = ("goal", "Ship it", "--mode", "yolo", "--criterion", "it is shipped")
START = bash("gsd-fsm start " + shlex.join(GOAL))
FINISH = bash("gsd-fsm criterion 1 met && gsd-fsm exit-signal")
# Texts that no user should see: a false error, a schema, the client's own limit.
UGLY = ("Stop hook error", "output validation failed", "Expected schema", "consecutive times")


class Rig(Project):
    """A project, a terminal (`ok`, `run`), and sessions of the client.

    Unless `calm` is False, no session may show the user a hook error.
    """

    def __init__(self, root: Path, claude: Path, scratch: Path, model: FakeModel) -> None:
        super().__init__(root)
        self.claude = claude
        self.scratch = scratch
        self.model = model
        self.calm = True
        self.sessions: list[Chat | Screen] = []
        self.loop = ""  # started in the terminal
        root.mkdir()
        git(root, "init", "-q", "--template=")
        launcher = scratch / "bin" / "gsd-fsm"  # on the PATH of the client
        launcher.parent.mkdir()
        run = shlex.join([sys.executable, "-c", COMMAND, str(Path(gsd_fsm.__file__).parents[1])])
        launcher.write_text(f'#!/bin/sh\nexec {run} "$@"\n')
        launcher.chmod(0o755)

    @property
    def env(self) -> dict[str, str]:
        return {
            **user(),  # one user for terminal, client and hook
            "PATH": f"{self.scratch / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            # For sockets, whose paths must be short.
            "TMPDIR": str(self.scratch),
            "CLAUDE_CODE_TMPDIR": str(self.scratch),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",  # lets root skip the questions about permissions
        }

    def install_plugin(self) -> None:
        """Let the plugin in the directory `a plugin` replace the installed hook."""
        self.ok("init", "--plugin", "a plugin", "--yes")
        self.ok("uninstall", "--scope", "project", "--yes")

    def start(self, *args: str) -> str:
        """Start a loop in the terminal, for the next headless session; return its id."""
        self.loop = str(self.ok("start", *args, "--json").json["loop"])
        return self.loop

    def chat(
        self, *args: str, before: Sequence[str] = (), mode: Sequence[str] = ANYTHING, **env: str
    ) -> Chat:
        """Start a headless session; `before` starts the client, `mode` says what it may do."""
        named = {"GSD_FSM_LOOP": self.loop, **env} if self.loop else env
        session = Chat([str(self.claude), *args], self.root, {**self.env, **named}, before, mode)
        self.sessions.append(session)
        return session

    def talk(self, prompt: str, *turns: Turn) -> Chat:
        """Hold a session with one prompt, which the model answers with all of these turns."""
        self.model.main.then(*turns)
        chat = self.chat()
        assert chat.ask(prompt)["result"] == turns[-1].text
        assert chat.close() == 0
        return chat

    def held_after_a_block(self) -> tuple[Chat, str]:
        """Return a session whose stop was blocked once, and its loop."""
        self.model.main.then(START, say("I stop."), held := Held(say("Nobody hears this.")))
        chat = self.chat()
        chat.tell("Ship it.")
        held.until_wanted()
        return chat, str(self.status()["loop"])

    def interrupted_after_a_block(self) -> Screen:
        """Return a session whose stop was blocked once, and whose next turn the user ended."""
        self.model.main.then(say("I stop."), held := Held(say("Nobody hears this.")))
        screen = self.screen()
        screen.type("Ship it.")
        held.until_wanted()
        screen.press("Escape")
        screen.until("Interrupted")
        return screen

    def screen(self, *args: str) -> Screen:
        """Start an interactive session in its own terminal."""
        session = Screen([str(self.claude), *args], self.root, self.env, self.scratch)
        self.sessions.append(session)
        return session

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a condition that no session reports."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"no {what}"
            time.sleep(0.05)

    def sent_back(self, lane: str = "main") -> list[str]:
        """Return the texts of all blocks that the model received."""
        heard = [request.heard for request in self.model.asked(lane)]
        return [text for text in heard if "Continuing " in text]

    def require_calm(self) -> None:
        """Require that no session showed a hook error, and that every turn was served."""
        shown = "\n".join(session.shown for session in self.sessions)
        for ugly in (*UGLY, OVER) if self.calm else (OVER,):
            assert ugly not in shown
        assert self.model.unsaid() == []

    def story(self, loop: str | None = None) -> list[str]:
        """Return the events of a loop as type and detail."""
        return [brief(event) for event in self.lines()[1:] if loop in (None, event["loop"])]


# The member of an event's data that identifies it.
ABOUT = {
    "session": "action", "task": "status", "wait": "for", "pause": "code", "stop": "code",
    "criterion": "met",
}  # fmt: skip


def brief(event: dict[str, Any]) -> str:
    """Return an event in one or two words."""
    about = event["data"].get(ABOUT.get(event["type"], ""))
    if isinstance(about, bool):
        about = "met" if about else "unmet"
    return f"{event['type']} {about}" if about else str(event["type"])

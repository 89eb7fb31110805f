"""Run an interactive session of the client in a terminal of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

PATIENCE = 30


class Screen:
    """The client in its own tmux server."""

    def __init__(
        self, command: list[str], project: Path, env: dict[str, str], scratch: Path
    ) -> None:
        assert shutil.which("tmux"), "tmux is missing: it is the terminal of these tests"
        self.socket = scratch / "tmux"
        _skip_introductions(Path(env["HOME"]), project, env["ANTHROPIC_API_KEY"])
        self.tmux(
            "new-session", "-d", "-x", "150", "-y", "50", "-c", str(project),
            "env", "-i", *(f"{name}={value}" for name, value in env.items()),
            "TERM=xterm-256color", *command, "--dangerously-skip-permissions",
        )  # fmt: skip
        self.until("❯")

    def tmux(self, *args: str) -> str:
        command = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *args]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout

    @property
    def shown(self) -> str:
        """Return the screen and its scrollback, without blank lines."""
        lines = self.tmux("capture-pane", "-p", "-J", "-S", "-2000").splitlines()
        return "\n".join(line.rstrip() for line in lines if line.strip())

    def until(self, text: str) -> str:
        """Wait for a text; return the screen that shows it."""
        end = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < end, f"no {text!r} on the screen:\n{self.shown}"
            time.sleep(0.1)
        return self.shown

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.until(text)
        self.tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    def kill(self) -> None:
        self.tmux("kill-server")


def _skip_introductions(home: Path, project: Path, key: str) -> None:
    """Write the client's settings of a user who chose theme, key and trust."""
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {
            str(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        },
    }
    (home / ".claude.json").write_text(json.dumps(state))

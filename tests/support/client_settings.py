"""The settings files of a client beside a project, and an installation that is quick to repeat."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.install import installer, interpreter
from gsd_fsm.install.hook_entries import EVENTS, ours
from tests.support.command_line import Here
from tests.support.events import write

FOREIGN = {"type": "command", "command": "true", "timeout": 5}
HOOKS = {"PreToolUse": [{"matcher": "Bash", "hooks": [FOREIGN]}], "Stop": [{"hooks": [FOREIGN]}]}
SETTINGS: dict[str, Any] = {
    "zebra": [1, 2.50, {"deep": None}], "model": "opus", "hooks": HOOKS, "env": {"A": "b"},
    "apple": "é \u2028",
}  # fmt: skip


def program(path: Path, text: str) -> Path:
    """Write an executable file."""
    write(path, text).chmod(0o755)
    return path


def everywhere(hook: dict[str, Any]) -> dict[str, Any]:
    """Return settings with this hook at every event."""
    return {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}


def listing(root: Path) -> dict[str, bytes]:
    """Return the content of every file below."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


class Client:
    """The settings files that Claude Code would read."""

    def __init__(self, project: Path) -> None:
        self.home = Path(os.environ["HOME"])
        self.project = project
        self.files = {
            "user": self.home / ".claude" / "settings.json",
            "project": project / ".claude" / "settings.json",
            "local": project / ".claude" / "settings.local.json",
        }
        self.data = self.home / ".local" / "share" / "gsd-fsm"
        self.hook = self.data / "hook" / "gsd_fsm_hook.py"

    def write(self, content: bytes | object, scope: str = "local") -> Path:
        if not isinstance(content, bytes):
            content = json.dumps(content, indent=2).encode() + b"\n"
        return write(self.files[scope], content)

    def read(self, scope: str = "local") -> Any:
        return json.loads(self.files[scope].read_bytes().decode("utf-8-sig"))

    def hooks(self, scope: str = "local") -> list[dict[str, Any]]:
        """Return our hook at each event; every event must have exactly one."""
        found = ours(self.read(scope))
        assert sorted(each.event for each in found) == sorted(EVENTS)
        return [each.hook for each in found]

    def record(self) -> Path:
        """Return the only record of an installation."""
        (path,) = (self.data / "installed").iterdir()
        return path

    def all_files(self) -> dict[str, bytes]:
        return listing(self.home) | listing(self.project)

    def enable_plugin(self, directory: Path) -> None:
        """Enable our plugin as the client does once it is installed from a marketplace."""
        self.write({"enabledPlugins": {"gsd-fsm@team": True, "other@team": True}}, "user")
        known = {"plugins": {"gsd-fsm@team": [{"installPath": str(directory)}]}}
        plugins = self.home / ".claude" / "plugins"
        write(plugins / "installed_plugins.json", json.dumps(known))

    def read_plugin_in_place(self, checkout: Path) -> None:
        """Make this directory the marketplace of our plugin, as the client does with a path."""
        market = {"source": {"source": "directory"}, "installLocation": str(checkout)}
        plugins = self.home / ".claude" / "plugins"
        write(plugins / "known_marketplaces.json", json.dumps({"team": market}))


@pytest.fixture
def client(here: Here) -> Client:
    return Client(here.root)


@pytest.fixture(scope="session")
def python() -> interpreter.Interpreter:
    """Return the Python that `init` chooses here."""
    return interpreter.choose(None)


@pytest.fixture(scope="session")
def compiled(python: interpreter.Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the packaged hook with its bytecode beside it."""
    hook = tmp_path_factory.mktemp("compiled") / installer.packaged_hook().name
    shutil.copy(installer.packaged_hook(), hook)
    installer.warm(python.path, hook.parent)
    return hook


@pytest.fixture(autouse=True)
def _own_client(
    python: interpreter.Interpreter,
    compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Hide the user's client and data, put gsd-fsm on the PATH, and do slow steps only once."""
    command = program(tmp_path_factory.mktemp("bin") / "gsd-fsm", "#!/bin/sh\nexit 0\n")
    program(command.with_name("claude"), "#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "GSD_FSM_DISABLE"):
        monkeypatch.delenv(name, raising=False)
    ask, warm = interpreter.ask, installer.warm

    def known(path: str) -> tuple[interpreter.Interpreter, str]:
        return (python, path) if path == python.path else ask(path)

    def copied(path: str, directory: Path) -> None:
        hook, cache = directory / compiled.name, directory / "__pycache__"
        if not cache.exists() and hook.read_bytes() == compiled.read_bytes():
            shutil.copytree(compiled.parent / cache.name, cache)
            os.utime(hook, ns=(0, compiled.stat().st_mtime_ns))
        warm(path, directory)

    monkeypatch.setattr(interpreter, "ask", known)
    monkeypatch.setattr(installer, "warm", copied)

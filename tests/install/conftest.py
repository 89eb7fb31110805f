"""A project with the real command in this process, and the settings files of a client beside it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.install import doctor, installer, interpreter
from gsd_fsm.install.hook_entries import EVENTS, ours
from gsd_fsm.install.trial_run import trials
from tests.support.command_line import Here, here, repository

__all__ = ["here", "repository"]

FOREIGN = {"type": "command", "command": "true", "timeout": 5}
SETTINGS = {
    "zebra": [1, 2.50, {"deep": None}],
    "model": "opus",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [FOREIGN]}],
        "Stop": [{"hooks": [FOREIGN]}],
    },
    "env": {"A": "b"},
    "apple": "é \u2028",
}


def program(path: Path, text: str) -> Path:
    """A file that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _own_client(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the user's client, interpreter or data is seen; our command is on the PATH."""
    command = program(tmp_path_factory.mktemp("bin") / "gsd-fsm", "#!/bin/sh\nexit 0\n")
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "GSD_FSM_DISABLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def python() -> interpreter.Interpreter:
    """The Python that `init` chooses here."""
    return interpreter.choose(None)


@pytest.fixture(scope="session")
def warmed(python: interpreter.Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged hook, and beside it the bytecode that `init` makes."""
    hook = tmp_path_factory.mktemp("warmed") / installer.packaged_hook().name
    shutil.copy(installer.packaged_hook(), hook)
    installer.warm(python.path, hook.parent)
    return hook


@pytest.fixture(autouse=True)
def _asked_once(python: interpreter.Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python that never changes is not asked at each `init` who it is."""
    ask = interpreter.ask

    def known(path: str) -> tuple[interpreter.Interpreter, str]:
        return (python, path) if path == python.path else ask(path)

    monkeypatch.setattr(interpreter, "ask", known)


@pytest.fixture(autouse=True)
def _compiled_once(warmed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To compile the hook is most of the work of `init`: the same one finds its bytecode there."""
    warm = installer.warm

    def copied(python: str, directory: Path) -> None:
        hook, kept = directory / warmed.name, directory / "__pycache__"
        if not kept.exists() and hook.read_bytes() == warmed.read_bytes():
            shutil.copytree(warmed.parent / kept.name, kept)
            os.utime(hook, ns=(0, warmed.stat().st_mtime_ns))
        warm(python, directory)

    monkeypatch.setattr(installer, "warm", copied)


@pytest.fixture
def one_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor runs the hook once, for tests that are about something else than its trials."""
    monkeypatch.setattr(doctor, "trials", lambda probe: itertools.islice(trials(probe), 1))


class Client:
    """The settings files that Claude Code would read."""

    def __init__(self, project: Path) -> None:
        self.home = Path(os.environ["HOME"])
        self.files = {
            "user": self.home / ".claude" / "settings.json",
            "project": project / ".claude" / "settings.json",
            "local": project / ".claude" / "settings.local.json",
        }
        self.data = self.home / ".local" / "share" / "gsd-fsm"
        self.hook = self.data / "hook" / "gsd_fsm_hook.py"

    def write(self, content: bytes | object, scope: str = "local") -> Path:
        path = self.files[scope]
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = (
            content
            if isinstance(content, bytes)
            else (json.dumps(content, indent=2) + "\n").encode()
        )
        path.write_bytes(raw)
        return path

    def read(self, scope: str = "local") -> Any:
        return json.loads(self.files[scope].read_bytes().decode("utf-8-sig"))

    def hooks(self, scope: str = "local") -> list[dict[str, Any]]:
        """Our hook at each event; all events have exactly one."""
        found = ours(self.read(scope))
        assert sorted(each.event for each in found) == sorted(EVENTS)
        return [each.hook for each in found]


@pytest.fixture
def client(here: Here) -> Client:
    return Client(here.root)


def listing(root: Path) -> dict[str, bytes]:
    """Every file below, with what it holds."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }

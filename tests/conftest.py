"""What every test stands on: a home of its own, and a project with the real command line."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gsd_fsm.config.caller import CLIENTS
from gsd_fsm.core.journal.journal import Journal, create_journal
from gsd_fsm.core.project import make_gsd, register
from gsd_fsm.evidence.interruption import SIGNALS
from tests.support.events import draft

NOW = 1_794_783_600_000  # 2026-11-15T23:00:00.000Z
OF_AGENTS = {name for _, markers, session in CLIENTS for name in (*markers, session)}
_untouched: list[Path] = []  # homes in which no test has left anything


def pytest_configure() -> None:
    """How long an example takes says more about the machine than about the code."""
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, which would look at them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """No test sees the real home, and none is run by an agent unless it says so."""
    home = _untouched.pop() if _untouched else tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    for name in list(os.environ):
        if name in OF_AGENTS or name.startswith("GIT_"):
            monkeypatch.delenv(name)
    yield
    if not any(home.iterdir()):
        _untouched.append(home)


@pytest.fixture(autouse=True)
def _heeded_signals() -> Iterator[None]:
    """Heed the signals that a background job ignores: the commands of a test would inherit that."""
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    ignored = [number for number in numbers if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Project:
    """A directory in which the real command is run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.gsd = root / ".gsd"
        self.journal = self.gsd / "journal.jsonl"

    def run(
        self,
        *args: str,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 60,
    ) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "gsd_fsm", *args],
            cwd=self.root,
            env={**os.environ, **(env or {})},
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *args: str, **how: Any) -> Answer:
        """Run a command that must succeed."""
        answer = self.run(*args, **how)
        assert answer.code == 0, answer
        return answer

    def status(self) -> Any:
        return self.ok("status", "--json").json

    def lines(self) -> list[Any]:
        """The journal, parsed."""
        return [json.loads(line) for line in self.journal.read_bytes().splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    return Project(root)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """An empty, registered journal, for tests below the command line."""
    return new_journal(tmp_path / "library" / ".gsd")


def new_journal(gsd: Path) -> Journal:
    gsd.parent.mkdir(parents=True, exist_ok=True)
    make_gsd(str(gsd))
    register("j-test", str(gsd), NOW)
    create_journal(str(gsd), "j-test", NOW)
    return Journal(str(gsd))


def start_draft(loop: str = "lp-1", kind: str = "execute", **data: Any) -> dict[str, Any]:
    """A start event with the default limits."""
    base = {"kind": kind, "mode": "yolo", "limits": {}}
    if kind == "execute":
        base["tasks"] = [{"id": "T1"}, {"id": "T2"}]
    return draft("start", loop, "human", {**base, **data})

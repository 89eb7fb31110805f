"""Give every test its own home, and a project with the real command line."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_fsm.config.caller import CLIENTS
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.evidence.interruption import SIGNALS
from gsd_fsm.evidence.shell import GIT_BASH
from tests.support import wine_shell
from tests.support.command_line import Project, homes
from tests.support.events import new_journal
from tests.support.orphan import leave_client, report_exit
from tests.support.programs import make_program
from tests.support.wine_shell import is_wine

OF_AGENTS = {name for _, markers, session in CLIENTS for name in (*markers, session)}
_untouched: list[Path] = []  # homes in which no test left a file


def pytest_configure(config: pytest.Config) -> None:
    """Leave the client that may run the tests; set no deadline for examples.

    The time of an example depends on the machine, not on the code.
    """
    if not hasattr(config, "workerinput"):
        leave_client()
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("patient")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if not hasattr(session.config, "workerinput"):
        report_exit(int(exitstatus))


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, to save time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _wine_bash(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the `bash.exe` of Wine, "" on other systems: they have one."""
    if not is_wine():
        return ""
    source = Path(wine_shell.__file__).read_text("utf-8")
    return str(make_program(tmp_path_factory.mktemp("Git Bash") / "bin" / "bash", source))


@pytest.fixture(autouse=True)
def _own_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, _wine_bash: str
) -> Iterator[None]:
    """Hide the real home, and the agent that may run the tests."""
    home = _untouched.pop() if _untouched else tmp_path_factory.mktemp("home")
    for name, value in homes(home).items():
        monkeypatch.setenv(name, value)
    places = [str(_directory_of_command(tmp_path_factory)), os.environ.get("PATH", os.defpath)]
    monkeypatch.setenv("PATH", os.pathsep.join(places))
    for name in list(os.environ):
        if name in OF_AGENTS or name.startswith(("GIT_", "GSD_FSM_", "CLAUDE_CODE_")):
            monkeypatch.delenv(name)
    # A pytest that a check starts needs none of the plugins that the tests themselves need.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    if _wine_bash:
        monkeypatch.setenv(GIT_BASH, _wine_bash)
    yield
    if not any(home.iterdir()):
        _untouched.append(home)


def _directory_of_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with gsd-fsm and nothing else, so that texts name it without a path."""
    directory = tmp_path_factory.getbasetemp() / "command"
    if not directory.exists():
        directory.mkdir()
        program = directory / ("gsd-fsm.exe" if sys.platform == "win32" else "gsd-fsm")
        program.write_text("exit 1\n")
        program.chmod(0o755)
    return directory


@pytest.fixture(autouse=True)
def _heeded_signals() -> Iterator[None]:
    """Handle the signals that a background job ignores, since commands of a test inherit that."""
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    ignored = [number for number in numbers if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    return Project(root)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Return an empty, registered journal."""
    return new_journal(tmp_path / "library" / ".gsd")

"""Settings files for tests, and helpers that load them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from gsd_fsm.config import settings
from gsd_fsm.core.errors import UsageError
from tests.support.events import write as written

# tests/test_docs.py compares the defaults with docs/settings.md.
DEFAULTS = {key.name: key.default for key in settings.KEYS}


@pytest.fixture(autouse=True)
def user_path(tmp_path, monkeypatch):
    """Put the user's file into a directory of the test, never into the real home."""

    def user_config_dir(name, *, appauthor):
        assert appauthor is False
        return str(tmp_path / "user" / name)

    monkeypatch.setattr(platformdirs, "user_config_dir", user_config_dir)
    path = tmp_path / "user" / "gsd-fsm" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def project_path(tmp_path):
    path = tmp_path / "repository" / ".gsd" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def foreign_path(project_path):
    """Return the path of the planning tool's file."""
    path = project_path.parent.parent / ".opti-gsd" / "config.json"
    path.parent.mkdir()
    return path


@pytest.fixture
def markdown_path(project_path):
    return project_path.with_name("config.md")


@pytest.fixture
def refusal(project_path):
    """Return a function that writes the project's file and returns the error after its name."""

    def refuse(content):
        error = refused(project_path, content)
        assert error.message.startswith(f"{project_path}:"), error.message
        return error.message[len(f"{project_path}:") :]

    return refuse


def values(project_dir, **options):
    return {name: s.value for name, s in settings.load(project_dir, **options).items()}


def values_of(path, content):
    written(path, content)
    return values(gsd_of(path))


def gsd_of(path):
    """Return the directory to load for any of the files."""
    return path.parent.with_name(".gsd") if path.parent.name == ".opti-gsd" else path.parent


def refused(path, content):
    written(path, content)
    with pytest.raises(UsageError) as caught:
        settings.load(gsd_of(path))
    assert caught.value.exit_code == 2, caught.value
    assert caught.value.hint
    return caught.value


def run_python(script, home):
    """Run a script as a user with this home, which is also its argument."""
    package = str(Path(settings.__file__).parents[2])
    env = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "PYTHONPATH": package}
    command = [sys.executable, "-c", script, str(home)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

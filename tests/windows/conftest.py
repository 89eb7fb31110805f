"""The hook and its lock on every system; `make test-windows` runs these on a Windows Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hook_project import HookProject


@pytest.fixture(autouse=True)
def _own_profile(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What HOME and XDG_STATE_HOME are elsewhere."""
    profile = tmp_path_factory.mktemp("profile")
    monkeypatch.setenv("USERPROFILE", str(profile))
    monkeypatch.setenv("LOCALAPPDATA", str(profile / "Local"))


@pytest.fixture
def hooked(tmp_path: Path) -> HookProject:
    """A goal loop that is not done."""
    return HookProject(tmp_path / "project")

"""A project with the real command, and an agent whose client runs the real hook in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Here, here, repository
from tests.support.hook_agent import Agent

__all__ = ["here", "repository"]


@pytest.fixture(autouse=True)
def _no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook is on, and no client of the developer's sets a limit."""
    for name in ("GSD_FSM_DISABLE", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def agent(here: Here, tmp_path: Path) -> Agent:
    """A session of Claude Code in the project."""
    return Agent(here, tmp_path / "home" / ".claude" / "projects" / "p")

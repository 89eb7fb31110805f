"""A project with the real command, and an agent whose client runs the real hook in it."""

from __future__ import annotations

import pytest

from tests.support.command_line import here, repository
from tests.support.hook_agent import agent

__all__ = ["agent", "here", "repository"]


@pytest.fixture(autouse=True)
def _no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook is on, and no client of the developer's sets a limit."""
    for name in ("GSD_FSM_DISABLE", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)

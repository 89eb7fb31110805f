"""A project with the real command, and an agent whose client calls the real hook in it."""

from __future__ import annotations

import pytest

from gsd_fsm.evidence import prompts
from tests.support.command_line import here, repository
from tests.support.hook_agent import GOAL, Agent, agent, start

__all__ = ["agent", "here", "repository"]


@pytest.fixture(autouse=True)
def _no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the hook enabled, and limits of the developer's own client away."""
    for name in ("GSD_FSM_DISABLE", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def looping(agent: Agent) -> Agent:
    """A session with a goal loop of one criterion."""
    start(agent, *GOAL)
    return agent


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for rows of a transcript that nobody writes."""
    monkeypatch.setattr(prompts, "_PAUSES", (0.0, 0.01))

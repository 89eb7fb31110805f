from __future__ import annotations

import pytest

from tests.support.command_line import Here, here, repository
from tests.support.hook_agent import agent
from tests.support.phases import Phase

__all__ = ["agent", "here", "repository"]


@pytest.fixture(autouse=True)
def _git_identity(_own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")


@pytest.fixture
def phase(here: Here) -> Phase:
    return Phase(here)

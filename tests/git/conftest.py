"""A repository with one commit, and git without the user's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.repositories import _isolated_git, opened, repo

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_fsm.git.repo import Repository

__all__ = ["_isolated_git", "repo"]


@pytest.fixture
def repository(repo: Path) -> Repository:
    return opened(repo)

"""A repository with one commit, and git without the user's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gsd_fsm.git.repo import Repository
from tests.support import repositories as git_rig

if TYPE_CHECKING:
    from pathlib import Path

_isolated_git, repo = git_rig._isolated_git, git_rig.repo  # fixtures


@pytest.fixture
def repository(repo: Path) -> Repository:
    found = Repository.around(repo)
    assert found is not None
    return found


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a trace when it is started: the file `sprung` beside it."""
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\ncat\n")
    program.chmod(0o755)
    return program

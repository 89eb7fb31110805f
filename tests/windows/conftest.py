"""Stories of every system; `make test-windows` runs these on a Windows Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.command_line import here
from tests.support.hook_project import HookProject

__all__ = ["here"]
collect_ignore = [] if sys.platform == "win32" else ["test_drives.py", "test_git_bash.py"]


@pytest.fixture
def hooked(tmp_path: Path) -> HookProject:
    """A goal loop that is not done."""
    return HookProject(tmp_path / "project")

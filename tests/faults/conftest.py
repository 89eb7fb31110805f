"""Fixtures of the fault tests: failing system calls, killed processes, full disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core import syscalls as lock


@pytest.fixture(autouse=True)
def _turn_at_every_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make appends independent of the clock, so that each run makes the same system calls."""
    monkeypatch.setattr(lock, "_SLICE", 0)


@pytest.fixture
def gsd(tmp_path: Path) -> Path:
    """Return the path of a directory that the test creates."""
    return tmp_path / "p" / ".gsd"

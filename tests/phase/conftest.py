from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.phases import FinishedPhase


@pytest.fixture
def phase(tmp_path: Path) -> FinishedPhase:
    """A project that keeps its plans in `.opti-gsd`."""
    return FinishedPhase(tmp_path / "project")


@pytest.fixture
def own(tmp_path: Path) -> FinishedPhase:
    """A project that keeps its plans in `.gsd`."""
    return FinishedPhase(tmp_path / "project", ".gsd")

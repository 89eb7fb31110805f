from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.finished_phase import Phase


@pytest.fixture
def phase(tmp_path: Path) -> Phase:
    """A project that keeps its plans in `.opti-gsd`."""
    return Phase(tmp_path / "project")


@pytest.fixture
def own(tmp_path: Path) -> Phase:
    """A project that keeps its plans in `.gsd`."""
    return Phase(tmp_path / "project", ".gsd")

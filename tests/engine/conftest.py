from __future__ import annotations

import pytest

from tests.support.command_line import Here, Project
from tests.support.phases import Phase


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(project.root, monkeypatch)


@pytest.fixture
def phase(here: Here) -> Phase:
    return Phase(here)

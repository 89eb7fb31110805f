from __future__ import annotations

import pytest

from tests.cli.conftest import Here
from tests.conftest import Project
from tests.support.phases import Phase


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(project.root, monkeypatch)


@pytest.fixture
def phase(here: Here) -> Phase:
    return Phase(here)

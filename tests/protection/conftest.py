"""Projects made of a few files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gsd_fsm.protection.files import ProjectFiles, walked_names
from tests.support.projects import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a function that writes files, each with its content, and returns them as a project."""

    def make(files: Mapping[str, str]) -> ProjectFiles:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        return ProjectFiles(tmp_path, walked_names(tmp_path))

    return make

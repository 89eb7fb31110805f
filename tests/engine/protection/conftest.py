from __future__ import annotations

import pytest

from tests.support.command_line import Here, repository
from tests.support.events import write

__all__ = ["repository"]

PASSES = "test -e code.py\n"


@pytest.fixture
def guarded(repository: Here) -> Here:
    """Return a repository with a goal loop whose check `t` runs check.sh."""
    write(repository.root / "check.sh", PASSES)
    repository.start("goal", "g", "--check", "t=sh check.sh")
    return repository

"""The parent directory of a path, on every system."""

from __future__ import annotations

import pytest

from gsd_fsm.core import system
from gsd_fsm.core.system import parent_of


@pytest.mark.parametrize(
    ("windows", "path", "parent"),
    [
        (False, "/a/b", "/a"),
        (False, "/a/b/", "/a"),
        (False, "/a", "/"),
        (False, "/", "/"),
        (False, "abc", "abc"),
        (True, "C:\\a\\b", "C:\\a"),
        (True, "C:/a/b", "C:/a"),
        (True, "C:\\a", "C:\\"),
        (True, "C:\\", "C:\\"),
        (True, "C:", "C:"),
        (True, "\\\\srv\\share\\a\\b", "\\\\srv\\share\\a"),
        (True, "\\\\srv\\share\\a", "\\\\srv\\share"),
        (True, "\\\\srv\\share", "\\\\srv\\share"),
        (True, "\\\\srv\\share\\", "\\\\srv\\share\\"),
    ],
)
def test_parent_of_stops_at_the_root(
    windows: bool, path: str, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "WINDOWS", windows)
    assert parent_of(path) == parent

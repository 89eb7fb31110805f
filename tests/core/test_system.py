"""The parent directory of a path, on every system."""

from __future__ import annotations

import pytest

from gsd_fsm.core import system
from gsd_fsm.core.system import parent_of


@pytest.mark.parametrize(
    ("windows", "path", "parent"),
    [
        (False, "/a/b", "/a"), (False, "/a/b/", "/a"), (False, "/a", "/"), (False, "/", "/"),
        (False, "abc", "abc"), (True, r"C:\a\b", r"C:\a"), (True, "C:/a/b", "C:/a"),
        (True, r"C:\a", "C:\\"), (True, "C:\\", "C:\\"), (True, "C:", "C:"),
        (True, r"\\srv\share\a\b", r"\\srv\share\a"), (True, r"\\srv\share\a", r"\\srv\share"),
        (True, r"\\srv\share", r"\\srv\share"), (True, "\\\\srv\\share\\", "\\\\srv\\share\\"),
    ],
)  # fmt: skip
def test_parent_of_stops_at_the_root(
    windows: bool, path: str, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "WINDOWS", windows)
    assert parent_of(path) == parent

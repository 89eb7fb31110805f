"""Where a project may be: below the root, on every system."""

from __future__ import annotations

import pytest

from gsd_fsm.core import system as places
from gsd_fsm.core.system import parent_of


@pytest.mark.parametrize(
    ("path", "parent"),
    [("/a/b", "/a"), ("/a/b/", "/a"), ("/a", "/"), ("/", "/"), ("abc", "abc")],
)
def test_the_directory_above(path: str, parent: str) -> None:
    assert parent_of(path) == parent


@pytest.mark.parametrize(
    ("path", "parent"),
    [
        ("C:\\a\\b", "C:\\a"),
        ("C:/a/b", "C:/a"),
        ("C:\\a", "C:\\"),
        ("C:\\", "C:\\"),
        ("C:", "C:"),
        ("\\\\srv\\share\\a\\b", "\\\\srv\\share\\a"),
        ("\\\\srv\\share\\a", "\\\\srv\\share"),
        ("\\\\srv\\share", "\\\\srv\\share"),
        ("\\\\srv\\share\\", "\\\\srv\\share\\"),
    ],
)
def test_the_directory_above_on_windows(
    path: str, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "WINDOWS", True)
    assert parent_of(path) == parent

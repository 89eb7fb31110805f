from __future__ import annotations

from tests.support.repositories import _isolated_git, repo

__all__ = ["_isolated_git", "repo"]

"""The commands that settings name, by the check that each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CI = ("lint", "typecheck", "test", "build", "e2e")
_PREFIX = "ci:"


def ci_checks(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the CI commands that are set, by the name of their check."""
    return {
        f"{_PREFIX}{name}": str(settings[f"ci_{name}"]) for name in CI if settings[f"ci_{name}"]
    }

"""Describe tasks for review blockers and for unmet completion conditions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

# More untitled tasks would not help.
MOST_UNNAMED = 20


def gate_task(taken: Collection[str], prefix: str, title: str, condition: str) -> dict[str, Any]:
    """Return the data of a new task, numbered after this prefix."""
    number = 1
    while f"{prefix}{number}" in taken:
        number += 1
    name = f"{prefix}{number}"
    return {"task": name, "status": "pending", "title": title, "condition": condition}


def blocker_titles(named: list[str], counted: int, known: list[str]) -> list[str]:
    """Return a title for each new blocker, also for those counted but not named."""
    new = [title for title in named if title not in known]
    unnamed = max(0, min(counted, MOST_UNNAMED) - len(new) - len(known))
    return new + [f"Resolve a blocker of the thorough review ({counted} in all)"] * unnamed

"""Tasks that stand for what keeps a goal from its end: blockers of a review, conditions of the gate."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

# Beyond some, one more task that names nothing tells nothing more.
MOST_UNNAMED = 20


def gate_task(taken: Collection[str], prefix: str, title: str, condition: str) -> dict[str, Any]:
    """The data of a new task, under the next number of this prefix that is not taken."""
    number = 1
    while f"{prefix}{number}" in taken:
        number += 1
    name = f"{prefix}{number}"
    return {"task": name, "status": "pending", "title": title, "condition": condition}


def blocker_titles(named: list[str], counted: int, known: list[str]) -> list[str]:
    """A title for each blocker that is not known yet; reviewers may have named fewer than they counted."""
    new = [title for title in named if title not in known]
    unnamed = max(0, min(counted, MOST_UNNAMED) - len(new) - len(known))
    return new + [f"Resolve a blocker of the thorough review ({counted} in all)"] * unnamed

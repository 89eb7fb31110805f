"""A task of the client's task list that holds a whole goal loop in its metadata."""

from __future__ import annotations

from typing import Any

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.loop.events.goals import SHAPES
from gsd_fsm.documents.journal_text import GOAL
from gsd_fsm.imports.findings import EventData, Findings, OldLoop, given
from gsd_fsm.imports.members import Members

MEMBERS = frozenset(("id", "subject", "description", "activeForm", "metadata"))
_LIVE = ("in_progress", "pending")
_ENDS = ("completed", "cancelled", "deleted")
_LONGEST_STEP = 500
_LONGEST_ERROR = 6_000


def read_task(document: dict[str, Any], findings: Findings) -> OldLoop:
    """Return the loop; report problems to `findings`."""
    members = Members(document, findings)
    status = members.choice("status", (*_LIVE, *_ENDS), required=True)
    if status in _ENDS:
        findings.ended(f"the task is {status}")
    goal = members.text("description", GOAL) if members.has("description") else None
    if goal is None:
        goal = members.text("subject", GOAL, required=True)
    data = members.inner("metadata", required=True)
    carried = given(
        iteration=data.count("iteration") or 0,
        spent_usd=data.amount("cost"),
        started=data.time_if_valid("startedAt"),
        last_iteration=data.time_if_valid("lastCheckpoint"),
        last_error=_last_error(data, findings),
    )
    start = given(kind="goal", goal=goal, tasks=_steps(data, findings) or None, carried=carried)
    limits = given(budget_usd=data.amount("budget"), max_iterations=data.count("maxIterations"))
    shape = data.choice("shape", SHAPES)
    later: list[EventData] = [("score", {"shape": shape})] if shape else []
    data.ignore_rest()
    members.ignore_rest()
    findings.note(
        "The success criteria are part of the description, and no command proves a text. To add a "
        "check, run: gsd-fsm import FILE --check NAME=CMD"
    )
    return OldLoop("task", start, limits, later, findings.notes)


def _steps(data: Members, findings: Findings) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for member, status in (("completedSteps", "complete"), ("remainingSteps", "pending")):
        for title in data.texts(member):
            kept = findings.whole(data.path(member), title, _LONGEST_STEP)
            steps.append(
                {"id": f"S{len(steps) + 1}", "title": kept, "step": True, "status": status}
            )
    return steps


def _last_error(data: Members, findings: Findings) -> str | None:
    errors = data.items("errors")
    if len(errors) > 1:
        findings.note(f"{data.path('errors')}: only the last of {len(errors)} is imported.")
    if not errors:
        return None
    last = errors[-1] if isinstance(errors[-1], str) else dumps(errors[-1])
    return findings.shortened(data.path("errors"), last, _LONGEST_ERROR)

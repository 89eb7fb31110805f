"""`.loop/state.json`: a goal loop with criteria, steps and a stuck count."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gsd_fsm.documents.journal_text import GOAL
from gsd_fsm.imports.findings import Findings, OldLoop, given
from gsd_fsm.imports.members import Members, shown

MEMBERS = frozenset(
    ("spec", "criteria", "criteriaStatus", "exit_signal", "steps", "completedSteps",
     "remainingSteps", "circuitBreaker")
)  # fmt: skip
_ENDS = ("completed", "cancelled")
_LONGEST_CRITERION = 2_000
_LONGEST_STEP = 500


def read_state(document: dict[str, Any], findings: Findings) -> OldLoop:
    """Return the loop; report problems to `findings`."""
    members = Members(document, findings)
    status = members.choice("status", ("in_progress", *_ENDS), required=True)
    if status in _ENDS:
        findings.ended(f"the loop is {status}")
    goal = members.text("spec", GOAL, required=True)
    criteria = _criteria(members, findings)
    steps = _steps(members, findings)
    exit_signal = members.flag("exit_signal")
    if exit_signal and not all(criterion.get("met") for criterion in criteria):
        findings.problem("exit_signal is true, but a criterion is not met")
    breaker = members.inner("circuitBreaker")
    carried = given(
        iteration=members.count("iteration") or 0,
        exit_signal=exit_signal or None,
        stuck=breaker.count("stuckCount") or 0,
        last_unmet=breaker.text("lastUnmet", _LONGEST_CRITERION),
    )
    breaker.ignore_rest()
    members.ignore_rest()
    start = given(
        kind="goal", goal=goal, criteria=criteria or None, tasks=steps or None, carried=carried
    )
    return OldLoop("state", start, {}, [], findings.notes)


def _criteria(members: Members, findings: Findings) -> list[dict[str, Any]]:
    given = members.texts("criteria", required=True)
    statuses = members.inner("criteriaStatus", required=bool(given))
    criteria: list[dict[str, Any]] = []
    for name in given:
        if not statuses.has(name):
            findings.problem(f"criteriaStatus has no {shown(name)}")
        kept = findings.whole("criteria", name, _LONGEST_CRITERION)
        met = statuses.flag(name)
        criteria.append({"name": kept, "met": True} if met else {"name": kept})
    for name in statuses.names():
        if name not in given:
            findings.problem(f"criteriaStatus has {shown(name)}, which is not in criteria")
    for name, times in Counter(criterion["name"] for criterion in criteria).items():
        if times > 1 and name:
            findings.problem(f"duplicate criterion: {shown(name)}")
    return criteria


def _steps(members: Members, findings: Findings) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    pending: list[str] = []
    done = Counter(members.texts("completedSteps"))
    for number, title in enumerate(members.texts("steps"), 1):
        kept = findings.whole("steps", title, _LONGEST_STEP)
        steps.append({"id": f"S{number}", "title": kept, "step": True})
        if done[title] > 0:
            done[title] -= 1
            steps[-1]["status"] = "complete"
        else:
            pending.append(title)
    for title in +done:
        findings.problem(f"completedSteps has {shown(title)}, which is not in steps")
    if members.has("remainingSteps"):
        left = members.texts("remainingSteps")
        for title in Counter(left) - Counter(pending):
            findings.problem(f"remainingSteps has {shown(title)}, which is not a pending step")
        for title in Counter(pending) - Counter(left):
            findings.problem(f"{shown(title)} is not in remainingSteps nor in completedSteps")
        if left != pending:
            findings.note("remainingSteps: imported in the order of steps.")
    return steps

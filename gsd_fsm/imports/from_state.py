"""`.loop/state.json`: a goal loop with criteria, steps and a count of being stuck."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gsd_fsm.documents.journal_text import GOAL
from gsd_fsm.imports.findings import Findings, OldLoop, shown
from gsd_fsm.imports.members import Members

MEMBERS = frozenset(
    ("spec", "criteria", "criteriaStatus", "exit_signal", "steps", "completedSteps",
     "remainingSteps", "circuitBreaker")
)  # fmt: skip
_ENDS = ("completed", "cancelled")
_LONGEST_CRITERION = 2_000
_LONGEST_STEP = 500


def read_state(document: dict[str, Any], findings: Findings) -> OldLoop:
    members = Members(document, findings)
    status = members.choice("status", ("in_progress", *_ENDS), needed=True)
    if status in _ENDS:
        findings.ended(f"its loop is {status}")
    goal = members.text("spec", needed=True)
    start: dict[str, Any] = {"kind": "goal"}
    if goal is not None:
        start["goal"] = findings.whole("spec", goal, GOAL)
    criteria = _criteria(members, findings)
    if criteria:
        start["criteria"] = criteria
    steps = _steps(members, findings)
    if steps:
        start["tasks"] = steps
    carried: dict[str, Any] = {"iteration": members.count("iteration") or 0}
    if members.flag("exit_signal"):
        carried["exit_signal"] = True
        if not all(criterion.get("met") for criterion in criteria):
            findings.wrong("exit_signal", "it is true although a criterion is not met")
    breaker = members.inner("circuitBreaker")
    carried["stuck"] = breaker.count("stuckCount") or 0
    unmet = breaker.text("lastUnmet")
    if unmet:
        carried["last_unmet"] = findings.whole(
            "circuitBreaker.lastUnmet", unmet, _LONGEST_CRITERION
        )
    breaker.pass_over_rest()
    members.pass_over_rest()
    start["carried"] = carried
    return OldLoop("state", start, {}, [], findings.notes)


def _criteria(members: Members, findings: Findings) -> list[dict[str, Any]]:
    named = members.texts("criteria", needed=True)
    statuses = members.inner("criteriaStatus", needed=bool(named))
    criteria: list[dict[str, Any]] = []
    for name in named:
        if not statuses.has(name):
            findings.wrong("criteriaStatus", f"{shown(name)} has no status")
        kept = findings.whole("criteria", name, _LONGEST_CRITERION)
        met = statuses.flag(name)
        criteria.append({"name": kept, "met": True} if met else {"name": kept})
    for name in statuses.names():
        if name not in named:
            findings.wrong("criteriaStatus", f"{shown(name)} is not among the criteria")
    for name, times in Counter(criterion["name"] for criterion in criteria).items():
        if times > 1 and name:
            findings.wrong("criteria", f"{shown(name)} is named twice")
    return criteria


def _steps(members: Members, findings: Findings) -> list[dict[str, Any]]:
    titles = members.texts("steps")
    done = Counter(members.texts("completedSteps"))
    tells_left = members.has("remainingSteps")
    left = members.texts("remainingSteps")
    steps = []
    open_titles = []
    for number, title in enumerate(titles, 1):
        kept = findings.whole("steps", title, _LONGEST_STEP)
        steps.append({"id": f"S{number}", "title": kept, "step": True})
        if done[title] > 0:
            done[title] -= 1
            steps[-1]["status"] = "complete"
        else:
            open_titles.append(title)
    for title in +done:
        findings.wrong("completedSteps", f"{shown(title)} is not among the steps")
    if tells_left:
        for title in Counter(left) - Counter(open_titles):
            findings.wrong("remainingSteps", f"{shown(title)} is completed, or no step")
        for title in Counter(open_titles) - Counter(left):
            findings.wrong("remainingSteps", f"{shown(title)} is neither there nor completed")
        if left != open_titles:
            findings.note(
                "remainingSteps: the order of the steps counts, not that of what is left."
            )
    return steps

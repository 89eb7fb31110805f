"""`.loop/workflow-state.json`: a goal loop with stages, scores and reviews."""

from __future__ import annotations

import re
from typing import Any

from gsd_fsm.core.loop.events.goals import SHAPES, STAGES
from gsd_fsm.core.loop.state import MAX_KEPT
from gsd_fsm.documents.journal_text import GOAL
from gsd_fsm.evidence.gate_tasks import blocker_titles, gate_task
from gsd_fsm.imports.findings import EventData, Findings, OldLoop, given
from gsd_fsm.imports.members import Members, shown

MEMBERS = frozenset(
    ("stage", "task", "spec_score", "fit_score", "shape_chosen", "recall_surfaced", "reviews")
)
VERSION = 1
_WAVE = re.compile(r"wave_(0|[1-9][0-9]{0,8})")


def read_workflow_state(document: dict[str, Any], findings: Findings) -> OldLoop:
    """Return the loop; report problems to `findings`."""
    members = Members(document, findings)
    version = members.take("version")
    if version is not None and (type(version) is not int or version != VERSION):
        findings.problem(f"version must be {VERSION}, not {shown(version)}")
    stage = members.choice("stage", STAGES, required=True)
    if stage == "complete":
        findings.ended("its stage is complete")
    start = given(
        kind="goal",
        goal=members.text("task", GOAL, required=True),
        carried=given(started=members.time("started_at"), updated=members.time("last_updated")),
    )
    reached = STAGES.index(stage) + 1 if stage else 0
    # The stages come first: a low score would block them.
    later: list[EventData] = [("stage", {"stage": name}) for name in STAGES[:reached]]
    later += _score(members)
    later += _recalled(members, findings)
    later += _reviews(members.inner("reviews"), findings)
    members.ignore_rest()
    findings.note(
        "Tasks are not in this file but in the client's task list, which is mirrored if "
        "CLAUDE_CODE_TASK_LIST_ID names it."
    )
    findings.note(
        "Criteria are not in this file but in SHAPE.md. To add them, run: "
        f"gsd-fsm stage {stage} --shape-file FILE"
    )
    return OldLoop("workflow-state", start, {}, later, findings.notes)


def _score(members: Members) -> list[EventData]:
    scores = given(
        spec_score=members.count("spec_score", most=10),
        fit_score=members.count("fit_score", most=100),
        shape=members.choice("shape_chosen", SHAPES),
    )
    return [("score", scores)] if scores else []


def _recalled(members: Members, findings: Findings) -> list[EventData]:
    texts = members.texts("recall_surfaced")
    if len(texts) > MAX_KEPT:
        lost = len(texts) - MAX_KEPT
        findings.note(f"recall_surfaced: the first {lost} texts are not imported.")
    return [
        ("note", {"kind": "recall", "text": findings.shortened("recall_surfaced", text, 4_000)})
        for text in texts[-MAX_KEPT:]
    ]


def _reviews(reviews: Members, findings: Findings) -> list[EventData]:
    """Return the events of the light reviews of waves, then of the thorough review."""
    events: list[EventData] = []
    for name in reviews.names():
        wave = _WAVE.fullmatch(name)
        if wave is not None and reviews.has(name):
            review = reviews.inner(name)
            data = {"action": "light", "wave": int(wave[1]), **_figures(review)}
            events.append(("review", {**data, **given(blockers=review.count("blockers"))}))
            review.ignore_rest()
    if reviews.has("thorough"):
        events += _thorough(reviews.inner("thorough"), findings)
    reviews.ignore_rest()
    return events


def _thorough(review: Members, findings: Findings) -> list[EventData]:
    passed = review.flag("passed")
    blockers = review.count("blockers_remaining")
    figures = _figures(review)
    review.ignore_rest()
    if passed and blockers:
        findings.problem("reviews.thorough has passed, but blockers remain")
    if not passed and blockers is None:  # it is still running
        return [("review", {"action": "begun", **figures})]
    result = {"action": "passed" if passed else "failed", **figures, **given(blockers=blockers)}
    events: list[EventData] = [("review", {"action": "begun"}), ("review", result)]
    taken: list[str] = []
    for title in [] if passed else blocker_titles([], blockers or 0, []):
        task = gate_task(taken, "B", title, "blocker")
        taken.append(task["task"])
        events.append(("task", task))
    return events


def _figures(review: Members) -> dict[str, Any]:
    return given(score=review.amount("score"), issues=review.count("issues"))

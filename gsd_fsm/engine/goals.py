"""Pursue a goal: score it, enter its stages, and review the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.loop.events.goals import STAGES, loosens_shape
from gsd_fsm.core.loop.state import LEAST_SPEC, Loop, open_tasks
from gsd_fsm.documents.journal_text import redact_and_truncate, redact_or_reject
from gsd_fsm.engine.context import Context, Receipt
from gsd_fsm.engine.planned.plan import append_question
from gsd_fsm.engine.protection.protect import commands_of, joining, specs_of
from gsd_fsm.engine.work_specs import kept_checks, masked_checks, shape_specs
from gsd_fsm.evidence.gate_tasks import blocker_titles, gate_task

SEVERITIES = ("BLOCKER", "WARNING", "SUGGESTION")
# What is scored from 0 (open) over 1 (partly clear) to 2 (clear), with the help of each option.
DIMENSIONS = {
    "outcome": "Clarity of the result.",
    "scope": "Clarity of what belongs to the goal and what does not.",
    "constraints": "Clarity of limits and must-nots.",
    "success": "Clarity of how success is checked.",
    "done": "Clarity of when the goal is done.",
}
MOST_POINTS = 2
MOST_FAMILIARITY = 10
# Added to the fit for each of these that is clear. A goal that is partly clear in everything (spec 5)
# is one for a colleague.
_BONUS = {"constraints": 5, "success": 5, "done": 5}
_SHAPES = ((40, "tool"), (30, "tool-review"), (25, "colleague"), (0, "blocked"))


class Finding(NamedTuple):
    """One finding of a review."""

    severity: str
    text: str


class Reviewed(NamedTuple):
    """A recorded review, and the tasks that its blockers became."""

    receipt: Receipt
    tasks: list[str]


class Entered(NamedTuple):
    """A stage that was entered; `notes` about the shape are None if there was none."""

    receipt: Receipt
    notes: list[str] | None


class Score(NamedTuple):
    """The spec score (0 to 10), the fit score (0 to 75), and the shape that follows from it."""

    spec: int
    fit: int
    shape: str


def parse_finding(text: str) -> Finding:
    """Return the finding that `SEVERITY:TEXT` describes."""
    severity, colon, words = text.partition(":")
    severity = severity.strip().upper()
    if not colon or severity not in SEVERITIES or not words.strip():
        raise UsageError(
            f"--finding {text!r} is not SEVERITY:TEXT",
            "Example: --finding 'BLOCKER: tokens never expire'",
        )
    return Finding(severity, redact_or_reject(words, "a finding", 500))


def review(
    context: Context,
    action: str,
    *,
    findings: list[Finding],
    report: str | None = None,
    **figures: float | None,
) -> Reviewed:
    """Record a review; each blocker of a failed one becomes a task, and a light one may ask the user.

    `figures`: score, issues, blockers and wave, as far as they are known.
    """
    known = {name: value for name, value in figures.items() if value is not None}
    if action == "light" and "wave" not in known:
        raise UsageError("a light review needs a wave", "Run: gsd-fsm review light --wave N")
    if action == "begun" and (findings or any(known.values())):
        raise UsageError("a review has no findings when it begins", "Run: gsd-fsm review begun")
    data: dict[str, Any] = {"action": action, **known}
    named = [finding.text for finding in findings if finding.severity == SEVERITIES[0]]
    if findings:
        data["blockers"] = max(data.get("blockers", 0), len(named))
        data["issues"] = max(data.get("issues", 0), len(findings), data["blockers"])
    if report:
        data["report"] = redact_and_truncate(report)
    tasks = []
    with context.writing() as tx:
        loop = tx.loop
        tx.append("review", data)
        for finding in findings:
            tx.append("issue", {"text": finding.text, "severity": finding.severity})
        if action == "failed":
            left = [loop.tasks[name] for name in open_tasks(loop)]
            titles = [task.title for task in left if task.condition == "blocker"]
            for title in blocker_titles(named, data.get("blockers", 0), titles):
                task = gate_task(loop.tasks, "B", title, "blocker")
                tx.append("task", task, by="cli")
                tasks.append(task["task"])
        if action == "light":
            append_question(tx)
    return Reviewed(tx.receipt, tasks)


def enter_stage(context: Context, name: str | None, shape_file: str | None = None) -> Entered:
    """Enter this stage, by default the next one; add what a SHAPE.md says to the goal.

    Raise Refused if an agent adds it at another stage than decompose: the user may have allowed the
    client to enter those without asking, and a shape brings commands.
    """
    if shape_file is not None and name not in (None, "decompose") and context.author.by == "agent":
        raise Refused(
            f"agents can use --shape-file only with 'stage decompose', not with 'stage {name}'",
            "Run: gsd-fsm stage decompose --shape-file FILE",
        )
    shape, notes = _shape(context, shape_file) if shape_file is not None else ({}, [])
    with context.writing() as tx:
        loop = tx.loop
        if shape and loop.kind != "goal":
            raise Refused(
                f"loop {loop.id} ({loop.kind}) is not a goal loop, so it has no shape",
                "Run: gsd-fsm start goal --help",
            )
        tx.append("stage", {"stage": name or _next_stage(loop)})
        if shape:
            own = {name: criterion.check for name, criterion in loop.criteria.items()}
            joins = any(
                "check" in it and own.get(it["name"], "") is None for it in shape["criteria"]
            )
            tx.append("plan", {**shape, **({"joins": True} if joins else {})})
            for data in joining(context, loop, commands_of(loop.kind, specs_of(loop), None, {})):
                tx.append("plan", data, by="cli")
            notes += kept_checks(own, shape["criteria"])
    return Entered(tx.receipt, notes if shape else None)


def _next_stage(loop: Loop) -> str:
    reached = STAGES.index(loop.stage) if loop.stage else -1
    if reached + 1 == len(STAGES):
        raise Refused(f"loop {loop.id} is in its last stage, {loop.stage}", "Run: gsd-fsm next")
    return STAGES[reached + 1]


def _shape(context: Context, name: str) -> tuple[dict[str, Any], list[str]]:
    directory = Path(context.directory)
    if not (directory / name).exists():
        directory = context.project  # as the advice names it, wherever the agent is
    work, notes = shape_specs(directory, name)
    notes += [f"Warning: {text}." for text in masked_checks(work["criteria"])]
    if any("check" in spec for spec in work["criteria"]):
        context.check_shell()  # or refuse what could not be run
    # A plan that was frozen stays the plan.
    return {name: work[name] for name in ("criteria", "must_not") if name in work}, notes


def score(context: Context, points: dict[str, int], familiarity: int = 0) -> Receipt:
    """Record how well the goal is understood; an unclear one goes back to `intent`."""
    found = score_of(points, familiarity)
    data = {
        "spec": {**points, "familiarity": familiarity},
        "spec_score": found.spec,
        "fit_score": found.fit,
        "shape": found.shape,
    }
    with context.writing() as tx:
        loop = tx.loop
        if loop.kind != "goal":
            raise Refused(
                f"cannot score loop {loop.id} ({loop.kind}): only goal loops are scored",
                "Run: gsd-fsm next",
            )
        if loop.rules is not None and loosens_shape(loop, found.shape):
            context.require_human(loop, "loosen the shape of")
        tx.append("score", data)
        if found.spec < LEAST_SPEC and loop.stage != "intent":
            tx.append("stage", {"stage": "intent"}, by="cli")
        append_question(tx)
    return tx.receipt


def score_of(points: dict[str, int], familiarity: int = 0) -> Score:
    """Return the score of a goal with these points for each of the DIMENSIONS."""
    spec = sum(points[name] for name in DIMENSIONS)
    bonus = sum(more for name, more in _BONUS.items() if points[name] == MOST_POINTS)
    fit = spec * 5 + bonus + familiarity
    return Score(spec, fit, next(shape for least, shape in _SHAPES if fit >= least))

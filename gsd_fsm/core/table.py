"""The life of a loop as data: the one table that fold, machine and diagram are made from."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ACTIVE = ("running", "retrying", "fixing", "reviewing")
LIVE = (*ACTIVE, "waiting", "paused")
FINAL = ("completed", "cancelled")
STATUSES = ("idle", *LIVE, *FINAL)

SAME = "same"
BACK = "back"

# trigger, sources, destination, condition. The first row whose condition holds decides; an empty
# condition always holds. BACK is the status from before the wait or the pause.
ROWS = (
    ("start", ("idle",), "running", ""),
    ("iteration", ACTIVE, SAME, ""),
    ("failure", ACTIVE, "retrying", "may_retry"),
    ("failure", ACTIVE, "paused", ""),
    ("task", ("retrying",), "fixing", "recovers_with_gaps"),
    ("task", ("retrying",), "running", "recovers"),
    ("task", ACTIVE, SAME, ""),
    ("gap.found", ACTIVE, "paused", "stops_at_gaps"),
    ("gap.found", ACTIVE, "fixing", ""),
    ("gap.reopened", ACTIVE, "paused", "stops_at_gaps"),
    ("gap.reopened", ACTIVE, "fixing", ""),
    ("gap.closed", ACTIVE, "fixing", "leaves_gaps"),
    ("gap.closed", ACTIVE, "running", ""),
    ("review.begun", ("running", "fixing"), "reviewing", ""),
    ("review.passed", ("reviewing",), "running", ""),
    ("review.failed", ("reviewing",), "fixing", ""),
    ("wait", ACTIVE, "waiting", ""),
    ("answer", ("waiting",), BACK, ""),
    ("resume", ACTIVE, SAME, ""),
    ("resume", ("waiting", "paused"), BACK, ""),
    ("pause", (*ACTIVE, "waiting"), "paused", ""),
    ("complete", ACTIVE, "completed", ""),
    ("cancel", LIVE, "cancelled", ""),
    ("session", LIVE, SAME, ""),
    ("criterion", LIVE, SAME, ""),
    ("verified", LIVE, SAME, ""),
    ("exit", LIVE, SAME, ""),
    ("review.light", LIVE, SAME, ""),
    ("stage", LIVE, SAME, ""),
    ("score", LIVE, SAME, ""),
    ("plan", LIVE, SAME, ""),
    ("mode", LIVE, SAME, ""),
    ("spend", LIVE, SAME, ""),
    ("note", LIVE, SAME, ""),
    ("issue", LIVE, SAME, ""),
    ("stop", LIVE, SAME, ""),
    ("checkpoint", LIVE, SAME, ""),
)

# What a loop may return to, by where it waits.
RETURNS = {"waiting": ACTIVE, "paused": (*ACTIVE, "waiting")}


def flat_rows(rows: Any = ROWS) -> list[tuple[str, str, str, str]]:
    """Every single arrow: (trigger, source, destination, condition), in deciding order."""
    arrows = []
    for trigger, sources, dest, condition in rows:
        for source in sources:
            if dest == BACK:
                for origin in RETURNS[source]:
                    arrows.append((trigger, source, origin, "was_" + origin))
            else:
                arrows.append((trigger, source, source if dest == SAME else dest, condition))
    return arrows


def triggers() -> list[str]:
    return list(dict.fromkeys(row[0] for row in ROWS))


def arrows_of(trigger: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Where a trigger leads: source -> ((condition, destination), …)."""
    arrows: dict[str, tuple[tuple[str, str], ...]] = {}
    for _, source, dest, condition in flat_rows([row for row in ROWS if row[0] == trigger]):
        arrows[source] = (*arrows.get(source, ()), (condition, dest))
    return arrows


def possible(status: str) -> list[str]:
    """The triggers that may happen in this status, in the order of the table."""
    return [trigger for trigger in triggers() if status in arrows_of(trigger)]


# What a person types for a trigger; the others are written by hook and engine alone.
VERBS = {
    "iteration": "iterate",
    "failure": "fail",
    "task": "task",
    "gap.found": "gap found",
    "gap.reopened": "gap reopen",
    "gap.closed": "gap close",
    "review.begun": "review begun",
    "review.passed": "review passed",
    "review.failed": "review failed",
    "wait": "wait",
    "answer": "answer",
    "resume": "resume",
    "pause": "pause",
    "complete": "complete",
    "cancel": "cancel",
    "criterion": "criterion",
    "verified": "verified",
    "exit": "exit-signal",
    "review.light": "review light",
    "stage": "stage",
    "score": "score",
    "mode": "mode",
    "spend": "spend",
    "note": "note",
}


def possible_verbs(status: str) -> list[str]:
    """The commands that make sense in this status."""
    return [VERBS[trigger] for trigger in possible(status) if trigger in VERBS]

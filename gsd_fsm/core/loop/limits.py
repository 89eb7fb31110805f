"""Decide whether a loop has reached one of its limits; each ends in a pause with its own code."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.loop.state import ACTIVE, failed_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from gsd_fsm.core.loop.records import Limits
    from gsd_fsm.core.loop.state import Loop

# The pause codes of the limits below.
LIMIT_CODES = (
    "iterations", "rounds", "stuck", "idle", "repeated", "budget", "minutes", "oscillation",
)  # fmt: skip
REPEATED_LIMIT = 3
# A gap that is closed and reopened this often is not being fixed.
OSCILLATION_LIMIT = 2


class LimitReached:
    """Why no further iteration may begin: the pause code, a sentence, and the command that lifts it."""

    __slots__ = ("code", "reason", "remedy")

    def __init__(self, code: str, reason: str, remedy: str) -> None:
        self.code = code
        self.reason = reason
        self.remedy = remedy


_RESUME = "gsd-fsm --loop %s resume"
# Money and tokens share a pause code: a client reports the one or the other.
BUDGET = ("budget", "tokens")


def active_minutes(loop: Loop, now_ms: int) -> float:
    """Return the minutes the loop was active; a clock that went back changes nothing."""
    total = loop.active_ms
    if loop.active_since is not None:
        total += ms_of(loop.last_event) - ms_of(loop.active_since)
        if loop.status in ACTIVE:
            total += max(0, now_ms - ms_of(loop.last_event))
    return total / 60_000


def has_budget(loop: Loop) -> bool:
    """Return whether this loop needs the client's own figures."""
    return bool(loop.limits.budget_usd or loop.limits.max_tokens)


# What is used up over time: the limit, how much of it is used, a sentence, and what the suggested
# `resume --add-CODE` adds beyond the overshoot.
COUNTED: dict[str, tuple[str, Callable[[Loop, int], float], str, int]] = {
    "iterations": (
        "max_iterations",
        lambda loop, _now: loop.iteration,
        "%d of %d iterations are used",
        10,
    ),
    "rounds": (
        "max_rounds",
        lambda loop, _now: loop.round if loop.kind == "verify" else 0,
        "%d of %d verification rounds are used",
        10,
    ),
    "budget": (
        "budget_usd",
        lambda loop, _now: loop.spent_usd,
        "%.2f of %.2f USD are spent",
        10,
    ),
    "tokens": (
        "max_tokens",
        lambda loop, _now: loop.spent_tokens,
        "%d of %d tokens are used",
        1_000_000,
    ),
    "minutes": ("max_minutes", active_minutes, "%.1f of %g minutes are used", 30),
}


def used_up_limit(
    loop: Loop, limits: Limits, now_ms: int, codes: tuple[str, ...] = tuple(COUNTED)
) -> LimitReached | None:
    """Return the first of these limits that is used up; its remedy raises every used-up one."""
    first = reason = ""
    remedy = _RESUME % loop.id
    for code in codes:
        name, used, sentence, more = COUNTED[code]
        most = getattr(limits, name)
        amount = used(loop, now_ms) if most else 0
        if most and amount >= most:
            remedy += " --add-%s %d" % (code, int(amount - most) + more)
            first, reason = first or code, reason or sentence % (amount, most)
    return LimitReached("budget" if first in BUDGET else first, reason, remedy) if first else None


def repeated_error(loop: Loop) -> LimitReached | None:
    """Return a reached limit if the same error occurred too often where no retry limit applies."""
    if loop.repeated_errors < REPEATED_LIMIT:
        return None
    reason = "the same error occurred %d times" % loop.repeated_errors
    return LimitReached("repeated", reason, _RESUME % loop.id)


def oscillation(loop: Loop) -> LimitReached | None:
    """Return a reached limit if an open gap was closed and reopened too often."""
    for gap_id in loop.returned_gaps:
        gap = loop.gaps[gap_id]
        if gap.is_open and gap.reopened_since_resume >= OSCILLATION_LIMIT:
            times = gap.reopened_since_resume
            reason = "gap %s was closed and reopened %d times" % (gap_id, times)
            return LimitReached("oscillation", reason, _RESUME % loop.id)
    return None


def used_up_retries(loop: Loop, limits: Limits) -> LimitReached | None:
    """Return a reached limit if a failed task has used up these retries."""
    most = limits.max_retries
    for task_id in failed_tasks(loop):
        task = loop.tasks[task_id]
        if task.retries >= most:
            return LimitReached(
                "retries",
                "task %s has used %d of %d retries" % (task_id, task.retries, most),
                _RESUME % loop.id + " --add-retries 1",
            )
    return None


def reached_limit(
    loop: Loop, now_ms: int, activity: bool = False, cap: int = 0
) -> LimitReached | None:
    """Return the first limit that forbids another iteration now, or None.

    `activity`: something was seen since the last block. `cap`: idle blocks after which the client
    would end the turn itself.
    """
    used_up = used_up_limit(loop, loop.limits, now_ms)
    if used_up is not None and used_up.code in ("iterations", "rounds"):
        return used_up
    return (
        oscillation(loop)
        or _stuck(loop)
        or _idle(loop, activity, cap)
        or repeated_error(loop)
        or used_up
    )


def _stuck(loop: Loop) -> LimitReached | None:
    most = loop.limits.stuck_limit
    if not most or loop.stuck < most:
        return None
    reason = "%d iterations changed no criterion, gap, task or evidence" % loop.stuck
    return LimitReached("stuck", reason, _RESUME % loop.id)


def _idle(loop: Loop, activity: bool, cap: int) -> LimitReached | None:
    most = loop.limits.idle_limit
    capped = bool(cap) and not 0 < most <= cap
    most = cap if capped else most
    if not most or activity or loop.idle < most:
        return None
    reason = "no activity in %d consecutive blocks" % loop.idle
    if capped:
        reason += "; the client would end the turn itself after %d" % cap
    return LimitReached("idle", reason, _RESUME % loop.id)

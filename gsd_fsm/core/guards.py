"""The limits of a loop: each is counted by the fold alone and ends in a pause with its own code."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.loop import REPEATED_LIMIT, has_moved
from gsd_fsm.core.table import ACTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop


class Spent:
    """A limit that is reached: its code, the sentence for the user, and the command to go on."""

    __slots__ = ("code", "reason", "remedy")

    def __init__(self, code: str, reason: str, remedy: str) -> None:
        self.code = code
        self.reason = reason
        self.remedy = remedy


_RESUME = "gsd-fsm --loop %s resume"


def active_minutes(loop: Loop, now_ms: int) -> float:
    """Minutes the loop was active; a clock that went back adds nothing and takes nothing."""
    total = loop.active_ms
    if loop.active_since is not None:
        total += ms_of(loop.last_event) - ms_of(loop.active_since)
        if loop.status in ACTIVE:
            total += max(0, now_ms - ms_of(loop.last_event))
    return float(total) / 60_000


def spent_limit(loop: Loop, limits: dict[str, Any], now_ms: int) -> Spent | None:
    """The first of these limits that only more of it can lift."""
    resume = _RESUME % loop.id
    most = limits["max_iterations"]
    if most and loop.iteration >= most:
        return Spent(
            "iterations",
            "%d of %d iterations are used" % (loop.iteration, most),
            resume + " --add-iterations 10",
        )
    most = limits["max_rounds"]
    if most and loop.kind == "verify" and loop.round >= most:
        return Spent(
            "rounds",
            "%d of %d verification rounds are used" % (loop.round, most),
            resume + " --add-rounds 10",
        )
    budget = limits.get("budget_usd")
    if budget and loop.spent_usd >= budget:
        return Spent(
            "budget",
            "%.2f of %.2f USD are spent" % (loop.spent_usd, budget),
            resume + " --add-budget 10",
        )
    minutes = limits.get("max_minutes")
    if minutes and active_minutes(loop, now_ms) >= minutes:
        return Spent(
            "minutes",
            "%.1f of %g minutes are used" % (active_minutes(loop, now_ms), minutes),
            resume + " --add-minutes 30",
        )
    return None


def spent_retries(loop: Loop, limits: dict[str, Any]) -> Spent | None:
    """The failed task that has used up these retries."""
    most = limits["max_retries"]
    for task_id, task in loop.tasks.items():
        if task["status"] == "failed" and task["retries"] >= most:
            return Spent(
                "retries",
                "task %s has used %d of %d retries" % (task_id, task["retries"], most),
                _RESUME % loop.id + " --add-retries 1",
            )
    return None


def guard(loop: Loop, now_ms: int, activity: bool = False) -> Spent | None:
    """What forbids another iteration now. `activity`: something was seen since the last block."""
    spent = spent_limit(loop, loop.limits, now_ms)
    if spent is not None and spent.code in ("iterations", "rounds"):
        return spent
    resume = _RESUME % loop.id
    most = loop.limits["stuck_limit"]
    # Progress that is already folded but not yet seen by an iteration counts at once.
    if most and loop.stuck >= most and not has_moved(loop):
        reason = "%d iterations changed no criterion, gap, task or evidence" % loop.stuck
        return Spent("stuck", reason, resume)
    most = loop.limits["idle_limit"]
    if most and not activity and loop.idle >= most:
        reason = "%d blocks in a row saw no activity" % loop.idle
        return Spent("idle", reason, resume)
    if loop.repeats >= REPEATED_LIMIT:
        return Spent("repeated", "the same error came %d times" % loop.repeats, resume)
    return spent

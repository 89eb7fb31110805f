"""The limits of a loop: each is counted by the fold alone and ends in a pause with its own code."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.loop import OSCILLATION_LIMIT, REPEATED_LIMIT, has_moved
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
# What a resume adds to what was overspent.
_MORE = {"iterations": 10, "rounds": 10, "budget": 10, "tokens": 1_000_000, "minutes": 30}
# Money and tokens are one budget: a client tells the one or the other.
BUDGET = ("budget", "tokens")
_SPENT = {
    "iterations": "%d of %d iterations are used",
    "rounds": "%d of %d verification rounds are used",
    "budget": "%.2f of %.2f USD are spent",
    "tokens": "%d of %d tokens are used",
    "minutes": "%.1f of %g minutes are used",
}


def active_minutes(loop: Loop, now_ms: int) -> float:
    """Minutes the loop was active; a clock that went back adds nothing and takes nothing."""
    total = loop.active_ms
    if loop.active_since is not None:
        total += ms_of(loop.last_event) - ms_of(loop.active_since)
        if loop.status in ACTIVE:
            total += max(0, now_ms - ms_of(loop.last_event))
    return float(total) / 60_000


def has_budget(loop: Loop) -> bool:
    """Whether the client's own figures matter to this loop."""
    return bool(loop.limits.get("budget_usd") or loop.limits.get("max_tokens"))


def spent_limit(
    loop: Loop, limits: dict[str, Any], now_ms: int, codes: tuple[str, ...] = tuple(_MORE)
) -> Spent | None:
    """The first of these limits that only more of it can lift; its remedy lifts all that are spent."""
    used = {
        "iterations": (loop.iteration, limits["max_iterations"]),
        "rounds": (loop.round if loop.kind == "verify" else 0, limits["max_rounds"]),
        "budget": (loop.spent_usd, limits.get("budget_usd")),
        "tokens": (loop.spent_tokens, limits.get("max_tokens")),
    }
    if limits.get("max_minutes"):
        used["minutes"] = (active_minutes(loop, now_ms), limits["max_minutes"])
    spent = [code for code, (amount, most) in used.items() if most and amount >= most]
    spent = [code for code in spent if code in codes]
    if not spent:
        return None
    remedy = _RESUME % loop.id
    for code in spent:
        amount, most = used[code]
        remedy += " --add-%s %d" % (code, int(amount - most) + _MORE[code])
    code = "budget" if spent[0] in BUDGET else spent[0]
    return Spent(code, _SPENT[spent[0]] % used[spent[0]], remedy)


def spent_patience(loop: Loop) -> Spent | None:
    """Whether the same error came too often where no retry limit applies."""
    if loop.repeats < REPEATED_LIMIT:
        return None
    return Spent("repeated", "the same error came %d times" % loop.repeats, _RESUME % loop.id)


def oscillating(loop: Loop) -> Spent | None:
    """The open gap that was closed and came back too often."""
    for gap_id, gap in loop.gaps.items():
        if gap["status"] == "open" and gap["returns"] >= OSCILLATION_LIMIT:
            reason = "gap %s was closed and reopened %d times" % (gap_id, gap["returns"])
            return Spent("oscillation", reason, _RESUME % loop.id)
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


def guard(loop: Loop, now_ms: int, activity: bool = False, cap: int = 0) -> Spent | None:
    """What forbids another iteration now.

    `activity`: something was seen since the last block. `cap`: idle blocks after which the client
    would end the turn without a word.
    """
    spent = spent_limit(loop, loop.limits, now_ms)
    if spent is not None and spent.code in ("iterations", "rounds"):
        return spent
    resume = _RESUME % loop.id
    wobbling = oscillating(loop)
    if wobbling is not None:
        return wobbling
    most = loop.limits["stuck_limit"]
    # Progress that is already folded but not yet seen by an iteration counts at once.
    if most and loop.still >= most and not has_moved(loop):
        reason = "%d iterations changed no criterion, gap, task or evidence" % loop.still
        return Spent("stuck", reason, resume)
    most = loop.limits["idle_limit"]
    capped = bool(cap) and not 0 < most <= cap
    most = cap if capped else most
    if most and not activity and loop.idle >= most:
        reason = "%d blocks in a row saw no activity" % loop.idle
        if capped:
            reason += "; the client would end the turn itself after %d" % cap
        return Spent("idle", reason, resume)
    return spent_patience(loop) or spent

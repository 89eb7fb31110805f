"""Decide whether a loop has reached one of its limits, and bound what a loop may hold.

A reached limit ends in a pause with its own code. The bounds let the hook decide every stop in time;
they are rules: checked when an event is appended, never when a journal is read.
"""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.spending import missing_source, used_up_words
from gsd_fsm.core.loop.state import ACTIVE, failed_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event
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


class Counted:
    """A limit on what is used up over time: its field, how much is used, and how people read that.

    `words`: "" for the budget, which has words of its own. `step`: what the suggested `resume --add-CODE` adds beyond the overshoot; 0: half of the limit.
    """

    __slots__ = ("limit", "step", "used", "words")

    def __init__(
        self, limit: str, used: Callable[[Loop, int], float], words: str, step: int
    ) -> None:
        self.limit = limit
        self.used = used
        self.words = words
        self.step = step

    def more(self, amount: float, most: float) -> float:
        """Return what to add so that the loop can continue, rounded up."""
        if self.step:
            return int(amount - most) + self.step
        parts = (10_000 if most < 1 else 100) if self.limit == "budget_usd" else 1
        wanted = round((amount - most + most / 2) * parts, 3)
        return (int(wanted) + (wanted > int(wanted))) / parts


COUNTED: dict[str, Counted] = {
    "iterations": Counted(
        "max_iterations", lambda loop, _now: loop.iteration, "%d of %d iterations are used", 10
    ),
    "rounds": Counted(
        "max_rounds",
        lambda loop, _now: loop.round if loop.kind == "verify" else 0,
        "%d of %d verification rounds are used",
        10,
    ),
    "budget": Counted("budget_usd", lambda loop, _now: loop.spent_usd, "", 0),
    "tokens": Counted("max_tokens", lambda loop, _now: loop.spent_tokens, "", 0),
    "minutes": Counted("max_minutes", active_minutes, "%.1f of %g minutes are used", 30),
}


def used_up_limit(
    loop: Loop, limits: Limits, now_ms: int, codes: tuple[str, ...] = tuple(COUNTED)
) -> LimitReached | None:
    """Return the first of these limits that is used up; its remedy raises every used-up one."""
    first = reason = ""
    added = []
    for code in codes:
        row = COUNTED[code]
        most = getattr(limits, row.limit)
        amount = row.used(loop, now_ms) if most else 0
        if most and amount >= most:
            added.append("--add-%s %.10g" % (code, row.more(amount, most)))
            words = row.words % (amount, most) if row.words else used_up_words(loop, limits)
            first, reason = first or code, reason or words
    if not first:
        return None
    remedy = command_line("resume", loop.id, " ".join(added))
    return LimitReached("budget" if first in BUDGET else first, reason, remedy)


def unmetered(loop: Loop) -> LimitReached | None:
    """Return a reached limit if nothing reports what the limit of this loop is about."""
    limit = missing_source(loop)
    if not limit:
        return None
    reason = (
        "%s cannot be enforced: neither a status line nor a transcript of this session reports "
        "what it uses" % limit
    )
    return LimitReached("budget", reason, command_line("resume", loop.id))


def repeated_error(loop: Loop) -> LimitReached | None:
    """Return a reached limit if the same error occurred too often where no retry limit applies."""
    if loop.repeated_errors < REPEATED_LIMIT:
        return None
    reason = "the same error occurred %d times" % loop.repeated_errors
    return LimitReached("repeated", reason, command_line("resume", loop.id))


def oscillation(loop: Loop) -> LimitReached | None:
    """Return a reached limit if an open gap was closed and reopened too often."""
    for gap_id in loop.returned_gaps:
        gap = loop.gaps[gap_id]
        if gap.is_open and gap.reopened_since_resume >= OSCILLATION_LIMIT:
            times = gap.reopened_since_resume
            reason = "gap %s was closed and reopened %d times" % (gap_id, times)
            return LimitReached("oscillation", reason, command_line("resume", loop.id))
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
                command_line("resume", loop.id, "--add-retries 1"),
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
    return LimitReached("stuck", reason, command_line("resume", loop.id))


def _idle(loop: Loop, activity: bool, cap: int) -> LimitReached | None:
    most = loop.limits.idle_limit
    capped = bool(cap) and not 0 < most <= cap
    most = cap if capped else most
    if not most or activity or loop.idle < most:
        return None
    reason = "no activity in %d consecutive blocks" % loop.idle
    if capped:
        reason += "; the client would end the turn itself after %d" % cap
    return LimitReached("idle", reason, command_line("resume", loop.id))


# what a loop may hold

MOST_TASKS = 25_000
MOST_DEPENDENCIES = 1_000  # of one task
MOST_DEPENDENCIES_IN_ALL = 100_000
MOST_CRITERIA = 1_000
MOST_MUST_NOTS = 1_000
MOST_GAPS = 10_000
MOST_NOTES = 1_000  # not delivered yet
MOST_REVIEWS = 25_000
MOST_CHECKPOINTS = 10_000
MOST_LIVE_LOOPS = 1_000

_SPLIT = "Start another loop for the rest."


def require_room(loop: Loop, event: Event[Any], loops: Loops) -> None:
    """Refuse an event that adds more than a loop, or the journal, may hold."""
    kind, data = event["type"], event["data"]
    if kind == "gap" and data["gap"] not in loop.gaps:
        hint = "Fix the recorded gaps, then verify in another loop."
        _require(loop, "gaps", len(loop.gaps) + 1, MOST_GAPS, hint)
    elif kind == "note" and data.get("kind") != "recall":
        hint = "Wait until the agent has read some of them: each block delivers the oldest."
        _require(loop, "undelivered notes", len(loop.notes) + 1, MOST_NOTES, hint)
    elif kind == "review" and "wave_%d" % data.get("wave", 0) not in loop.reviews:
        _require(loop, "reviews", len(loop.reviews) + 1, MOST_REVIEWS)
    elif kind == "checkpoint" and data["name"] not in loop.checkpoints:
        _require(loop, "checkpoints", len(loop.checkpoints) + 1, MOST_CHECKPOINTS)
    elif kind in ("task", "failure") and "task" in data:
        _require_room_for_task(loop, data)
    elif kind == "start" and len(loops.live()) >= MOST_LIVE_LOOPS:
        raise Refused(
            "the journal already has {:,} live loops".format(MOST_LIVE_LOOPS),
            "Cancel those that are no longer needed: %s" % command_line("cancel", "ID"),
        )
    elif kind in ("start", "plan"):
        _require_room_for_plan(loop, data)


def _require(loop: Loop, what: str, count: int, most: int, hint: str = _SPLIT) -> None:
    if count > most:
        raise Refused("loop {} may have at most {:,} {}".format(loop.id, most, what), hint)


def _require_room_for_task(loop: Loop, data: Any) -> None:
    task = loop.tasks.get(data["task"])
    _require(loop, "tasks", len(loop.tasks) + (task is None), MOST_TASKS)
    if "depends" in data:
        known = task.depends if task is not None else {}
        count = len(known.keys() | data["depends"])
        _require_dependencies(loop, data["task"], count)
        total = loop.dependency_count + count - len(known)
        _require(loop, "dependencies in total", total, MOST_DEPENDENCIES_IN_ALL)


def _require_room_for_plan(loop: Loop, data: Any) -> None:
    new_tasks, dependencies = 0, loop.dependency_count
    for spec in data.get("tasks", ()):
        task = loop.tasks.get(spec["id"])
        new_tasks += task is None
        if task is None or task.status == "pending":  # others keep what they have
            count = len(spec.get("depends", ()))
            dependencies += count - (len(task.depends) if task is not None else 0)
            _require_dependencies(loop, spec["id"], count)
    _require(loop, "tasks", len(loop.tasks) + new_tasks, MOST_TASKS)
    _require(loop, "dependencies in total", dependencies, MOST_DEPENDENCIES_IN_ALL)
    names = {spec["name"] for spec in data.get("criteria", ())}
    _require(loop, "criteria", len(names.union(loop.criteria)), MOST_CRITERIA)
    must_nots = len(loop.must_not.keys() | data.get("must_not", ()))
    _require(loop, "must-nots", must_nots, MOST_MUST_NOTS)


def _require_dependencies(loop: Loop, task_id: str, count: int) -> None:
    what = "dependencies per task; task %s has more" % task_id
    _require(loop, what, count, MOST_DEPENDENCIES, "Remove some of its dependencies.")

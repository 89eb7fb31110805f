"""The state of one loop, as the fold leaves it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_HISTORY = 200
MAX_ERRORS = 3
REPEATED_LIMIT = 3
OSCILLATION_LIMIT = 2
# A goal with a lower spec score is not understood yet.
LEAST_SPEC = 5
# The name that a user has given to the list of tasks of their client.
TASK_LIST = "CLAUDE_CODE_TASK_LIST_ID"

# Every field with its first value. Lists and dicts are copied for each loop.
FIELDS: tuple[tuple[str, Any], ...] = (
    ("id", ""), ("kind", ""), ("status", "idle"), ("mode", "interactive"), ("goal", None),
    ("phase", None), ("plan", None), ("must_not", []), ("auto_loop", True), ("limits", {}),
    ("started", None), ("begun", None), ("last_event", None), ("last_seq", 0),
    # where it returns to, and why it stands still
    ("before_wait", "running"), ("before_pause", "running"), ("pause_code", None),
    ("pause_reason", None), ("wait_for", None), ("question", None), ("until", None),
    ("answer", None), ("asked", None), ("decided", []),
    # who it belongs to; whether a human spoke since the last wait, pause or iteration
    ("owner", None), ("owned", None), ("client", None), ("pid", None), ("prompted", True),
    # other sessions in which one did
    ("visitors", []),
    # what the hook has seen and said; a block is unconfirmed until the next signal of its session
    ("transcript", None), ("commit", None), ("background", []), ("said", None), ("heard", None),
    ("told_notes", []), ("told_answer", None),
    ("unconfirmed", 0),
    # counting
    ("iteration", 0), ("last_iteration", None), ("round", 0), ("stuck", 0), ("idle", 0),
    # iterations without progress since something was done for the first time, and what that was
    ("still", 0), ("milestones", []), ("arrived", False),
    ("progress", ""), ("moved", False), ("advanced", False), ("last_unmet", None), ("active_ms", 0),
    ("active_since", None), ("spent_usd", 0), ("spent_tokens", 0),
    # work
    ("tasks", {}), ("failed", 0), ("accepts_tasks", True), ("gaps", {}), ("criteria", {}), ("exit_signal", False),
    ("verified", False), ("errors", []), ("last_error", None), ("repeats", 0), ("transient", 0),
    # goal loops
    ("stage", None), ("spec", {}), ("spec_score", None), ("fit_score", None), ("shape", None),
    ("scored", 0), ("spoken", False), ("reviews", {}), ("outdated", False), ("review_needed", False),
    ("gated", False),
    # failed verifications since all was well, blocks that asked for another approach because of them
    ("setbacks", 0), ("counsels", 0), ("counsel", None),
    # what it was taken over from, what shows it, what the client's own figures and lists have told
    ("carried", {}), ("views", []), ("viewed", {}), ("task_list", None), ("session_only", False), ("meters", {}), ("counted", {}),
    # what replies cost by themselves, and sessions whose next total adds nothing
    ("priced", {}), ("anew", []),
    # talk
    ("notes", []), ("recalled", []), ("dismissed", []), ("issues", []), ("checkpoints", {}), ("last_stop", None),
    ("history", []),
)  # fmt: skip


class Loop:
    """Plain mutable facts; only the fold changes them."""

    __slots__ = tuple(name for name, _ in FIELDS)

    def __init__(self, **known: Any) -> None:
        for name, first in FIELDS:
            if name in known:
                setattr(self, name, known[name])
            else:
                setattr(self, name, first.copy() if isinstance(first, (dict, list)) else first)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


def loop_to_dict(loop: Loop) -> dict[str, Any]:
    return {name: getattr(loop, name) for name, _ in FIELDS}


def is_planned(loop: Loop) -> bool:
    """Whether the tasks of this loop come from a plan that the engine has read."""
    return bool(loop.plan) and "tasks" in loop.plan


def is_unclear(loop: Loop) -> bool:
    """Whether the goal was scored, and found wanting."""
    low = loop.spec_score is not None and loop.spec_score < LEAST_SPEC
    return bool(loop.shape and (low or loop.shape == "blocked"))


def unmet(loop: Loop) -> list[str]:
    """The criteria that are not met, in their order."""
    return [name for name, criterion in loop.criteria.items() if not criterion["met"]]


def open_gaps(loop: Loop) -> list[str]:
    return [gap_id for gap_id, gap in loop.gaps.items() if gap["status"] == "open"]


def open_tasks(loop: Loop) -> list[str]:
    """The tasks that are neither complete nor skipped, in their order."""
    return [
        task_id
        for task_id, task in loop.tasks.items()
        if task["status"] not in ("complete", "skipped")
    ]


def work_of_its_own(task: dict[str, Any]) -> bool:
    """Whether a task is more than a condition of the gate in other words."""
    return task["condition"] in (None, "blocker")


def open_work(loop: Loop) -> list[str]:
    """The open tasks at which somebody can work."""
    return [name for name in open_tasks(loop) if work_of_its_own(loop.tasks[name])]


def mirrored_list(loop: Loop, named: str) -> str:
    """The client's list of tasks that this loop mirrors, "" for none.

    `named`: the name that the user has given to the list of their client.
    """
    if loop.task_list:
        return "" if loop.task_list == "none" else str(loop.task_list)
    return "auto" if named and loop.kind == "goal" else ""


def is_in_reach(loop: Loop, task: dict[str, Any]) -> bool:
    """Whether a task is settled in the client's list: one of another session's own list is not."""
    return bool(task["mirrored"] and (task["named"] or task["list"] in (None, loop.owner)))


def failed_tasks(loop: Loop) -> list[str]:
    return [task_id for task_id, task in loop.tasks.items() if task["status"] == "failed"]


def current_wave(loop: Loop) -> int | None:
    """The first wave with an open task, or the last wave of all; None without waves."""
    waves = [task["wave"] for task in loop.tasks.values() if task["wave"]]
    unfinished = [loop.tasks[task_id]["wave"] for task_id in open_tasks(loop)]
    return min([wave for wave in unfinished if wave], default=max(waves, default=None))


def reach(loop: Loop, milestone: str) -> None:
    """Something was done for the first time: a loop that does so does not stand still."""
    if milestone not in loop.milestones:
        loop.milestones = [*loop.milestones, milestone]
        loop.arrived = True


def progress_of(loop: Loop) -> str:
    """What a stuck loop does not change, besides finishing tasks: unmet criteria, gaps, evidence."""
    evidence = [
        "%s=%s:%s" % (name, proof["exit_code"], proof.get("likeness"))
        for name, criterion in loop.criteria.items()
        for proof in (criterion["evidence"],)
        if proof
    ]
    return "\n".join("\t".join(part) for part in (unmet(loop), open_gaps(loop), evidence))


def has_moved(loop: Loop) -> bool:
    """Whether anything has changed since the last iteration that a stuck loop would not change."""
    advanced = loop.advanced or loop.arrived
    return bool(advanced or (loop.moved and progress_of(loop) != loop.progress))

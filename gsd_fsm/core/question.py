"""The decisions that a loop in interactive mode leaves to a human."""

from __future__ import annotations

from gsd_fsm.core.loop import current_wave, failed_tasks, open_gaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop import Loop


def pending_question(loop: Loop) -> tuple[str, str] | None:
    """What must be asked now, as a key and in words; None when all of it is decided."""
    if loop.mode != "interactive":
        return None
    for ask in (_checkpoint, _retry, _fix, _wave):
        asked = ask(loop)
        if asked is not None and asked[0] not in loop.decided:
            return asked
    return None


def _checkpoint(loop: Loop) -> tuple[str, str] | None:
    for task_id, task in loop.tasks.items():
        if task["status"] == "checkpoint":
            question = task["question"] or "go on?"
            return "checkpoint:%s" % task_id, "Task %s needs a decision: %s" % (task_id, question)
    return None


def _retry(loop: Loop) -> tuple[str, str] | None:
    if loop.status != "retrying" or not loop.errors:
        return None
    about = "retry:%d" % loop.errors[-1]["seq"]
    for task_id in failed_tasks(loop)[:1]:
        task = loop.tasks[task_id]
        return about, "Task %s failed. Retry? (%d/%d attempts used) [Y/n]" % (
            task_id,
            task["retries"] - 1,
            loop.limits["max_retries"],
        )
    return about, "The loop failed. Try again? [Y/n]"


def _fix(loop: Loop) -> tuple[str, str] | None:
    found = open_gaps(loop)
    if loop.status != "fixing" or not found:
        return None
    # A gap that is closed asks nothing new; one that is found or opened again does.
    times = len(loop.gaps) + sum(gap["reopened"] for gap in loop.gaps.values())
    most = loop.limits["max_rounds"]
    return "gaps:%d" % times, "Verification found %d %s. Attempt automatic fix? (%d%s) [Y/n]" % (
        len(found),
        "gap" if len(found) == 1 else "gaps",
        loop.round,
        "/%d" % most if most else "",
    )


def _wave(loop: Loop) -> tuple[str, str] | None:
    wave = current_wave(loop)
    if not wave:
        return None
    tasks = loop.tasks.values()
    before = [task for task in tasks if task["wave"] and task["wave"] < wave]
    begun = [task for task in tasks if task["wave"] == wave and task["status"] != "pending"]
    if not before or begun:
        return None
    return "wave:%d" % wave, "Wave %d is complete. Go on with wave %d? [Y/n]" % (
        max(task["wave"] for task in before),
        wave,
    )

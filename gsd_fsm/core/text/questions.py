"""The decisions that a loop leaves to a human.

Checkpoints, unclear goals and what the shape of a goal asks for: always. The others in interactive
mode.
"""

from __future__ import annotations

from gsd_fsm.core.loop.events.goals import clarify_key
from gsd_fsm.core.loop.state import failed_tasks, open_gaps, open_work
from gsd_fsm.core.loop.waves import current_wave, loop_retry_key, retry_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.loop.records import Review
    from gsd_fsm.core.loop.state import Loop

_FIGURES = ("score", "issues", "blockers")


def pending_question(loop: Loop) -> tuple[str, str] | None:
    """What must be asked now, as a key and in words; None when all of it is decided."""
    asks: tuple[Any, ...] = (_checkpoint, _clarify, _step)
    if loop.mode == "interactive":
        asks += (_start, _retry, _fix, _wave)
    elif loop.shape == "tool-review":
        asks += (_wave,)
    for ask in asks:
        for key, question in ask(loop):
            if key not in loop.answered:
                return key, question
    return None


def may_decline(key: str | None) -> bool:
    """Whether a no to this question stops the loop; to others it is one answer of several."""
    return (key or "").partition(":")[0] in ("start", "retry", "gaps", "wave", "step", "turn")


def _checkpoint(loop: Loop) -> Iterator[tuple[str, str]]:
    for task_id, task in loop.tasks.items():
        if task.status == "checkpoint":
            question = task.question or "go on?"
            key = "checkpoint:%s:%d" % (task_id, task.asked)
            yield key, "Task %s needs a decision: %s" % (task_id, question)


def _clarify(loop: Loop) -> Iterator[tuple[str, str]]:
    if loop.is_unclear:
        open_ = [name for name, points in loop.spec.items() if not points and name != "familiarity"]
        named = " (open: %s)" % ", ".join(open_) if open_ else ""
        yield (
            clarify_key(loop),
            "The goal is not clear enough to begin: spec %s/10, fit %s%s. What should be achieved?"
            % (loop.spec_score, loop.fit_score, named),
        )


def _step(loop: Loop) -> Iterator[tuple[str, str]]:
    """A colleague talks after each step; where there are none, after each iteration."""
    if loop.shape != "colleague":
        return
    steps = [task for task in loop.tasks.values() if task.is_work]
    done = len(steps) - len(open_work(loop))
    if done:
        yield "step:%d" % done, "%d of %d steps are done. Go on?" % (done, len(steps))
    elif not steps and loop.iteration and loop.stage not in ("intent", "shape", "decompose"):
        yield "turn:%d" % loop.iteration, "Iteration %d is done. Go on?" % loop.iteration


def _start(loop: Loop) -> Iterator[tuple[str, str]]:
    if loop.kind != "execute" or not loop.is_planned:
        return
    if all(task.status == "pending" for task in loop.tasks.values()):
        phase = "Phase %s: " % loop.phase if loop.phase is not None else ""
        yield (
            "start",
            "Ready to execute %s%s (%d tasks in %d waves). Proceed?"
            % (phase, loop.plan.title, loop.plan.task_count or 0, loop.plan.wave_count),
        )


def _retry(loop: Loop) -> Iterator[tuple[str, str]]:
    # A planned loop does not retry unasked, also where a pause or a gap came in between.
    if not loop.errors or (loop.status != "retrying" and not loop.is_planned):
        return
    # A fix whose gap is closed is not owed any more.
    failed = [
        name for name in failed_tasks(loop) if name not in loop.gaps or loop.gaps[name].is_open
    ]
    for task_id in failed:
        task = loop.tasks[task_id]
        yield (
            retry_key(task),
            "Task %s failed. Retry? (%d/%d attempts used) [Y/n]"
            % (task_id, max(0, task.retries - 1), loop.limits.max_retries),
        )
    if not failed and loop.status == "retrying":
        yield loop_retry_key(loop), "The loop failed. Try again? [Y/n]"


def _fix(loop: Loop) -> Iterator[tuple[str, str]]:
    found = open_gaps(loop)
    if loop.status != "fixing" or not found:
        return
    # A gap that is closed asks nothing new; one that is found or opened again does.
    times = len(loop.gaps) + sum(gap.reopened for gap in loop.gaps.values())
    most = loop.limits.max_rounds
    yield (
        "gaps:%d" % times,
        "Verification found %d %s. Attempt automatic fix? (%d%s) [Y/n]"
        % (
            len(found),
            "gap" if len(found) == 1 else "gaps",
            loop.round,
            "/%d" % most if most else "",
        ),
    )


def _wave(loop: Loop) -> Iterator[tuple[str, str]]:
    wave = current_wave(loop)
    if loop.shape == "tool-review":
        work = [task for task in loop.tasks.values() if task.condition is None]
        if work and all(task.is_done for task in work):
            yield "wave:end:%d" % len(work), "Every wave is complete. Go on to the end?"
    if not wave:
        return
    tasks = loop.tasks.values()
    before = [task for task in tasks if task.wave and task.wave < wave]
    begun = [task for task in tasks if task.wave == wave and task.status != "pending"]
    if before and not begun:
        last = max(task.wave or 0 for task in before)
        review = loop.reviews.get("wave_%d" % last)
        found = " (review: %s)" % review_words(review) if review else ""
        yield "wave:%d" % wave, "Wave %d complete%s. Continue to Wave %d?" % (last, found, wave)


def review_words(review: Review) -> str:
    """Return the figures of a review in a few words."""
    words = ["%s %s" % (name, value) for name, value in review.facts().items() if name in _FIGURES]
    if review.passed is not None:
        left = review.blockers_remaining
        verdict = "passed" if review.passed else "not passed"
        words.insert(0, verdict + (", blockers %d" % left if left else ""))
    return ", ".join(words) or "done"

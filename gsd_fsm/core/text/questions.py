"""Find the decisions that a loop leaves to the user.

Checkpoints, unclear goals and what the shape of a goal requires are asked in every mode, the others
in interactive mode.
"""

from __future__ import annotations

from gsd_fsm.core.loop.events.goals import clarify_key
from gsd_fsm.core.loop.state import failed_tasks, open_gaps, open_work
from gsd_fsm.core.loop.waves import current_wave, loop_retry_key, retry_key
from gsd_fsm.core.text.next_step import is_transient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.loop.state import Loop


def pending_question(loop: Loop) -> tuple[str, str] | None:
    """Return the key and the words of the question to ask now, None if nothing is undecided."""
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
    """Return whether "no" pauses the loop; to other questions it is an answer like any other."""
    return (key or "").partition(":")[0] in ("start", "retry", "gaps", "wave", "step", "turn")


def _checkpoint(loop: Loop) -> Iterator[tuple[str, str]]:
    for task_id, task in loop.tasks.items():
        if task.status == "checkpoint":
            question = task.question or "continue?"
            key = "checkpoint:%s:%d" % (task_id, task.asked)
            yield key, "Task %s needs a decision: %s" % (task_id, question)


def _clarify(loop: Loop) -> Iterator[tuple[str, str]]:
    if loop.is_unclear:
        unclear = [aspect for aspect, points in loop.spec.items() if not points]
        named = ", ".join([aspect for aspect in unclear if aspect != "familiarity"])
        words = (
            "The goal is not clear enough to start: spec %s/10, fit %s%s. What should be achieved?"
        )
        about = " (unclear: %s)" % named if named else ""
        yield clarify_key(loop), words % (loop.spec_score, loop.fit_score, about)


def _step(loop: Loop) -> Iterator[tuple[str, str]]:
    """A goal of shape colleague asks after each step, without steps after each iteration."""
    if loop.shape != "colleague":
        return
    steps = [task for task in loop.tasks.values() if task.is_work]
    done = len(steps) - len(open_work(loop))
    if done:
        yield "step:%d" % done, "%d of %d steps are done. Continue?" % (done, len(steps))
    elif not steps and loop.iteration and loop.stage not in ("intent", "shape", "decompose"):
        yield "turn:%d" % loop.iteration, "Iteration %d is done. Continue?" % loop.iteration


def _start(loop: Loop) -> Iterator[tuple[str, str]]:
    if loop.kind != "execute" or not loop.is_planned:
        return
    if all(task.status == "pending" for task in loop.tasks.values()):
        phase = "Phase %s: " % loop.phase if loop.phase is not None else ""
        size = (
            plural(loop.plan.task_count or 0, "task"),
            plural(loop.plan.wave_count, "wave"),
        )
        words = "Ready to execute %s%s (%s in %s). Proceed?"
        yield "start", words % (phase, loop.plan.title, *size)


def _retry(loop: Loop) -> Iterator[tuple[str, str]]:
    # A planned loop asks before every retry, also after a pause or a gap.
    if not loop.errors or (loop.status != "retrying" and not loop.is_planned):
        return
    # The fix of a closed gap is not needed any more.
    failed = [
        name for name in failed_tasks(loop) if name not in loop.gaps or loop.gaps[name].is_open
    ]
    for task_id in failed:
        task = loop.tasks[task_id]
        used = (0, 1) if is_transient(task) else (max(0, task.retries - 1), loop.limits.max_retries)
        words = "Task %s failed. Retry? (%d/%d attempts used) [Y/n]"
        yield retry_key(task), words % (task_id, *used)
    if not failed and loop.status == "retrying":
        yield loop_retry_key(loop), "The loop failed. Retry? [Y/n]"


def _fix(loop: Loop) -> Iterator[tuple[str, str]]:
    found = open_gaps(loop)
    if loop.status != "fixing" or not found:
        return
    # Gaps that are found or reopened are a new question; closed ones are not.
    times = len(loop.gaps) + sum(gap.reopened for gap in loop.gaps.values())
    most = loop.limits.max_rounds
    rounds = "%d/%d" % (loop.round, most) if most else "%d" % loop.round
    words = "Verification found %s. Attempt automatic fix? (%s) [Y/n]"
    yield "gaps:%d" % times, words % (plural(len(found), "gap"), rounds)


def _wave(loop: Loop) -> Iterator[tuple[str, str]]:
    wave = current_wave(loop)
    if loop.shape == "tool-review":
        work = [task for task in loop.tasks.values() if task.condition is None]
        if work and all(task.is_done for task in work):
            yield "wave:end:%d" % len(work), "All waves are complete. Finish the loop?"
    if not wave:
        return
    tasks = loop.tasks.values()
    before = [task for task in tasks if task.wave and task.wave < wave]
    begun = [task for task in tasks if task.wave == wave and task.status != "pending"]
    if before and not begun:
        last = max(task.wave or 0 for task in before)
        name = "wave_%d" % last
        review = " (review: %s)" % review_words(loop, name) if name in loop.reviews else ""
        yield "wave:%d" % wave, "Wave %d complete%s. Continue to Wave %d?" % (last, review, wave)


def review_words(loop: Loop, name: str) -> str:
    """Return the verdict and the figures of a review in a few words."""
    review = loop.reviews[name]
    facts = []
    blockers = review.blockers
    if review.passed is not None:
        begun = loop.status == "reviewing" and not review.passed
        facts.append("passed" if review.passed else "in progress" if begun else "not passed")
        blockers = review.blockers_remaining
    if review.score is not None:
        facts.append("score %s" % review.score)
    counts = ((review.issues, "issue"), (blockers, "blocker"))
    facts += [plural(count, noun) for count, noun in counts if count is not None]
    return ", ".join(facts) or "done"


def plural(count: int, noun: str) -> str:
    """Return the count and the noun, in the plural unless the count is 1."""
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")

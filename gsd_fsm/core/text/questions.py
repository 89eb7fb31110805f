"""Find the decisions that a loop leaves to the user.

Checkpoints, unclear goals and what the shape of a goal requires are asked in every mode. So are skip
requests and verdicts, once nothing else can proceed. The others are asked in interactive mode.
"""

from __future__ import annotations

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.loop.completion import open_verdicts
from gsd_fsm.core.loop.events.goals import clarify_key
from gsd_fsm.core.loop.state import failed_tasks, open_gaps, open_work
from gsd_fsm.core.loop.waves import (
    current_wave,
    defers_commands,
    loop_retry_key,
    ready_tasks,
    reported_tasks,
    retry_key,
)
from gsd_fsm.core.text.next_step import asks_reviewer, is_transient, unreviewed_wave
from gsd_fsm.core.text.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.loop.payloads import QuestionSpec, WaitData, WatchedData
    from gsd_fsm.core.loop.records import Criterion
    from gsd_fsm.core.loop.state import Loop

# To which "no" pauses the loop; to other questions it is an answer like any other.
_DECLINABLE = ("start", "retry", "gaps", "wave", "step", "turn")
_LONGEST = 600
_MOST_QUESTIONS = 40
_MOST_WATCHED = 5


def pending_question(loop: Loop) -> tuple[str, str] | None:
    """Return the key and the words of the question to ask now, None if nothing is undecided."""
    asks: tuple[Any, ...] = (_checkpoint, _clarify, _step)
    if loop.mode == "interactive":
        asks += (_start, _retry, _fix, _wave)
    elif loop.shape == "tool-review":
        asks += (_wave,)
    for ask in (*asks, _skip, _verdict):
        for key, question in ask(loop):
            if key not in loop.answered:
                return key, question
    return None


def pending_wait(loop: Loop) -> WaitData | None:
    """Return the data of the wait for every decision that is due now, None if there is none.

    A loop of version 1 asks one question at a time.
    """
    asked = pending_question(loop)
    if asked is None:
        return None
    key, question = asked
    data: WaitData = {"for": "human", "question": question, "about": key}
    about = key.partition(":")[0]
    if loop.rules is None or about not in ("checkpoint", "skip", "verdict"):
        return data
    together = (_checkpoint, _skip, _verdict)
    found = [each for ask in together for each in ask(loop) if each[0] not in loop.answered]
    if len(found) == 1 and about != "verdict":
        return data
    specs: list[QuestionSpec] = [
        {"id": key.split(":")[1], "about": key, "question": one_line(words, _LONGEST)}
        for key, words in found[:_MOST_QUESTIONS]
    ]
    lines = ["%s: %s" % (spec["id"], spec["question"]) for spec in specs]
    opening = "%s open. Each has an id." % _are(len(specs), "decision")
    if any(spec["about"].startswith("verdict:") for spec in specs):
        how = "--verdict ID pass|fail --evidence TEXT"
        opening += " To judge, run: %s" % command_line("verify", loop.id, how)
    return {"for": "human", "question": "\n".join([opening, *lines]), "questions": specs}


def _are(count: int, noun: str) -> str:
    return "%s %s" % (plural(count, noun), "is" if count == 1 else "are")


def may_decline(key: str | None) -> bool:
    """Return whether "no" pauses the loop; to other questions it is an answer like any other."""
    return (key or "").partition(":")[0] in _DECLINABLE


def is_yes_or_no(key: str | None) -> bool:
    """Return whether only a yes or a no answers this question."""
    return (key or "").partition(":")[0] in (*_DECLINABLE, "branch", "skip")


def _skip(loop: Loop) -> Iterator[tuple[str, str]]:
    """Ask about requests to skip a task, once no other task can proceed."""
    wanted = [task for task in loop.tasks.values() if task.skip and not task.is_done]
    if not wanted or ready_tasks(loop):
        return
    if reported_tasks(loop):
        deferring = defers_commands(loop)
        if not deferring or any(not loop.tasks[name].skip for name in deferring):
            return  # their checks come first
    for task in wanted:
        why = ": %s" % one_line(task.skip_reason, 300) if task.skip_reason else ""
        title = " (%s)" % one_line(task.title, 120) if task.title else ""
        words = "The agent wants to skip task %s%s%s. Skip it? [Y/n]"
        yield "skip:%s:%d" % (task.id, task.skip), words % (task.id, title, why)


def _verdict(loop: Loop) -> Iterator[tuple[str, str]]:
    """Ask for verdicts, once the checks have passed and a reviewer was asked in vain."""
    if not loop.verified or asks_reviewer(loop):
        return
    for verdict in open_verdicts(loop):
        key = "verdict:%s:%d" % (verdict.id, loop.round)
        yield key, "Does this hold? %s" % one_line(verdict.text or verdict.id, 300)


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
    key = "gaps:%d" % times
    if loop.rules is not None:  # also if a round has found the same gaps again
        key += ":%d" % loop.round
    yield key, words % (plural(len(found), "gap"), rounds)


def _wave(loop: Loop) -> Iterator[tuple[str, str]]:
    """Ask after each wave, once its light review is recorded, and quote that.

    A loop of version 1 asks before the review.
    """
    if loop.rules is not None and unreviewed_wave(loop):
        return
    wave = current_wave(loop)
    if loop.shape == "tool-review":
        work = [task for task in loop.tasks.values() if task.condition is None]
        if work and all(task.is_done for task in work):
            words = "All waves are complete%s. Finish the loop?"
            yield "wave:end:%d" % len(work), words % _reviewed(loop, wave or 1)
    if not wave:
        return
    tasks = loop.tasks.values()
    before = [task for task in tasks if task.wave and task.wave < wave]
    begun = [task for task in tasks if task.wave == wave and task.status != "pending"]
    if before and not begun:
        last = max(task.wave or 0 for task in before)
        words = "Wave %d complete%s. Continue to Wave %d?"
        yield "wave:%d" % wave, words % (last, _reviewed(loop, last), wave)


def _reviewed(loop: Loop, wave: int) -> str:
    name = "wave_%d" % wave
    return " (review: %s)" % review_words(loop, name) if name in loop.reviews else ""


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


def evidence_words(criterion: Criterion, exit_code: str) -> str:
    """Return what the last run of a check came to, with doubts; `exit_code`: the words for it."""
    proof = criterion.evidence or {}
    words = "stale" if criterion.stale else "%s %s" % (exit_code, proof.get("exit_code"))
    words += ", before any work" if proof.get("baseline") else ""
    words += ", altered" if proof.get("altered") and not criterion.met else ""
    words += ", flaky" if proof.get("flaky") else ""
    return "; ".join([words, *proof.get("doubts", ())])


def watched_words(watched: WatchedData) -> str:
    """Return which watched files differ from those at `start`."""
    parts = ["the list of watched files is missing"] if watched.get("lost") else []
    for kind in ("changed", "deleted", "new"):
        paths: Any = watched.get(kind, [])
        if paths:
            shown = ", ".join([one_line(path, 120) for path in paths[:_MOST_WATCHED]])
            more = (
                " and %d more" % (len(paths) - _MOST_WATCHED) if len(paths) > _MOST_WATCHED else ""
            )
            parts.append("%s: %s%s" % (kind, shown, more))
    if watched.get("more"):
        parts.append("not listed: %d" % watched["more"])
    return "; ".join(parts)


def plural(count: int, noun: str) -> str:
    """Return the count and the noun, in the plural unless the count is 1."""
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")

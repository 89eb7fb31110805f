"""Compose the next step of a loop from its state alone: one sentence and one command."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.loop.completion import (
    awaits_complete,
    gives_exit_signal,
    is_only_altered,
    latest_tree,
    needs_review,
    open_verdicts,
    stale,
    waits_for_altered,
)
from gsd_fsm.core.loop.fold import steps_of
from gsd_fsm.core.loop.limits import used_up_limit, used_up_retries
from gsd_fsm.core.loop.protection import altered_checks, shown_name
from gsd_fsm.core.loop.records import DONE
from gsd_fsm.core.loop.state import FINAL, failed_tasks, is_in_reach, open_work, unmet
from gsd_fsm.core.loop.waves import (
    can_start,
    current_wave,
    defers_commands,
    ready_gaps,
    ready_tasks,
    reported_tasks,
)
from gsd_fsm.core.text.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from gsd_fsm.core.loop.protection import Altered
    from gsd_fsm.core.loop.records import Failure, Task
    from gsd_fsm.core.loop.state import Loop

    Advice = tuple[str, str]

_LISTED_TASKS = 8
# The phases of a TDD task in which it cannot be reported as complete.
_TESTED = ("red", "green")
# Seconds after which a client may kill a command.
LONG_PROOF = 90
_LONGEST = 6_000  # no text of the journal but a goal is longer
_SCORES = "--outcome N --scope N --constraints N --success N --done N"


def next_step(loop: Loop, brief: bool = False) -> Advice:
    """Return the next step, one sentence or more on one line, and the command for it.

    Foreign text in it is harmless. `brief`: without the text of errors, for callers that quote them.
    """
    if loop.status in FINAL:
        return "The loop is %s." % loop.status, command_line("start --help")
    if loop.status == "paused":
        return _resume(loop)
    if loop.status == "waiting":
        if loop.wait_for == "human":
            words = _sentence("Waiting for the user's answer: %s" % _flat(loop.question))
            return words, command_line("answer", loop.id, "ID TEXT" if loop.questions else "TEXT")
        words = "Throttled until %s." % (loop.until or "the client recovers")
        return words, command_line("resume", loop.id)
    if awaits_complete(loop):
        return "Everything is done; complete the loop.", command_line("complete", loop.id)
    if loop.status == "reviewing":
        return _open_blocker(loop) or (
            "Finish the review. If it found blockers, run `%s` instead."
            % command_line("review failed", loop.id, "--blockers N"),
            command_line("review passed", loop.id),
        )
    if loop.is_unclear:
        return _work(loop)
    task = _task_to_retry(loop)
    if task is None:
        return _after_error(loop, _work(loop), brief)
    words = "Retry task %s: %s." % (_named(task), retry_count(loop, task))
    if not brief:
        words += _sentence(" Last error: %s" % _last_error(task.errors))
    if loop.is_planned:
        return words, command_line("next", loop.id)
    return words, command_line("task", loop.id, "%s running" % task.id)


def error_to_fix(loop: Loop) -> str:
    """Return the last error of the task to retry, else of a loop that is to retry, else ""."""
    if not loop.is_active:
        return ""
    task = _task_to_retry(loop)
    if task is None and (loop.status != "retrying" or failed_tasks(loop)):
        return ""
    errors = loop.errors if task is None else task.errors
    return errors[-1].text if errors else ""


def retry_count(loop: Loop, task: Task) -> str:
    """Return which retry of a failed task this is; a transient error is retried once."""
    if is_transient(task):
        return "retry 1 of 1"
    return "retry %d of %d" % (task.retries, loop.limits.max_retries)


def is_transient(task: Task) -> bool:
    """Return whether the last error of a task was transient."""
    return bool(task.errors) and task.errors[-1].error_class == "transient"


def _resume(loop: Loop) -> Advice:
    words = _sentence("Paused (%s): %s" % (loop.pause_code, _flat(loop.pause_reason)))
    if awaits_complete(loop):
        return words + " Everything is done; complete the loop.", command_line("complete", loop.id)
    if loop.pause_code == "altered" and loop.protection.altered:
        return words, altered_remedy(loop, loop.protection.altered[0])
    limit = used_up_limit(loop, loop.limits, ms_of(loop.last_event))
    if limit is None and loop.pause_code == "retries":
        limit = used_up_retries(loop, loop.limits)
    return words, limit.remedy if limit else command_line("resume", loop.id)


def _task_to_retry(loop: Loop) -> Task | None:
    if loop.kind == "verify" and loop.is_planned:
        return None  # its tasks are fixes, and its gaps say which of them are due
    ready = set(ready_tasks(loop)) if loop.is_planned and loop.failed else None
    for task_id in failed_tasks(loop):
        task = loop.tasks[task_id]
        if can_start(loop, task) if ready is None else task_id in ready:
            return task
    return None


def _after_error(loop: Loop, work: Advice, brief: bool) -> Advice:
    """Return the fix of an error of the loop itself, which comes before other work."""
    if loop.status != "retrying" or not loop.errors or failed_tasks(loop):
        return work
    words, command = work
    error = "" if brief else ": " + _last_error(loop.errors)
    begins = command == command_line("review begun", loop.id)
    if begins and not steps_of("review.begun", loop.status):
        # A review cannot begin in `retrying`, and only a task leaves it.
        words = _sentence("Fix the last error as a separate task" + error)
        return words, command_line("task", loop.id, "fix-%d running" % loop.errors[-1].seq)
    return _sentence("Fix the last error" + error) + " Then: " + words, command


def _work(loop: Loop) -> Advice:
    for advise in (_altered, _gaps, _blockers, _stage, _wave, _reported, _tasks, _criteria):
        advice = advise(loop)
        if advice is not None:
            return advice
    return _last_step(loop)


def _altered(loop: Loop) -> Advice | None:
    """Return how to undo the change of a protected file, if nothing else is left to do."""
    if not waits_for_altered(loop):
        return None
    file = loop.protection.altered[0]
    return "Only altered checks are left: %s" % altered_advice(file), altered_remedy(loop, file)


def altered_advice(file: Altered) -> str:
    """Return which protected file differs, and what an agent can do about it."""
    if file.upstream:
        words = "%s. It is as in the upstream branch: ask the user to accept it."
        return words % altered_words(file)
    words = "%s, so that evidence does not count. Restore it, or ask the user to accept the change."
    return words % altered_words(file)


def altered_words(file: Altered) -> str:
    """Return what happened to a protected file, and which checks depend on it."""
    change = "was changed" if file.digest else "is missing"
    named = ", ".join([_flat(name) for name in file.checks[:_LISTED_TASKS]])
    if len(file.checks) > _LISTED_TASKS:
        named += " and %d more" % (len(file.checks) - _LISTED_TASKS)
    depends = "checks %s depend" if len(file.checks) > 1 else "check %s depends"
    whose = depends % named if file.checks else "every check depends"
    return "protected file %s %s, and %s on it" % (_flat(file.path), change, whose)


def altered_remedy(loop: Loop, file: Altered, verb: str = "") -> str:
    """Return the command that restores an altered file, or that accepts it as it is upstream."""
    verb = verb or ("accept" if file.upstream else "restore")
    return command_line(verb, loop.id, shown_name(file))


def _gaps(loop: Loop) -> Advice | None:
    for gap_id in ready_gaps(loop):
        gap = loop.gaps[gap_id]
        where = " in %s" % _flat(gap.file) if gap.file else ""
        what = "Fix gap %s (%s%s): %s" % (gap_id, gap.kind, where, _flat(gap.description))
        verb, which = ("next", "") if loop.is_planned else ("gap close", gap_id)
        return _sentence(what), command_line(verb, loop.id, which)
    return None


def _open_blocker(loop: Loop) -> Advice | None:
    """Return how to resolve a blocker of an earlier review, without which this one cannot pass."""
    for task_id in loop.gate_tasks.get("blocker", ()) if loop.rules is not None else ():
        task = loop.tasks[task_id]
        status = "complete" if task.status == "running" else "running"
        words = "The review cannot pass while blocker %s is open; resolve it." % _named(task)
        return words, command_line("task", loop.id, "%s %s" % (task_id, status))
    return None


def _blockers(loop: Loop) -> Advice | None:
    review = loop.reviews.get("thorough")
    if review is None or review.passed or loop.status != "fixing":
        return None
    known = [task for task in loop.tasks.values() if task.condition == "blocker"]
    if any(not task.is_done for task in known):
        return None
    words = "Fix the blockers that the review found, then review again."
    if known:
        words = "All blockers of the review are resolved; review again."
    return words, command_line("review begun", loop.id)


# the stages of a goal


def _stage(loop: Loop) -> Advice | None:
    """Return what the stage of a goal requires before its tasks; None if the tasks are due."""
    if loop.kind != "goal":
        return None
    if loop.is_unclear:
        return (
            "The goal is not clear enough to start. Clarify it with the user, then score it again.",
            command_line("score", loop.id, _SCORES),
        )
    if loop.stage == "intent":
        if loop.spec_score is None:
            words = "Score the goal: 0 to 2 points for each of the five aspects."
            return words, command_line("score", loop.id, _SCORES)
        words = "The goal is clear (spec %d/10). Continue with its shape."
        return words % loop.spec_score, command_line("stage shape", loop.id)
    if loop.stage == "shape":
        return (
            "Write criteria, must-nots and verification to SHAPE.md, or use the existing file.",
            command_line("stage decompose", loop.id, "--shape-file SHAPE.md"),
        )
    if loop.stage == "decompose":
        return (
            "Break the work into tasks; for each, run `%s`."
            % command_line("task", loop.id, "ID pending --title TEXT --blocked-by ID"),
            command_line("stage executing", loop.id),
        )
    return _light_review(loop) or _thorough_review(loop)


def _light_review(loop: Loop) -> Advice | None:
    wave = unreviewed_wave(loop)
    if not wave:
        return None
    words = (
        "Wave %d is complete. Do a light review (idioms, cleanliness, fit to the goal); its result "
        "is only informational."
    )
    how = "--wave %d --score N --issues N --blockers N" % wave
    return words % wave, command_line("review light", loop.id, how)


def unreviewed_wave(loop: Loop) -> int:
    """Return the wave that is complete and due for a light review; 0 if none is."""
    reviewed = loop.stage == "executing" or (loop.stage is None and loop.spec_score is not None)
    if loop.kind != "goal" or not reviewed:
        return 0
    tasks = [task for task in loop.tasks.values() if task.condition is None]
    if not tasks:
        return 0
    wave = last = current_wave(loop) or 1
    if any(not task.is_done for task in tasks):
        last = max((t.wave for t in tasks if t.wave and t.wave < wave), default=0)
        if any(t.wave == wave and t.status != "pending" for t in tasks):
            return 0
    return 0 if "wave_%d" % last in loop.reviews else last


def _thorough_review(loop: Loop) -> Advice | None:
    if open_work(loop) or unmet(loop):
        return None
    if loop.stage == "executing":
        if loop.tasks or loop.criteria:
            words = "Every task is done and every criterion met. Continue with the review."
        else:
            words = "Work on the goal (it has no recorded tasks or criteria), then review it."
        return words, command_line("stage review", loop.id)
    thorough = loop.reviews.get("thorough")
    if loop.stage == "review" and (thorough is None or not thorough.passed):
        words = "Review everything thoroughly, and check every must-not."
        return words, command_line("review begun", loop.id)
    return None


# tasks and criteria


def _wave(loop: Loop) -> Advice | None:
    """Return all tasks of a plan that can start now; `next` shows their prompts."""
    ready = ready_tasks(loop) if loop.is_planned and loop.kind == "execute" else []
    if not ready:
        return None
    named = ", ".join(_named(loop.tasks[task_id]) for task_id in ready[:_LISTED_TASKS])
    more = " and %d more" % (len(ready) - _LISTED_TASKS) if len(ready) > _LISTED_TASKS else ""
    number = current_wave(loop)
    wave = " of wave %d" % number if number else ""
    many = "s" if len(ready) > 1 else ""
    return "Start task%s %s%s%s." % (many, named, more, wave), command_line("next", loop.id)


def _reported(loop: Loop) -> Advice | None:
    """Return the proof of reported tasks, unless it must wait for others."""
    due = reported_tasks(loop)
    if not due or (defers_commands(loop) and not any(_has_other_report(loop, due))):
        return None
    named = ", ".join(due[:_LISTED_TASKS])
    more = " and %d more" % (len(due) - _LISTED_TASKS) if len(due) > _LISTED_TASKS else ""
    tasks = "tasks" if len(due) > 1 else "task"
    words = "Prove the reported %s %s%s: run the checks%s."
    return words % (tasks, named, more, background_words(loop)), command_line("check", loop.id)


def _has_other_report(loop: Loop, due: list[str]) -> Iterator[bool]:
    """Yield whether each of these was reported as failed or at a checkpoint: nothing defers that."""
    return (loop.tasks[name].verdict != "complete" for name in due)


def background_words(loop: Loop) -> str:
    """Return the advice for checks that a client may kill because they take long."""
    if loop.proof_seconds > LONG_PROOF or any(task.is_proving for task in loop.tasks.values()):
        return " in the background, because they take long"
    return ""


def asks_reviewer(loop: Loop) -> bool:
    """Return whether a reviewing subagent is to be asked for verdicts first."""
    return loop.mode == "yolo" and loop.reviewer_asked != loop.round and bool(open_verdicts(loop))


def _tasks(loop: Loop) -> Advice | None:
    listed: list[Task] = []  # in the task list of the client
    own: list[Task] = []
    for task in _due_tasks(loop):
        (listed if task.mirrored and is_in_reach(loop, task) else own).append(task)
    for task in own:
        if task.status == "running":
            if task.phase in _TESTED and loop.is_planned and loop.proves_tasks:
                words = "Finish task %s: it is in %s, and its tests decide."
                words %= (_named(task), task.phase.upper())
                return words, command_line("tdd", loop.id, "%s --run" % task.id)
            verb, how = ("report", "%s") if loop.is_planned else ("task", "%s complete")
            command = command_line(verb, loop.id, how % task.id)
            return "Finish task %s." % _named(task), command
        if task.status == "checkpoint":
            # A resumed planned loop asks its question again.
            verb, how = ("resume", "") if loop.is_planned else ("task", "%s running" % task.id)
            return _decision(task), command_line(verb, loop.id, how)
    free = [task for task in own if can_start(loop, task)]
    if free:
        words = "Start task %s." % _named(free[0])
        others = ", ".join([task.id for task in free[1:_LISTED_TASKS]])
        if others and any(task.wave for task in free):
            words += " These can run in parallel: %s." % others
        return words, command_line("task", loop.id, "%s running" % free[0].id)
    if not listed:
        return None
    words = "Do task %s of your task list and mark it completed there." % _named(listed[0])
    words += " If it is no longer listed, ask the user to run: %s"
    skip = command_line("task", loop.id, "%s skipped" % listed[0].id)
    return words % skip, command_line("status", loop.id)


def _due_tasks(loop: Loop) -> list[Task]:
    """Return the open tasks that are due, of a planned loop the running ones first.

    A task that stands for a completion condition is left out: other advice names the command that
    settles the condition.
    """
    work = [t for t in loop.tasks.values() if t.status not in DONE and t.is_work]
    if loop.is_planned:
        if loop.kind == "verify":
            work = [task for task in work if task.id in loop.gaps and loop.gaps[task.id].is_open]
        work.sort(key=lambda task: task.status != "running")
    return work


def _decision(task: Task) -> str:
    if task.answer is not None:
        return _sentence("Continue task %s as decided: %s" % (_named(task), _flat(task.answer)))
    question = ": %s" % _flat(task.question) if task.question else ""
    return _sentence("Task %s needs a decision%s" % (_named(task), question)) + (
        " Ask the user, then act on the answer."
    )


def _criteria(loop: Loop) -> Advice | None:
    altered = altered_checks(loop)
    for number, (name, criterion) in enumerate(loop.criteria.items(), 1):
        if criterion.met:
            continue
        if criterion.check is not None:
            if is_only_altered(criterion, altered):
                continue  # nothing is left to do about it but to restore the file
            where = "in %s: " % _flat(criterion.directory) if criterion.directory else ""
            words = "Make the check %r pass (%s%s)." % (_flat(name), where, _flat(criterion.check))
            return words, command_line("check", loop.id)
        # A criterion's text comes before its number, and it may be a number itself.
        shown = "'%s'" % name.replace("'", "'\\''") if str(number) in loop.criteria else str(number)
        dash = "-- " if shown.startswith("'-") else ""
        words = _sentence("Meet criterion %d: %s" % (number, _flat(name)))
        return words, command_line("criterion", loop.id, "%s%s met" % (dash, shown))
    old = stale(loop, latest_tree(loop))
    if old:
        words = "Files have changed since the check %r ran; run the checks again."
        return words % _flat(old[0]), command_line("check", loop.id)
    return None


def _last_step(loop: Loop) -> Advice:
    if loop.kind == "verify":
        left = [verdict.id for verdict in open_verdicts(loop)] if loop.verified else []
        if left:
            named = ", ".join(left[:_LISTED_TASKS])
            words = "Let a subagent that fixed nothing judge what no command can: %s." % named
            return words, command_line("next", loop.id, "review")
        words = "Verify everything%s." % (" again" if loop.round or loop.gaps else "")
        if loop.is_planned:
            return words, command_line("verify", loop.id)
        found = command_line("gap found", loop.id, "--kind KIND --file FILE --description TEXT")
        words += " For each gap, run `%s`; then record the result." % found
        return words, command_line("verified pass", loop.id)
    if loop.kind == "execute":
        return "Record the tasks of this loop.", command_line("task", loop.id, "ID running")
    if gives_exit_signal(loop):
        if not needs_review(loop):
            return "Reach the goal, then complete the loop.", command_line("complete", loop.id)
    elif not loop.exit_signal and not unmet(loop):
        when = "Every criterion is met; give" if loop.criteria else "Reach the goal, then give"
        return when + " the exit signal.", command_line("exit-signal", loop.id)
    words = "A thorough review must pass before the loop can complete."
    return words, command_line("review begun", loop.id)


# words


def _named(task: Task) -> str:
    return "%s (%s)" % (task.id, _flat(task.title)) if task.title else str(task.id)


def _flat(text: str | None) -> str:
    return one_line(text, _LONGEST)


def _sentence(text: str) -> str:
    """Return the text with a period, unless it ends a sentence."""
    return text if text.endswith((".", "?", "!", "…", "[Y/n]")) else text + "."


def _last_error(errors: list[Failure]) -> str:
    return one_line(errors[-1].text, 200) if errors else ""

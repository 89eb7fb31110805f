"""What to do now: one sentence and one command, from the state alone."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.loop.completion import is_complete, latest_tree, stale
from gsd_fsm.core.loop.fold import steps_of
from gsd_fsm.core.loop.limits import used_up_limit, used_up_retries
from gsd_fsm.core.loop.records import DONE
from gsd_fsm.core.loop.state import FINAL, failed_tasks, is_in_reach, unmet
from gsd_fsm.core.loop.waves import can_start, current_wave, ready_gaps, ready_tasks
from gsd_fsm.core.text.stages import stage_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Failure, Task
    from gsd_fsm.core.loop.state import Loop

    Advice = tuple[str, str]


_LISTED_TASKS = 8


def next_step(loop: Loop, brief: bool = False) -> Advice:
    """The next step in words, on one line, and the command that goes with it.

    `brief`: without the text of errors, for whoever quotes them elsewhere.
    """
    run = "gsd-fsm --loop %s " % loop.id
    if loop.status in FINAL:
        return "The loop is %s." % loop.status, "gsd-fsm start --help"
    if loop.status == "paused":
        return _paused(loop, run)
    if loop.status == "waiting":
        if loop.wait_for == "human":
            return "A human must answer: %s" % _flat(loop.question), run + "answer TEXT"
        return "Throttled until %s." % (loop.until or "the client recovers"), run + "resume"
    if is_complete(loop, latest_tree(loop)):
        return "Everything is done; complete the loop.", run + "complete"
    if loop.status == "reviewing":
        words = "Finish the review; if it finds blockers, it is 'review failed --blockers N'."
        return words, run + "review passed"
    if loop.is_unclear:
        return _onward(loop, run)  # nothing is worked on before
    return _failed(loop, run, brief) or _after_error(loop, run, _onward(loop, run), brief)


def _paused(loop: Loop, run: str) -> Advice:
    words = "Paused (%s): %s." % (loop.pause_code, _flat(loop.pause_reason).rstrip("."))
    spent = used_up_limit(loop, loop.limits, ms_of(loop.last_event))
    if spent is None and loop.pause_code == "retries":
        spent = used_up_retries(loop, loop.limits)
    return words, spent.remedy if spent else run + "resume"


def _failed(loop: Loop, run: str, brief: bool) -> Advice | None:
    if loop.kind == "verify" and loop.is_planned:
        return None  # its tasks are fixes, and the gaps tell which of them are due
    ready = set(ready_tasks(loop)) if loop.is_planned and loop.failed else None
    for task_id in failed_tasks(loop):
        task = loop.tasks[task_id]
        if can_start(loop, task) if ready is None else task_id in ready:
            words = "Retry task %s (retry %d of %d)" % (
                _named(task),
                task.retries,
                loop.limits.max_retries,
            )
            words += "." if brief else "; last error: %s" % _last_error(task.errors)
            return words, run + ("next" if loop.is_planned else "task %s running" % task_id)
    return None


def _after_error(loop: Loop, run: str, onward: Advice, brief: bool) -> Advice:
    """An error of the loop itself comes before whatever else is to be done."""
    if loop.status != "retrying" or not loop.errors or failed_tasks(loop):
        return onward
    words, command = onward
    error = "" if brief else ": " + _last_error(loop.errors).rstrip(".")
    if command.endswith("review begun") and not steps_of("review.begun", loop.status):
        # Only work leads out of `retrying`: the fix is a task of its own.
        words = "Fix the last error as a task of its own%s." % error
        return words, run + "task fix-%d running" % loop.errors[-1].seq
    return "Fix the last error%s. Then: %s" % (error, words), command


def _onward(loop: Loop, run: str) -> Advice:
    for advise in (_gaps, _blockers, _stage, _waves, _tasks, _criteria):
        advice = advise(loop, run)
        if advice is not None:
            return advice
    return _closing(loop, run)


def _stage(loop: Loop, run: str) -> Advice | None:
    return stage_step(loop, run) if loop.kind == "goal" else None


def _gaps(loop: Loop, run: str) -> Advice | None:
    for gap_id in ready_gaps(loop):
        gap = loop.gaps[gap_id]
        where = " in %s" % _flat(gap.file) if gap.file else ""
        words = "Fix gap %s (%s%s): %s" % (gap_id, gap.kind, where, _flat(gap.description))
        return words, run + ("next" if loop.is_planned else "gap close %s" % gap_id)
    return None


def _blockers(loop: Loop, run: str) -> Advice | None:
    review = loop.reviews.get("thorough")
    if review is None or review.passed or loop.status != "fixing":
        return None
    known = [task for task in loop.tasks.values() if task.condition == "blocker"]
    if any(task.status not in ("complete", "skipped") for task in known):
        return None
    words = "What the review found is resolved" if known else "Fix what the review found"
    return words + "; review it again.", run + "review begun"


def _waves(loop: Loop, run: str) -> Advice | None:
    """Of a plan, everything that can start now; its prompts are what `next` is for."""
    ready = ready_tasks(loop) if loop.is_planned and loop.kind == "execute" else []
    if not ready:
        return None
    named = ", ".join(_named(loop.tasks[task_id]) for task_id in ready[:_LISTED_TASKS])
    more = " and %d more" % (len(ready) - _LISTED_TASKS) if len(ready) > _LISTED_TASKS else ""
    number = current_wave(loop)
    wave = " of wave %d" % number if number else ""
    many = "s" if len(ready) > 1 else ""
    return "Start task%s %s%s%s." % (many, named, more, wave), run + "next"


def _tasks(loop: Loop, run: str) -> Advice | None:
    theirs: list[Task] = []
    waiting: list[Task] = []
    for task in _open_work(loop):
        (theirs if task.mirrored and is_in_reach(loop, task) else waiting).append(task)
    for task in waiting:
        if task.status == "running":
            report = "report %s" if loop.is_planned else "task %s complete"
            return "Finish task %s." % _named(task), run + report % task.id
        if task.status == "checkpoint":
            # A planned loop asks it again as it goes on.
            command = "resume" if loop.is_planned else "task %s running" % task.id
            return _decision(task), run + command
    free = [task for task in waiting if can_start(loop, task)]
    if not free:
        return _listed_task(theirs, run)
    beside = ", ".join([task.id for task in free[1:_LISTED_TASKS]])
    words = "Start task %s." % _named(free[0])
    if beside and any(task.wave for task in free):
        words += " At the same time can be done: %s." % beside
    return words, run + "task %s running" % free[0].id


def _open_work(loop: Loop) -> list[Task]:
    """Return the open tasks that are due, of a planned loop the running ones first.

    Tasks that stand for a completion condition are not among them: the advice about the condition
    names the command that settles it.
    """
    open_ = [task for task in loop.tasks.values() if task.status not in DONE]
    work = [task for task in open_ if task.condition is None or task.is_work]
    if loop.is_planned:
        if loop.kind == "verify":
            work = [task for task in work if task.id in loop.gaps and loop.gaps[task.id].is_open]
        work.sort(key=lambda task: bool(task.status != "running"))
    return work


def _decision(task: Task) -> str:
    if task.answer is not None:
        return "Go on with task %s as was decided: %s" % (_named(task), _flat(task.answer))
    question = ": %s" % _flat(task.question) if task.question else ""
    end = "" if question.endswith(("?", ".")) else "."
    words = "Task %s needs a decision%s%s Ask the user, and go on with their word."
    return words % (_named(task), question, end)


def _listed_task(theirs: list[Task], run: str) -> Advice | None:
    if not theirs:
        return None
    words = "Do task %s of your task list, and mark it completed there." % _named(theirs[0])
    gone = " If it is not there any more, the user may settle it: %stask %s skipped"
    return words + gone % (run, theirs[0].id), run + "status"


def _criteria(loop: Loop, run: str) -> Advice | None:
    for number, (name, criterion) in enumerate(loop.criteria.items(), 1):
        if criterion.met:
            continue
        if criterion.check is not None:
            words = "Make the check %r pass: %s" % (_flat(name), _flat(criterion.check))
            return words, run + "check"
        # A criterion's text comes before a number, and it may be one itself.
        shown = "'%s'" % name.replace("'", "'\\''") if str(number) in loop.criteria else str(number)
        dash = "-- " if shown.startswith("'-") else ""
        words = "Meet criterion %d: %s" % (number, _flat(name))
        return words, run + "criterion %s%s met" % (dash, shown)
    old = stale(loop, latest_tree(loop))
    if old:
        return "The content has changed since %s was checked." % _flat(old[0]), run + "check"
    return None


def _closing(loop: Loop, run: str) -> Advice:
    if loop.kind == "verify":
        again = " again" if loop.round or loop.gaps else ""
        words = "Verify everything%s; record every gap ('gap found'), then the verdict." % again
        if loop.is_planned:
            return "Verify everything%s." % again, run + "verify"
        return words, run + "verified pass"
    if loop.kind == "execute":
        return "Record the tasks of this loop.", run + "task ID running"
    if not loop.exit_signal and not unmet(loop):
        met = "Every criterion is met; say" if loop.criteria else "Reach the goal; then say"
        return met + " that you are done.", run + "exit-signal"
    return "A thorough review must pass.", run + "review begun"


def _named(task: Task) -> str:
    return "%s (%s)" % (task.id, _flat(task.title)) if task.title else str(task.id)


def _flat(text: str | None) -> str:
    """The text on one line: a line of its own could pass for one of ours."""
    return " ".join((text or "").split())


def _last_error(errors: list[Failure]) -> str:
    text = _flat(errors[-1].text) if errors else ""
    return text if len(text) <= 200 else text[:199] + "…"

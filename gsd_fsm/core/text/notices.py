"""Compose what sessions and users read about a loop: at a start, with a prompt, when it ends."""

from __future__ import annotations

from gsd_fsm.core.command_line import command_line, program
from gsd_fsm.core.loop.completion import (
    NO_TREE,
    awaits_complete,
    gives_exit_signal,
    lacks_tree,
    needs_review,
    proof_counts,
)
from gsd_fsm.core.loop.limits import active_minutes
from gsd_fsm.core.loop.spending import spent
from gsd_fsm.core.loop.state import ACTIVE, FINAL, open_tasks, open_work, unmet
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.text.block_text import ground_rules
from gsd_fsm.core.text.next_step import altered_remedy, next_step
from gsd_fsm.core.text.questions import plural, review_words, watched_words
from gsd_fsm.core.text.sanitize import fenced, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from gsd_fsm.core.loop.state import Loop


_IF_WANTED = "If the user wants the loop to continue, run"
_FAILED = {
    "Stop": "this stop was allowed without a decision",
    "UserPromptSubmit": "this prompt was not recorded",
}
_PLURALS = {"criterion": "criteria", "verdict by an agent": "verdicts by an agent"}


# for the model


def resumption(loop: Loop, nonce: str) -> str:
    """Return what the model of the owner reads about its live loop."""
    active = loop.status in ACTIVE
    most = loop.limits.max_iterations
    count = "%d of %d" % (loop.iteration, most) if most else "%d" % loop.iteration
    lines = [
        "[LOOP RESUME] %s loop detected" % ("Active" if active else loop.status.capitalize()),
        "Loop: %s (%s, %s)" % (loop.id, loop.kind, loop.status),
    ]
    if loop.goal:
        what = "Spec" if loop.kind == "goal" else "Goal"
        lines.append("%s: %s" % (what, one_line(loop.goal, 1_000)))
    if loop.stage or loop.spec_score is not None:
        spec = "none" if loop.spec_score is None else "%d/10" % loop.spec_score
        fit = "none" if loop.fit_score is None else "%d" % loop.fit_score
        shape = " (%s)" % loop.shape if loop.shape else ""
        lines.append("Stage: %s | Spec: %s | Fit: %s%s" % (loop.stage or "none", spec, fit, shape))
    lines.append("Progress: %s | Iteration: %s" % (_progress(loop), count))
    if loop.reviews:
        last = list(loop.reviews)[-5:]
        reviews = ["%s: %s" % (name.replace("_", " "), review_words(loop, name)) for name in last]
        lines.append("Reviews: %s" % "; ".join(reviews))
    if loop.criteria:
        named = ", ".join([one_line(name, 160) for name in unmet(loop)[:10]])
        lines.append("Unmet criteria: %s" % (named or "none"))
    if loop.last_error and loop.status in ("retrying", "paused"):
        lines.append(fenced("Last error", loop.last_error, nonce, 600))
    words, command = next_step(loop, brief=True)
    lines.append("Next: %s" % one_line(words, 600))
    run = "Run" if active or awaits_complete(loop) else _IF_WANTED
    lines.append("%s: %s" % (run, one_line(command, 600)))
    lines += [way_to_end(loop), ground_rules(loop.id)]
    return "\n".join(lines)


def way_to_end(loop: Loop) -> str:
    """Return every step from the start of such a loop to its end, on one line."""
    steps = "Way to the end: %s." % _steps(loop)
    return steps.replace("{", "`%s " % program()).replace("}", "`")


def _steps(loop: Loop) -> str:
    """Return the steps in words, with the arguments of each command in braces."""
    if loop.kind == "execute" and loop.is_planned:
        return (
            "run {next}, give each prompt to a subagent, report its output with {report ID}; "
            "repeat until every task is done, then run {complete}"
        )
    if loop.kind == "execute":
        return (
            "for each task run {task ID running}, do the work, run {task ID complete}; then run "
            "{complete}"
        )
    if loop.kind == "verify" and loop.is_planned:
        return (
            "run {verify}, fix the gaps that {next} shows; repeat until a round passes, then run "
            "{complete}"
        )
    if loop.kind == "verify":
        return (
            "verify everything, record gaps with {gap found}, fix each and run {gap close ID}; "
            "then run {verified pass} and {complete}"
        )
    return _goal_steps(loop)


def _goal_steps(loop: Loop) -> str:
    checks = any(criterion.check is not None for criterion in loop.criteria.values())
    claims = any(criterion.check is None for criterion in loop.criteria.values())
    steps = ["follow {next} through the stages" if loop.stage else "do the work"]
    if claims:
        steps.append("run {criterion ID met} for each criterion without a check")
    in_one = checks and gives_exit_signal(loop) and not needs_review(loop)
    if checks and not in_one:
        steps.append("run {check}")
    if needs_review(loop):
        steps.append("review everything ({review begun}, {review passed})")
    if not gives_exit_signal(loop):
        steps.append("run {exit-signal}")
    steps.append("run {check --complete}" if in_one else "run {complete}")
    return ", ".join(steps)


def _progress(loop: Loop) -> str:
    if loop.tasks:
        steps = all(task.step for task in loop.tasks.values())
        done = len(loop.tasks) - len(open_tasks(loop))
        wave = current_wave(loop)
        text = "%d/%d %s" % (done, len(loop.tasks), "steps" if steps else "tasks")
        return text + (" | Wave: %d" % wave if wave else "")
    if loop.gaps:
        closed = len([gap for gap in loop.gaps.values() if not gap.is_open])
        return "%d/%d gaps closed | Round: %d" % (closed, len(loop.gaps), loop.round)
    return "%d/%d criteria" % (len(loop.criteria) - len(unmet(loop)), len(loop.criteria))


def other_loop(loop: Loop, source: str, binds: bool) -> str:
    """Return what the model of another session reads about a live loop.

    `binds`: the next prompt gives a loop without an owner to this session.
    """
    goal = ' "%s"' % one_line(loop.goal) if loop.goal else ""
    words = "[LOOP] gsd-fsm loop %s (%s, %s)%s " % (loop.id, loop.kind, loop.status, goal)
    if not loop.owner and binds:
        return words + "has no owner yet; the user's next prompt will bind it to this session."
    forked = ", which this session may be forked from" if source == "fork" else ""
    whose = "belongs to session %s%s" % (one_line(loop.owner), forked)
    words += "%s. This session is not part of it. " % (whose if loop.owner else "has no owner yet")
    return words + "To continue it here, run: %s" % command_line("resume", loop.id)


def reminder(loop: Loop) -> str:
    """Return what the owner's model must know with this prompt; "" unless the loop is halted."""
    words, command = next_step(loop)
    if loop.status == "paused":
        then = "%s: %s" % ("Run" if awaits_complete(loop) else _IF_WANTED, command)
    elif loop.status != "waiting":
        return ""
    elif loop.wait_for == "human":
        then = "If this message answers it, run: %s (TEXT: the user's answer, quoted)" % command
    else:
        then = "To continue, run: %s" % command
    return "gsd-fsm loop %s: %s %s" % (loop.id, one_line(words, 1_000), one_line(then, 600))


# for the user


def notice(loop: Loop) -> str:
    """Return the notice about a paused or waiting loop."""
    if loop.status == "waiting":
        return wait_notice(loop, loop.question or "")
    reason = loop.pause_reason
    # A `pause` event has a reason of its own.
    by_failure = loop.history[-1][4] == "failure" and loop.pause_code != "manual"
    if loop.last_error and (by_failure or loop.pause_code == "repeated"):
        reason = "%s: %s" % (one_line(reason, 300), one_line(loop.last_error, 250))
    command = next_step(loop)[1]
    if loop.pause_code == "altered" and loop.protection.altered:
        command = altered_remedy(loop, loop.protection.altered[0], "accept")
    return pause_notice(loop, loop.pause_code, reason, command)


def other_loop_notice(loop: Loop, binds: bool) -> str:
    """Return the notice about a live loop to the user of another session."""
    if not loop.owner and binds:
        words = "gsd-fsm: your first prompt will bind loop %s (%s) to this session"
        return words % (loop.id, loop.status)
    whose = "belongs to another session" if loop.owner else "has no owner yet"
    words = "gsd-fsm: loop %s (%s) %s. To continue it here, run: %s"
    return words % (loop.id, loop.status, whose, command_line("resume", loop.id))


def unknown_loop_notice(loop_id: str) -> str:
    """Return the notice that a session was started for a loop that it cannot own."""
    words = "gsd-fsm: GSD_FSM_LOOP names %s, but no such loop is live here. To list loops, run: %s"
    return words % (one_line(loop_id, 100), command_line("ps"))


def bound_notice(loop: Loop) -> str:
    """Return the notice that a session has just become the owner of a loop."""
    words = "gsd-fsm: loop %s now belongs to this session. To release it, run: %s"
    return words % (loop.id, command_line("release", loop.id))


def failure_notice(event: str, problem: str) -> str:
    """Return the notice that the hook failed at this signal, with the problem."""
    what = _FAILED.get(event, "the hook failed at session start")
    words = one_line(problem, 700).replace("un: gsd-fsm ", "un: %s " % program())
    return "gsd-fsm: %s: %s" % (what, words)


def moved_notice() -> str:
    """Return the notice that a journal of the user with a live loop was moved."""
    words = (
        "gsd-fsm: the journal was moved here and is not trusted yet, so no loop continues. Run: %s"
    )
    return words % command_line("trust")


def replaced_notice() -> str:
    """Return the notice that a trusted journal was replaced by another one."""
    words = "gsd-fsm: the journal was replaced by one that is not trusted, so no loop continues. Run: %s"
    return words % command_line("trust")


def missing_notice() -> str:
    """Return the notice that a journal was removed or emptied."""
    words = (
        "gsd-fsm: the journal of this project is gone, so no loop continues. To see why, run: %s"
    )
    return words % command_line("doctor")


def disabled_notice(live: list[Loop]) -> str:
    """Return the notice that a file keeps the hook from continuing these loops."""
    which = "loop %s is %s" % (live[0].id, live[0].status)
    which = which if len(live) == 1 else "%d loops are live" % len(live)
    words = "gsd-fsm: %s, but the hook is disabled by .gsd/STOP; remove the file to enable it"
    return words % which


def program_notice(missing: str) -> str:
    """Return the notice that gsd-fsm is not on the PATH of the client; `missing`: nor at this path."""
    if not missing:
        return (
            "gsd-fsm: gsd-fsm is not on the PATH of the client; suggested commands use %s"
            % program()
        )
    words = "gsd-fsm: agents cannot run gsd-fsm: it is not on the PATH of the client, and %s is missing. %s"
    return words % (one_line(missing), "In a terminal, run: gsd-fsm init")


def lost_turn_notice(loop: Loop) -> str:
    words = "gsd-fsm: the client, not the loop, ended the turn; loop %s is %s. To pause it, run: %s"
    return words % (loop.id, loop.status, command_line("pause", loop.id))


def pause_notice(loop: Loop, code: str | None, reason: str | None, command: str) -> str:
    reason = one_line(reason, 600).rstrip(".")
    completes = command == command_line("complete", loop.id)
    then = "To complete it" if completes else "To continue"
    words = "gsd-fsm: loop %s is paused (%s): %s. %s, run: %s"
    if code == "altered" and loop.protection.altered:
        then = "To accept the change"
        undo = altered_remedy(loop, loop.protection.altered[0], "restore")
        words += "; to undo it: %s" % undo.replace("%", "%%")
    return words % (loop.id, code, reason, then, command)


def wait_notice(loop: Loop, question: str) -> str:
    words = "gsd-fsm: loop %s is waiting for your answer: %s Answer here, or run: %s"
    answer = command_line("answer", loop.id, "ID TEXT" if "\n" in question else "TEXT")
    return words % (loop.id, one_line(question, 1_200), answer)


def background_notice(loop: Loop, reason: str) -> str:
    return "gsd-fsm: loop %s: %s" % (loop.id, reason)


def completion_notice(loop: Loop, now: int) -> str:
    """Return the notice that the hook completes this loop now, with its report."""
    return end_notice(loop, now) + closing_report(loop)


def end_notice(loop: Loop, now: int) -> str:
    """Return the notice that a loop has ended, or is completed now, on one line."""
    words = "gsd-fsm: loop %s %s To see its history, run: %s"
    return words % (loop.id, result(loop, now), command_line("replay", loop.id))


def result(loop: Loop, now: int) -> str:
    """Return how a loop ended, what it took, and what was proven, claimed, skipped and left open."""
    minutes = round(active_minutes(loop, now))
    took = [
        plural(loop.iteration, "iteration"),
        plural(minutes, "minute") if minutes else "less than a minute",
    ]
    if loop.spent_usd:
        took.append(spent(loop))
    elif loop.spent_tokens:
        took.append(plural(loop.spent_tokens, "token"))
    status = loop.status if loop.status in FINAL else "completed"
    notes = "; undelivered notes: %d" % len(loop.notes) if loop.notes else ""
    words = "%s after %s%s." % (status, ", ".join(took), notes)
    proven, claimed = proof_counts(loop)
    words += " Proven: %s. Claimed: %s." % (counted(proven), counted(claimed))
    skipped = len([task for task in loop.tasks.values() if task.status == "skipped"])
    for what, count in (("Skipped", skipped), ("Left open", len(open_work(loop)))):
        words += " %s: %s." % (what, plural(count, "task")) if count else ""
    for what, text in _doubtful(loop):
        words += " %s: %s." % (what, text) if text else ""
    return words + (" " + NO_TREE if lacks_tree(loop) else "")


def _doubtful(loop: Loop) -> Iterator[tuple[str, str]]:
    """Yield what a reader should know before relying on the checks of a loop that has ended."""
    known = loop.protection
    doubts = ["%s: %s" % (name, ", ".join(found)) for name, found in known.doubts.items()]
    yield "Since the start", watched_words(known.drift)
    yield "Accepted changes", one_line(", ".join(known.accepted), 600)
    yield "Doubtful", one_line("; ".join(doubts), 600)


def counted(counts: dict[str, int]) -> str:
    """Return how many of each there are, in words."""
    shown = [
        "%d %s" % (count, noun if count == 1 else _PLURALS.get(noun, noun + "s"))
        for noun, count in counts.items()
    ]
    return ", ".join(shown) or "nothing"


def closing_report(loop: Loop) -> str:
    """Return the report of a completed goal if the loop has that view, else ""."""
    if "report" not in loop.views:
        return ""
    from gsd_fsm.core.text.progress import report

    return "\n" + report(loop)

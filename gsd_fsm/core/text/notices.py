"""What sessions and users are told about a loop: at the start, with a prompt, and when it ends."""

from __future__ import annotations

from gsd_fsm.core.loop.state import ACTIVE, open_tasks, unmet
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.text.block_text import GROUND_RULES
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import review_words
from gsd_fsm.core.text.quoting import one_line, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop


def resumption(loop: Loop, nonce: str) -> str:
    """A live loop as its own session is told of it."""
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
        told = ["%s: %s" % (n, review_words(loop.reviews[n])) for n in list(loop.reviews)[-5:]]
        lines.append("Reviews: %s" % "; ".join(told))
    left = unmet(loop)
    if loop.criteria:
        named = ", ".join(one_line(name, 160) for name in left[:10])
        lines.append("Unmet criteria: %s" % (named or "none"))
    if loop.last_error and loop.status in ("retrying", "paused"):
        lines.append(quoted("Last error", loop.last_error, nonce, 600))
    words, command = next_step(loop, brief=True)
    lines.append("Next: %s" % one_line(words, 600))
    run = "Run: %s" if active else "If the user wants it to go on, run: %s"
    lines.append(run % one_line(command, 600))
    lines.append(GROUND_RULES % loop.id)
    return "\n".join(lines)


def _progress(loop: Loop) -> str:
    if loop.tasks:
        steps = all(task.step for task in loop.tasks.values())
        done = len(loop.tasks) - len(open_tasks(loop))
        wave = current_wave(loop)
        return "%d/%d %s%s" % (
            done,
            len(loop.tasks),
            "steps" if steps else "tasks",
            " | Wave: %d" % wave if wave else "",
        )
    if loop.gaps:
        closed = [gap for gap in loop.gaps.values() if gap.status == "closed"]
        return "%d/%d gaps closed | Round: %d" % (len(closed), len(loop.gaps), loop.round)
    return "%d/%d criteria" % (len(loop.criteria) - len(unmet(loop)), len(loop.criteria))


def elsewhere(loop: Loop, source: str) -> str:
    """A live loop as a session is told of it that does not own it."""
    if loop.owner:
        whose = "belongs to session %s" % one_line(loop.owner)
        if source == "fork":
            whose += ", which this one may have been forked from"
        then = "This session is not part of it. To go on with it here: gsd-fsm --loop %s resume"
    else:
        whose = "belongs to no session yet"
        then = "The next prompt of the user makes it this session's. It stands: gsd-fsm --loop %s status"
    goal = ' "%s"' % one_line(loop.goal) if loop.goal else ""
    return "[LOOP] gsd-fsm loop %s (%s, %s)%s %s. %s" % (
        loop.id,
        loop.kind,
        loop.status,
        goal,
        whose,
        then % loop.id,
    )


def reminder(loop: Loop) -> str:
    """What the owner's model must know with this prompt; "" when nothing stands in the way."""
    words, command = next_step(loop)
    if loop.status == "paused":
        then = "If the user wants it to go on, run: %s" % command
    elif loop.status != "waiting":
        return ""
    elif loop.wait_for == "human":
        then = "If this message answers it, run: %s (TEXT: the user's answer, quoted)" % command
    else:
        then = "To go on, run: %s" % command
    return "gsd-fsm loop %s: %s %s" % (loop.id, one_line(words, 1_000), one_line(then, 600))


def notice(loop: Loop) -> str:
    """What the user is told of a loop that stands still."""
    if loop.status == "waiting":
        return wait_notice(loop, loop.question or "")
    reason = loop.pause_reason
    if loop.last_error and loop.pause_code in ("blocking", "unknown", "retries", "repeated"):
        reason = "%s: %s" % (one_line(reason, 300), one_line(loop.last_error, 250))
    return pause_notice(loop, loop.pause_code, reason, next_step(loop)[1])


def stranger_notice(loop: Loop) -> str:
    """A live loop as the user of a session is told of it that does not own it."""
    if not loop.owner:
        return "gsd-fsm: loop %s (%s) goes on here with your first prompt" % (loop.id, loop.status)
    return "gsd-fsm: loop %s (%s) belongs to another session. To go on with it here: %s" % (
        loop.id,
        loop.status,
        "gsd-fsm --loop %s resume" % loop.id,
    )


def lost_turn_notice(loop: Loop) -> str:
    return "gsd-fsm: the client, not the loop, ended the turn; loop %s is %s. To rest it: %s" % (
        loop.id,
        loop.status,
        "gsd-fsm --loop %s pause" % loop.id,
    )


def pause_notice(loop: Loop, code: str | None, reason: str | None, command: str) -> str:
    return "gsd-fsm: loop %s paused (%s): %s. To go on: %s" % (
        loop.id,
        code,
        one_line(reason, 600).rstrip("."),
        command,
    )


def wait_notice(loop: Loop, question: str) -> str:
    return (
        "gsd-fsm: loop %s waits for you: %s Answer here, or run: gsd-fsm --loop %s answer TEXT"
        % (
            loop.id,
            one_line(question, 600),
            loop.id,
        )
    )


def completion_notice(loop: Loop) -> str:
    many = "" if loop.iteration == 1 else "s"
    words = "gsd-fsm: loop %s completed after %d iteration%s; its story: gsd-fsm --loop %s replay"
    told = words % (loop.id, loop.iteration, many, loop.id)
    if loop.notes:
        told += "; notes that it never saw: %d" % len(loop.notes)
    return told + closing_report(loop)


def closing_report(loop: Loop) -> str:
    """The report of a goal that is complete, where it is wanted."""
    if "report" not in loop.views:
        return ""
    from gsd_fsm.core.text.progress import report

    return "\n" + report(loop)


def background_notice(loop: Loop, reason: str) -> str:
    return "gsd-fsm: loop %s: %s." % (loop.id, reason)

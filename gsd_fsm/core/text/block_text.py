"""What a blocked agent is told: the next action, specific and short, with the evidence for it."""

from __future__ import annotations

from gsd_fsm.core.codec import quote
from gsd_fsm.core.loop.completion import first_missing, latest_tree
from gsd_fsm.core.loop.state import failed_tasks, open_gaps, undelivered_notes
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.quoting import one_line, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Failure
    from gsd_fsm.core.loop.state import Loop

MAX_TEXT = 7_900
# Escapes make a character up to twelve bytes, and a journal line has its limit too.
_MAX_BYTES = 40_000
_QUOTE = 1_100
_LISTED = 8
_FORBIDDEN = 20
_SHOWN_ERRORS = 3
# What is asked for after a failed verification, unless the settings say something else.
COUNSEL = (
    "Do not try the same again: name the assumption that proved wrong, think of two other ways, "
    "and take the better one."
)
GROUND_RULES = (
    "State is changed by gsd-fsm alone; never edit .gsd by hand. "
    "If the user wants to stop or to talk first: gsd-fsm --loop %s pause"
)
_UNIT = (
    "One iteration is one unit of work: one file, one test, one bug, one endpoint. Then verify it."
)


# How a text that is too long is shortened, step by step: what everything is divided by, how much
# room the notes have, whether the status block is shown. A note is cut last.
_STEPS = ((1, 4_400, True), (2, 4_400, True), (4, 4_400, False), (8, 4_400, False), (8, 1_500, False),
          (20, 600, False))  # fmt: skip


def next_action(loop: Loop, nonce: str, claimed: bool) -> tuple[str, list[int]]:
    """The text of the next block, and the notes that it delivers."""
    most = loop.limits.max_iterations
    number = "%d/%d" % (loop.iteration + 1, most) if most else "%d" % (loop.iteration + 1)
    opening = ["Continuing %s loop iteration %s (%s)." % (loop.kind, number, loop.id)]
    wants, count = first_missing(loop, latest_tree(loop), _LISTED)
    if claimed and not wants:
        opening.append("Your <loop-complete> is recorded; one command is left.")
    elif claimed:
        opening.append("You wrote <loop-complete>, but the loop is not done.")
    words, command = next_step(loop, brief=True)
    for share, room, shows in _STEPS:
        head = [*opening, *_wanted(loop, wants, count, share)]
        head += _learnt(loop, nonce, 300 // share)
        notes, delivered = _notes(loop, nonce, room)
        details = _answer(loop, nonce, share) + notes + _details(loop, nonce, _QUOTE // share)
        if shows and "status-block" in loop.views:
            details += _block(loop)
        tail = [
            "Next: %s" % one_line(words, max(600 // share, 150)),
            "Run: %s" % one_line(command, 600),
            "Do the work, then report it with gsd-fsm. " + GROUND_RULES % loop.id,
        ]
        text = "\n".join(head + details + tail)
        if len(text) <= MAX_TEXT and len(quote(text)) <= _MAX_BYTES:
            return text, delivered
    return "\n".join([opening[0][:200], *tail])[:MAX_TEXT], []


def _wanted(loop: Loop, wants: list[str], count: int, share: int) -> list[str]:
    """What the loop is about, and what keeps it from its end."""
    lines = ["Goal: %s" % one_line(loop.goal, max(600 // share, 80))] if loop.goal else []
    if wants:
        lines.append("Not done yet: %s." % _list(wants, count, 160 // share))
    if loop.must_not:
        first = list(loop.must_not)[:_FORBIDDEN]
        lines.append("Must not: %s." % _list(first, len(loop.must_not), 200 // share))
    return lines + (_ways(loop, share) if loop.kind == "goal" else [])


def _list(texts: list[str], count: int, limit: int) -> str:
    """Return these texts on one line, and how many of `count` are not among them."""
    shown = [one_line(text, max(limit, 20)) for text in texts]
    more = ["and %d more ('gsd-fsm status')" % (count - len(texts))] if count > len(texts) else []
    return "; ".join(shown + more)


def _ways(loop: Loop, share: int) -> list[str]:
    """How a goal is pursued: another way after a failure, in small units."""
    lines = []
    if loop.failed_verifications:
        times = "once" if loop.failed_verifications == 1 else "%d times" % loop.failed_verifications
        counsel = one_line(loop.counsel or COUNSEL, max(2_000 // share, 150))
        lines.append("Verification has failed %s. %s" % (times, counsel))
    lines.append(_UNIT)
    return lines


def _learnt(loop: Loop, nonce: str, room: int) -> list[str]:
    """What was accepted of earlier loops: programs may have written it."""
    lessons = "\n".join([one_line(text, room) for text in loop.recalled[-3:]])
    return [quoted("Learnt before", lessons, nonce, len(lessons))] if lessons else []


def _notes(loop: Loop, nonce: str, room: int) -> tuple[list[str], list[int]]:
    """As many of the undelivered notes as there is room for, the oldest first, at least one."""
    lines: list[str] = []
    delivered: list[int] = []
    for note in undelivered_notes(loop):
        author = "an agent" if note.by == "agent" else "the user"
        line = quoted("Note from %s" % author, note.text, nonce, max(room, 200), note.by)
        if delivered and len(line) > room:
            break
        room -= len(line)
        lines.append(line)
        delivered.append(note.seq)
    return lines, delivered


def _answer(loop: Loop, nonce: str, share: int) -> list[str]:
    if not loop.answer:
        return []
    return [
        quoted("The user has answered; act on it", loop.answer, nonce, 600 // share, "human"),
        "If that was a no: gsd-fsm --loop %s pause" % loop.id,
    ]


def _block(loop: Loop) -> list[str]:
    from gsd_fsm.core.text.progress import status_block

    return [status_block(loop)]


def _details(loop: Loop, nonce: str, room: int) -> list[str]:
    return _failures(loop, nonce, room) + _gap_list(loop) + _evidence(loop, nonce, room)


def _failures(loop: Loop, nonce: str, room: int) -> list[str]:
    lines = []
    most = loop.limits.max_retries
    for task_id in failed_tasks(loop)[:2]:
        task = loop.tasks[task_id]
        title = " (%s)" % one_line(task.title, 120) if task.title else ""
        passing = bool(task.errors) and task.errors[-1].error_class == "transient"
        how = (
            "Try it once more; the next such error pauses"
            if passing
            else "Do not repeat what failed"
        )
        lines.append(
            "Task %s%s failed; this is retry %d of %d. %s."
            % (task_id, title, task.retries, most, how)
        )
        lines += _errors(task.errors, nonce, room)
    if not lines and loop.status == "retrying" and loop.errors:
        lines.append("The loop failed.")
        lines += _errors(loop.errors, nonce, room)
    return lines


def _errors(errors: list[Failure], nonce: str, room: int) -> list[str]:
    """The last different errors, each with what was thought about it."""
    lines = []
    for error in errors[-_SHOWN_ERRORS:]:
        lines.append(quoted("Error at event %d" % error.seq, error.text, nonce, room))
        for name, text in (("Analysis", error.analysis), ("Suggested fix", error.fix)):
            if text:
                lines.append("%s: %s" % (name, one_line(text, max(room // 3, 40))))
    return lines


def _gap_list(loop: Loop) -> list[str]:
    ids = open_gaps(loop)
    lines = []
    for gap_id in ids[:_LISTED]:
        gap = loop.gaps[gap_id]
        where = " in %s" % one_line(gap.file, 120) if gap.file else ""
        again = ", reopened %d times" % gap.reopened if gap.reopened else ""
        lines.append(
            "Gap %s (%s%s%s): %s" % (gap_id, gap.kind, where, again, one_line(gap.description, 240))
        )
    if len(ids) > _LISTED:
        lines.append("and %d more gaps: gsd-fsm --loop %s status" % (len(ids) - _LISTED, loop.id))
    return lines


def _evidence(loop: Loop, nonce: str, room: int) -> list[str]:
    """What the checks of unmet criteria returned last."""
    lines: list[str] = []
    for name, criterion in loop.criteria.items():
        proof = criterion.evidence
        if criterion.met or not proof:
            continue
        if len(lines) == 3:
            break
        state = "stale" if criterion.stale else "exit code %d" % proof["exit_code"]
        what = "Last evidence of %s: %s, %s" % (
            one_line(name, 120),
            one_line(proof["command"], 300),
            state,
        )
        lines.append(quoted(what, proof.get("tail") or "(no output)", nonce, room))
    return lines

"""Compose the text of a block: the next action, specific and short, with the evidence for it."""

from __future__ import annotations

from gsd_fsm.core.codec import quote
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.loop.completion import (
    awaits_complete,
    first_missing,
    latest_tree,
    waits_for_altered,
)
from gsd_fsm.core.loop.protection import unnamed_files
from gsd_fsm.core.loop.state import failed_tasks, open_gaps, undelivered_notes
from gsd_fsm.core.text.next_step import (
    altered_advice,
    altered_remedy,
    is_transient,
    next_step,
    retry_count,
)
from gsd_fsm.core.text.questions import evidence_words
from gsd_fsm.core.text.sanitize import fenced, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop.records import Failure
    from gsd_fsm.core.loop.state import Loop

MAX_TEXT = 7_900
# A character is escaped to up to twelve bytes, and a journal line has its limit too.
_MAX_BYTES = 40_000
_QUOTE = 1_100
_LISTED = 8
_LISTED_MUST_NOTS = 20
_LISTED_ERRORS = 3
# The advice after a failed verification, unless the settings have another one.
COUNSEL = (
    "Do not repeat the same approach: name the assumption that was wrong, think of two "
    "alternatives, and take the better one."
)
_GROUND_RULES = (
    "Only gsd-fsm changes the state of the loop; never edit files in .gsd yourself. "
    "If the user wants to stop or to talk first, run: %s"
)
_UNIT = (
    "One iteration is one unit of work: one file, one test, one bug, one endpoint. Then verify it."
)
# How a text that is too long is shortened, step by step: what the lengths are divided by, the room
# for notes, and whether the status block is shown. Notes are cut last.
_STEPS = ((1, 4_400, True), (2, 4_400, True), (4, 4_400, False), (8, 4_400, False), (8, 1_500, False),
          (20, 600, False))  # fmt: skip


def next_action(loop: Loop, nonce: str, claimed: bool) -> tuple[str, list[int]]:
    """Return the text of the next block, and the notes that it delivers.

    `claimed`: the agent wrote the completion mark.
    """
    most = loop.limits.max_iterations
    number = "%d/%d" % (loop.iteration + 1, most) if most else "%d" % (loop.iteration + 1)
    opening = ["Continuing %s loop iteration %s (%s)." % (loop.kind, number, loop.id)]
    missing, count = first_missing(loop, latest_tree(loop), _LISTED)
    if count < 2 and awaits_complete(loop):
        return _last_action(loop, nonce, opening)
    if claimed:
        opening.append("You wrote <loop-complete>, but the loop is not done.")
    words, command = next_step(loop, brief=True)
    for share, room, shows in _STEPS:
        head = [*opening, *_aim(loop, missing, count, share), *_lessons(loop, nonce, 300 // share)]
        if loop.imported.get("promise") in loop.criteria:
            head.append(_promise(loop, 160 // share))
        notes, delivered = _notes(loop, nonce, room)
        details = [*_answer(loop, nonce, share), *notes, *_details(loop, nonce, _QUOTE // share)]
        if shows and "status-block" in loop.views:
            from gsd_fsm.core.text.progress import status_block

            details.append(status_block(loop))
        tail = [
            "Next: %s" % one_line(words, max(600 // share, 150)),
            "Run: %s" % one_line(command, 600),
            "Do the work, then report it with gsd-fsm. " + ground_rules(loop.id),
        ]
        text = "\n".join(head + details + tail)
        if len(text) <= MAX_TEXT and len(quote(text)) <= _MAX_BYTES:
            return text, delivered
    return "\n".join([opening[0][:200], *tail])[:MAX_TEXT], []


def ground_rules(loop_id: str) -> str:
    """Return what an agent in this loop must not do, and what it may always do."""
    return _GROUND_RULES % command_line("pause", loop_id)


def _last_action(loop: Loop, nonce: str, opening: list[str]) -> tuple[str, list[int]]:
    """Return the text of a block after which only `complete` is left, and the delivered notes."""
    words, command = next_step(loop)
    for share, room, _ in _STEPS:
        notes, delivered = _notes(loop, nonce, room)
        lines = [*_answer(loop, nonce, share), *notes, words, "Run: %s" % command]
        text = "\n".join(opening + lines)
        if len(text) <= MAX_TEXT and len(quote(text)) <= _MAX_BYTES:
            break
    return text, delivered


def _aim(loop: Loop, missing: list[str], count: int, share: int) -> list[str]:
    """Return the goal, what is missing, and how to work on it."""
    lines = ["Goal: %s" % one_line(loop.goal, max(600 // share, 80))] if loop.goal else []
    if missing:
        lines.append("Not done yet: %s." % short_list(missing, count, 160 // share))
    if loop.must_not:
        first = list(loop.must_not)[:_LISTED_MUST_NOTS]
        lines.append("Must not: %s." % short_list(first, len(loop.must_not), 200 // share))
    if loop.kind != "goal":
        return lines
    if loop.failed_verifications:
        times = "once" if loop.failed_verifications == 1 else "%d times" % loop.failed_verifications
        counsel = one_line(loop.counsel or COUNSEL, max(2_000 // share, 150))
        lines.append("Verification has failed %s. %s" % (times, counsel))
    return [*lines, _UNIT]


def _promise(loop: Loop, room: int) -> str:
    """Return what ends a loop whose goal asks for the promise of another tool."""
    phrase = loop.imported["promise"]
    criterion = loop.criteria[phrase]
    steps = [command_line("complete", loop.id)]
    if not criterion.met and criterion.check is not None:
        steps.insert(0, command_line("check", loop.id))
    elif not criterion.met:
        number = list(loop.criteria).index(phrase) + 1
        steps.insert(0, command_line("criterion", loop.id, "%d met" % number))
    words = (
        "This goal comes from another tool. Writing <promise>…</promise> does not end this loop. "
        "Once this is true: %r, run: %s"
    )
    return words % (one_line(phrase, max(room, 40)), ", then: ".join(steps))


def short_list(texts: list[str], count: int, limit: int) -> str:
    """Return these texts on one line, and how many of `count` are not among them."""
    shown = [one_line(text, max(limit, 20)) for text in texts]
    if count > len(texts):
        shown.append("and %d more (run: %s)" % (count - len(texts), command_line("status")))
    return "; ".join(shown)


def _lessons(loop: Loop, nonce: str, room: int) -> list[str]:
    """Return the accepted lessons of earlier loops; programs may have written them."""
    lessons = "\n".join([one_line(text, room) for text in loop.recalled[-3:]])
    return [fenced("Lessons of earlier loops", lessons, nonce, len(lessons))] if lessons else []


def _notes(loop: Loop, nonce: str, room: int) -> tuple[list[str], list[int]]:
    """Return as many undelivered notes as there is room for, the oldest first, at least one."""
    lines: list[str] = []
    delivered: list[int] = []
    for note in undelivered_notes(loop):
        author = "an agent" if note.by == "agent" else "the user"
        line = fenced("Note from %s" % author, note.text, nonce, max(room, 200), note.by)
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
        fenced("The user has answered; act on it", loop.answer, nonce, 600 // share, "human"),
        "If the answer is no, run: %s" % command_line("pause", loop.id),
    ]


def _details(loop: Loop, nonce: str, room: int) -> list[str]:
    return (
        _altered(loop) + _failures(loop, nonce, room) + _gaps(loop) + _evidence(loop, nonce, room)
    )


def _altered(loop: Loop) -> list[str]:
    """Return the altered files that no block has named yet; the next step names those left alone."""
    files = [] if waits_for_altered(loop) else unnamed_files(loop)[:_LISTED]
    return [
        "Note: %s Run: %s" % (altered_advice(file), altered_remedy(loop, file)) for file in files
    ]


def _failures(loop: Loop, nonce: str, room: int) -> list[str]:
    lines = []
    for task_id in failed_tasks(loop)[:2]:
        task = loop.tasks[task_id]
        title = " (%s)" % one_line(task.title, 120) if task.title else ""
        failed = "failed with a transient error" if is_transient(task) else "failed"
        advice = (
            "Another transient error pauses the loop."
            if is_transient(task)
            else "Do not repeat what failed."
        )
        count = retry_count(loop, task)
        lines.append("Task %s%s %s; this is %s. %s" % (task_id, title, failed, count, advice))
        lines += _errors(task.errors, nonce, room)
    if not lines and loop.status == "retrying" and loop.errors:
        lines.append("The loop failed.")
        lines += _errors(loop.errors, nonce, room)
    return lines


def _errors(errors: list[Failure], nonce: str, room: int) -> list[str]:
    """Return the last different errors, each with its analysis and suggested fix."""
    lines = []
    for error in errors[-_LISTED_ERRORS:]:
        lines.append(fenced("Error at event %d" % error.seq, error.text, nonce, room))
        for name, text in (("Analysis", error.analysis), ("Suggested fix", error.fix)):
            if text:
                lines.append("%s: %s" % (name, one_line(text, max(room // 3, 40))))
    return lines


def _gaps(loop: Loop) -> list[str]:
    ids = open_gaps(loop)
    lines = []
    for gap_id in ids[:_LISTED]:
        gap = loop.gaps[gap_id]
        about = gap.kind + (" in %s" % one_line(gap.file, 120) if gap.file else "")
        if gap.reopened:
            about += ", reopened " + ("once" if gap.reopened == 1 else "%d times" % gap.reopened)
        lines.append("Gap %s (%s): %s" % (gap_id, about, one_line(gap.description, 240)))
    if len(ids) > _LISTED:
        status = command_line("status", loop.id)
        lines.append("and %d more gaps (run: %s)" % (len(ids) - _LISTED, status))
    return lines


def _evidence(loop: Loop, nonce: str, room: int) -> list[str]:
    """Return what the checks of the first three unmet criteria returned last."""
    lines: list[str] = []
    for name, criterion in loop.criteria.items():
        proof = criterion.evidence
        if criterion.met or not proof:
            continue
        if len(lines) == 3:
            break
        command = one_line(proof["command"], 300)
        result = evidence_words(criterion, "exit code")
        what = "Last evidence for %s: %s, %s" % (one_line(name, 120), command, result)
        lines.append(fenced(what, proof.get("tail") or "(no output)", nonce, room))
    return lines

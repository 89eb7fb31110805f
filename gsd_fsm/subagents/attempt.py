"""What went before: the errors of earlier attempts, and what a human decided since."""

from __future__ import annotations

from gsd_fsm.core.loop.records import Task
from gsd_fsm.core.text.quoting import one_line, quoted
from gsd_fsm.subagents.frame import block, element, framed

_ERROR, _THOUGHT, _QUESTION = 4_000, 1_500, 6_000


def previous_attempt(task: Task, max_retries: int, nonce: str) -> str:
    """The last different errors, the oldest first, "" for a task that has not failed yet.

    What programs said is quoted as data: it can neither end the quotation nor give orders.
    """
    if not task.errors:
        return ""
    parts = ["Do not repeat what failed."]
    for error in task.errors:
        what = f"Error at event {error.seq}"
        parts += [
            element("error", _data(what, error.text, nonce, _ERROR)),
            element("tdd_attempts", str(error.attempts or "")),
            element("analysis", one_line(error.analysis, _THOUGHT)),
            element("suggested_fix", one_line(error.fix, _THOUGHT)),
        ]
    parts.append(element("attempt", f"{task.retries} of {max_retries}"))
    return block("previous_attempt", parts)


def decision(task: Task, nonce: str) -> str:
    """What the task had asked and a human has answered, "" where nothing was decided."""
    if not task.answer:
        return ""
    question = task.question
    asked = _data("It was asked", question, nonce, _QUESTION) if question else ""
    said = "A human has decided this. Act on the answer; do not ask again."
    parts = [element("question", asked), element("answer", framed(task.answer)), said]
    return block("decision", parts)


def _data(what: str, text: str, nonce: str, room: int) -> str:
    # Even who has guessed the nonce cannot write it into a quotation.
    return quoted(what, text.replace(nonce, "[nonce]"), nonce, room)

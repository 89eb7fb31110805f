"""Answer the question of a loop, and change its mode."""

from __future__ import annotations

from dataclasses import dataclass

from gsd_fsm.core.journal.transaction import Transaction
from gsd_fsm.core.loop.events.waits import is_no
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.questions import may_decline
from gsd_fsm.engine.branches import Switch, take_branch
from gsd_fsm.engine.checkpoints import set_first_checkpoint
from gsd_fsm.engine.context import Context, Receipt, receipt
from gsd_fsm.engine.follow_plan import (
    append_question,
    repository_of,
    require_human,
)

# How the reason of a pause begins that follows a no.
DECLINED = "the user declined:"


@dataclass(frozen=True)
class Decision:
    """An answer, or a change of mode, and the switch of branch that it led to."""

    receipt: Receipt
    switch: Switch | None = None
    # The branch that is kept after a no to another one.
    stays_on: str | None = None


def answer(context: Context, text: str) -> Decision:
    """Answer the question that the loop is waiting for; a no to the engine's own pauses it."""
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        asked, question = loop.asked or "", loop.question
        tx.append(loop, "answer", {"text": text})
        if is_no(text) and may_decline(asked):
            pause = {"code": "manual", "reason": f"{DECLINED} {question}", "declined": True}
            tx.append(loop, "pause", pause, by="cli")
        elif not _is_about_branch(asked) or is_no(text):
            append_question(tx, loop)
    if _is_about_branch(asked) and is_no(text):
        repository = repository_of(context.project)
        stays_on = (repository.branch() if repository else None) or "the present commit"
        return Decision(_begun(context, receipt(tx, loop)), stays_on=stays_on)
    return _decided(context, tx, loop, _is_about_branch(asked))


def set_mode(context: Context, mode: str) -> Decision:
    """Change the mode; yolo also answers the pending question, if a yes or a no does."""
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        asked = (loop.asked or "") if loop.status == "waiting" else ""
        if mode == "yolo":
            require_human(loop, context.author, "end the questions of")
        tx.append(loop, "mode", {"mode": mode})
        takes_branch = mode == "yolo" and _is_about_branch(asked)
        if takes_branch or (mode == "yolo" and may_decline(asked)):
            tx.append(loop, "answer", {"text": "go on without asking"})
        if not takes_branch:
            append_question(tx, loop)
    return _decided(context, tx, loop, takes_branch)


def _is_about_branch(asked: str) -> bool:
    return asked.startswith("branch:")


def _decided(context: Context, tx: Transaction, loop: Loop, takes_branch: bool) -> Decision:
    switch = take_branch(context, loop) if takes_branch else None
    proof = switch.receipt if switch else receipt(tx, loop)
    return Decision(_begun(context, proof), switch)


def _begun(context: Context, proof: Receipt) -> Receipt:
    """Set the first checkpoint, if nothing is left to decide; return the receipt."""
    warning = set_first_checkpoint(context, proof.loop).warning
    context.notices += [warning] if warning else []
    return proof

"""Complete a loop, then carry out the effects of its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from gsd_fsm.core.errors import CannotWrite, GsdError, Refused
from gsd_fsm.core.journal.journal import Journal, Transaction
from gsd_fsm.core.loop.completion import conditions, has_tree, stale
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.limits import MOST_TASKS
from gsd_fsm.core.loop.state import Loop, open_tasks
from gsd_fsm.core.text.notices import closing_report
from gsd_fsm.core.usage.task_list import list_changes
from gsd_fsm.engine.context import Context, Receipt, head_of, one_at_a_time, receipt, require_trust
from gsd_fsm.engine.effects import carry_out
from gsd_fsm.engine.planned.phase_end import (
    Ending,
    branch_of,
    ends_phase,
    last_checkpoint,
    last_tag,
)
from gsd_fsm.evidence.gate_tasks import blocker_titles, gate_task


class Completion(NamedTuple):
    """A completed loop, what this call contributed to it, and the report of its end."""

    receipt: Receipt
    already_completed: bool
    finished: list[str]
    tag: str | None
    written: list[str]
    report: str


@one_at_a_time
def complete(context: Context) -> Completion:
    """Complete a loop and carry out the effects; on a completed loop only those that are missing.

    Raises Refused while the completion rule does not hold, and CannotWrite if an effect fails:
    then the loop is completed, and the same call finishes the rest.
    """
    journal, loops = context.read()
    loop = _chosen(context, loops)
    require_trust(loops, journal.path)  # git may run programs that a repository names
    if loop.status == "completed":
        proof = Receipt(loop, loops.seq, head_of(journal))
        return _finished(context, proof, already_completed=True)
    tree = _tree_now(context, loop)
    _require_documents(context, journal, loop, tree)
    checkpoint = last_checkpoint(context, loop)
    facts = {"tree": tree, "branch": branch_of(context, loop)}
    data = {name: value for name, value in facts.items() if value is not None}
    with context.transaction() as tx:
        loop = _chosen(context, tx.loops)
        outdated, left = _append_end(tx, loop, data, checkpoint, context.author.session)
    if outdated or left:
        raise _not_done(loop, outdated, left)
    return _finished(context, receipt(tx, loop), already_completed=False)


def _chosen(context: Context, loops: Loops) -> Loop:
    """Return the loop to complete, or the caller's own that ended last."""
    loop = context.loop_or_last(loops)
    session = context.author.session
    is_foreign = session is not None and loop.owner not in (None, session)
    is_over = loop.status == "cancelled" or is_foreign
    if context.loop_id is None and not loop.is_live and is_over:
        return context.loop(loops)  # raises: there is nothing to complete
    return loop


def _tree_now(context: Context, loop: Loop) -> str | None:
    """Return the content of the work tree, if evidence of the loop is bound to one."""
    if not has_tree(loop):
        return None
    from gsd_fsm.git.tree import content_tree

    tree = content_tree(context.project)
    if tree is None:
        raise CannotWrite(
            "the evidence is bound to the content of a git work tree, and git cannot read it now",
            "Fix git here, or check again without it: gsd-fsm check",
        )
    return tree


def _require_documents(context: Context, journal: Journal, loop: Loop, tree: str | None) -> None:
    """Raise before the event if the loop may complete but its documents cannot be written."""
    if not ends_phase(loop) or not loop.is_active or stale(loop, tree):
        return
    with journal.dry_run(context.author) as tx:
        tx.append(tx.loops.by_id[loop.id], "complete", {"tree": tree})
    Ending(context, loop).changes()


def _append_end(
    tx: Transaction,
    loop: Loop,
    data: dict[str, str],
    checkpoint: dict[str, Any] | None,
    session: str | None,
) -> tuple[list[str], list[str]]:
    """Append `complete`, or what keeps the loop from it; return outdated criteria and conditions."""
    tree = data.get("tree")
    outdated = stale(loop, tree) if loop.is_active else []
    left: list[str] = []
    for name in outdated:
        tx.append(loop, "criterion", {"criterion": name, "met": False, "stale": True}, by="cli")
    if loop.kind == "goal" and loop.is_active:
        left = _append_gate_tasks(tx, loop, tree, loop.owner or session or "")
    if not outdated and not left:
        if checkpoint is not None:
            tx.append(loop, "checkpoint", checkpoint, by="cli")
        tx.append(loop, "complete", data)
    return outdated, left


def _append_gate_tasks(tx: Transaction, loop: Loop, tree: str | None, session: str) -> list[str]:
    """Add a task for each condition that a goal lacks; return the conditions."""
    for data in list_changes(loop, session):
        tx.append(loop, "task", data, by="cli")
    for data in _missing_blockers(loop):
        tx.append(loop, "task", data, by="cli")
    wanted = conditions(loop, tree)
    for data in _gate_tasks(loop, wanted):
        tx.append(loop, "task", data, by="cli")
    return [words for _, words in wanted]


def _gate_tasks(loop: Loop, wanted: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Return a task for each failed condition that has none, as far as there is room."""
    for key, words in wanted:
        is_known = key in loop.criterion_tasks or key in loop.gate_tasks
        if len(loop.tasks) < MOST_TASKS and not is_known and not key.startswith("task:"):
            yield gate_task(loop.tasks, "F", words, key)


def _missing_blockers(loop: Loop) -> Iterator[dict[str, Any]]:
    """Return the tasks of a failed review whose recording was interrupted."""
    review = loop.reviews.get("thorough")
    left = review.blockers_remaining or 0 if review and not review.passed else 0
    known = [task.title for task in loop.tasks.values() if task.condition == "blocker"]
    for title in blocker_titles([], left, known):
        yield gate_task(loop.tasks, "B", title, "blocker")


def _not_done(loop: Loop, outdated: list[str], left: list[str]) -> Refused:
    why = list(left)
    if outdated:
        changed = f"the content changed after the checks of {', '.join(outdated)}"
        why.insert(0, f"{changed}, so their evidence is stale")
    gates = [name for name in open_tasks(loop) if loop.tasks[name].condition]
    as_tasks = f". Each is a task now: {', '.join(gates)}" if gates else ""
    return Refused(
        f"loop {loop.id} is {loop.status} and not done: {'; '.join(why)}{as_tasks}",
        f"Run: gsd-fsm --loop {loop.id} check" if outdated else "Run: gsd-fsm next",
    )


def _finished(context: Context, proof: Receipt, *, already_completed: bool) -> Completion:
    """Carry out the effects of a completed loop; raise CannotWrite if one fails."""
    loop = proof.loop
    try:
        outcome = carry_out(context, loop)
    except GsdError as error:
        raise _unfinished(loop, error.message) from error
    if outcome.failed:
        raise _unfinished(loop, outcome.problem)
    tag = last_tag(loop)
    report = closing_report(loop).strip()
    if ends_phase(loop):
        report = "" if already_completed else Ending(context, loop).report()
    return Completion(
        proof,
        already_completed,
        [effect.what for effect in outcome.done],
        tag if tag in loop.checkpoints else None,
        [path for effect in outcome.done for path in effect.files],
        report,
    )


def _unfinished(loop: Loop, problem: str) -> CannotWrite:
    return CannotWrite(
        f"loop {loop.id} is completed, but its effects are unfinished: {problem}",
        f"Fix the cause, then run: gsd-fsm --loop {loop.id} complete",
    )

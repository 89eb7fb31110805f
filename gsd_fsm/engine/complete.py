"""Complete a loop, then carry out the effects of its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CannotWrite, GsdError, Refused
from gsd_fsm.core.hook.memory import append_failures
from gsd_fsm.core.loop.completion import (
    completes_from_pause,
    conditions,
    gives_exit_signal,
    has_tree,
    needs_clean_room,
    stale,
    waits_for_altered,
)
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.limits import MOST_TASKS
from gsd_fsm.core.loop.state import Loop, open_tasks
from gsd_fsm.core.text.next_step import altered_remedy, altered_words
from gsd_fsm.core.text.notices import closing_report
from gsd_fsm.core.usage.task_list import list_changes
from gsd_fsm.engine.content import content_of
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, one_at_a_time
from gsd_fsm.engine.effects import carry_out
from gsd_fsm.engine.planned.phase_end import (
    Ending,
    ending_place,
    ends_phase,
    last_tag,
    require_branch,
)
from gsd_fsm.engine.planned.recheck import recheck
from gsd_fsm.engine.protection.accept import find_now
from gsd_fsm.engine.protection.clean_room import pass_clean_room
from gsd_fsm.engine.protection.compare import Finding, identity_of, record_finding
from gsd_fsm.engine.protection.witness import changed_git
from gsd_fsm.evidence.gate_tasks import blocker_titles, gate_task
from gsd_fsm.evidence.interruption import Watch, in_silence
from gsd_fsm.protection.environment import differing

if TYPE_CHECKING:
    from gsd_fsm.git.tree import Content


class Completion(NamedTuple):
    """A completed loop, what this call contributed to it, and the report of its end."""

    receipt: Receipt
    already_completed: bool
    finished: list[str]
    tag: str | None
    written: list[str]
    report: str


@one_at_a_time
def complete(context: Context, watch: Watch = in_silence) -> Completion:
    """Complete a loop and carry out the effects; on a completed loop only those that are missing.

    In a goal loop this gives the exit signal, if that is all that is missing. Raises Refused while the completion rule does not hold, and CannotWrite if an effect fails:
    then the loop is completed, and the same call finishes the rest.
    """
    # Trusted: git may run programs that a repository names.
    loop = context.unthrottled(_chosen(context, context.read()))
    if loop.status == "completed":
        return _finished(context, context.receipt(loop), already_completed=True)
    require_branch(context, loop)
    content = _content_now(context, loop)
    finding = find_now(context, loop, content)
    _require_unaltered(context, loop, finding)
    recheck(context, loop)
    tree = content.tree if content else None
    _require_documents(context, loop, tree)
    is_due = _can_complete(loop) and not _conditions(loop, tree)
    is_clean = is_due and pass_clean_room(context, loop, tree, watch)
    branch, checkpoint = ending_place(context, loop)
    known = loop.protection.environment
    facts = {
        "tree": tree,
        "branch": branch,
        "watched": finding.watched,
        "clean": is_clean,
        "variables": differing(known, os.environ) if known else [],
        "programs": changed_git(context, loop.protection, os.environ) if tree else [],
    }
    data = {name: value for name, value in facts.items() if value}
    with context.transaction() as whole:
        tx = LoopTransaction(whole, _chosen(context, whole.loops))
        loop = tx.loop
        append_failures(whole, loop, "cli")
        outdated, left = _append_obstacles(context, tx, tree)
        if not outdated and not left:
            if checkpoint is not None:
                tx.append("checkpoint", checkpoint, by="cli")
            if gives_exit_signal(loop) and not loop.exit_signal:
                tx.append("exit", {"reason": "given by complete"})
            tx.append("complete", data)
    if outdated or left:
        raise _not_done(loop, outdated, left)
    return _finished(context, tx.receipt, already_completed=False)


def _chosen(context: Context, loops: Loops) -> Loop:
    """Return the loop to complete, or the caller's own that ended last."""
    loop = context.loop_or_last(loops)
    session = context.session
    is_foreign = session is not None and loop.owner not in (None, session)
    is_over = loop.status == "cancelled" or is_foreign
    if context.loop_id is None and not loop.is_live and is_over:
        return context.loop(loops)  # raises: there is nothing to complete
    return loop


def _content_now(context: Context, loop: Loop) -> Content | None:
    """Return the content of the work tree, if the loop depends on it or its end is to show it."""
    is_protected = bool(loop.protection.files or loop.protection.watched)
    if not has_tree(loop) and not needs_clean_room(loop) and not is_protected:
        return None
    content = content_of(context, loop)
    if content is None and (has_tree(loop) or needs_clean_room(loop)):
        raise CannotWrite(
            "git cannot read the work tree that the evidence was taken from",
            "Fix git, or run the checks again: gsd-fsm check",
        )
    return content


def _require_unaltered(context: Context, loop: Loop, finding: Finding) -> None:
    """Record which protected files are altered; raise Refused if nothing else prevents the end."""
    if not finding.altered and not loop.protection.altered:
        return
    with context.writing(loop) as tx:
        record_finding(tx, finding)
    if waits_for_altered(tx.loop) and _can_complete(tx.loop):
        file = tx.loop.protection.altered[0]
        other = altered_remedy(tx.loop, file, "accept")
        raise Refused(
            f"loop {loop.id} is {tx.loop.status} and not done: {altered_words(file)}",
            f"Run: {altered_remedy(tx.loop, file)}. Or, as a user: {other}",
        )


def _require_documents(context: Context, loop: Loop, tree: str | None) -> None:
    """Raise before the event if the loop may complete but its documents cannot be written."""
    if ends_phase(loop) and _can_complete(loop) and not stale(loop, tree):
        with context.dry_run(loop) as tx:
            tx.append("complete", {"tree": tree, "clean": True})
        Ending(context, loop).changes()


def _can_complete(loop: Loop) -> bool:
    return loop.is_active or completes_from_pause(loop)


def _append_obstacles(
    context: Context, tx: LoopTransaction, tree: str | None
) -> tuple[list[str], list[str]]:
    """Append what keeps a loop from its end; return outdated criteria and conditions.

    Each condition that an active goal lacks becomes a task, as far as there is room.
    """
    loop = tx.loop
    session = loop.owner or context.session or ""
    outdated = [*stale(loop, tree), *_stale_outside(context, loop)] if _can_complete(loop) else []
    outdated = list(dict.fromkeys(outdated))
    for name in outdated:
        tx.append("criterion", {"criterion": name, "met": False, "stale": True}, by="cli")
    if loop.kind != "goal" or not _can_complete(loop):
        return outdated, []
    if not loop.is_active:  # a paused loop takes no tasks
        unknown = ["the client's task list has changed"] if list_changes(loop, session) else []
        return outdated, [words for _, words in _conditions(loop, tree)] + unknown
    for changes in (list_changes(loop, session), _missing_blockers(loop)):
        for data in changes:
            tx.append("task", data, by="cli")
    wanted = _conditions(loop, tree)
    for key, words in wanted:
        is_known = key in loop.criterion_tasks or key in loop.gate_tasks
        is_work = not key.startswith(("task:", "altered:"))
        if len(loop.tasks) < MOST_TASKS and not is_known and is_work:
            tx.append("task", gate_task(loop.tasks, "F", words, key), by="cli")
    return outdated, [words for _, words in wanted]


def _stale_outside(context: Context, loop: Loop) -> list[str]:
    """Return the met criteria that name files outside of the tree which are not as they were."""

    def is_as_then(file: dict[str, Any]) -> bool:
        now = identity_of(context.project / file["path"])
        return now == file["digest"] if "digest" in file else now is not None

    criteria = [it for it in loop.criteria.values() if it.met]
    files = {it.name: (it.evidence or {}).get("outside", ()) for it in criteria}
    return [name for name, named in files.items() if not all(map(is_as_then, named))]


def _conditions(loop: Loop, tree: str | None) -> list[tuple[str, str]]:
    """Return the conditions that `complete` itself cannot bring about."""
    implied = "exit" if gives_exit_signal(loop) else ""
    return [(key, words) for key, words in conditions(loop, tree) if key != implied]


def _missing_blockers(loop: Loop) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a failed review whose recording was interrupted."""
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
        f"Run: {command_line('check', loop.id)}" if outdated else "Run: gsd-fsm next",
    )


def _finished(context: Context, proof: Receipt, *, already_completed: bool) -> Completion:
    """Carry out the effects of a completed loop; raise CannotWrite if one fails."""
    loop = proof.loop
    try:
        outcome = carry_out(context, loop)
        problem = outcome.problem
    except GsdError as error:
        problem = error.message
    if problem:
        raise CannotWrite(
            f"loop {loop.id} is completed, but its effects are unfinished: {problem}",
            f"Fix the cause, then run: {command_line('complete', loop.id)}",
        )
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

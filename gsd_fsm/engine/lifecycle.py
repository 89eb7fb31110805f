"""Let a loop wait, answer it, pause, resume and cancel it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gsd_fsm.core.journal.journal import Journal, Transaction
from gsd_fsm.core.loop.events.lifecycle import used_up_tasks
from gsd_fsm.core.loop.events.sessions import is_no
from gsd_fsm.core.loop.state import Loop, open_gaps, open_work, unmet
from gsd_fsm.core.loop.waves import running_tasks
from gsd_fsm.core.text.questions import may_decline
from gsd_fsm.core.usage.transcript import is_resting
from gsd_fsm.engine.context import Context, Receipt, one_at_a_time, receipt, require_trust
from gsd_fsm.engine.planned.branches import Switch, branch_effects, take_branch
from gsd_fsm.engine.planned.checkpoints import set_first_checkpoint, task_effects
from gsd_fsm.engine.planned.plan import (
    accept_plan_change,
    append_question,
    require_human,
)

# How the reason of a pause begins that follows a no.
DECLINED = "the user declined:"


class Share(NamedTuple):
    """The done and the remaining parts of a loop, of one kind."""

    done: list[str]
    remaining: list[str]


class Cancellation(NamedTuple):
    """A cancelled loop: how much of its tasks, gaps and criteria was done."""

    receipt: Receipt
    shares: dict[str, Share]


def ask(context: Context, question: str) -> Receipt:
    """Wait for the user's answer to this question."""
    return context.append("wait", {"for": "human", "question": question})


def wait_until(context: Context, time: str, question: str | None = None) -> Receipt:
    """Wait until the limit of the client ends."""
    more = {"question": question} if question else {}
    return context.append("wait", {"for": "throttled", "until": time, **more})


def pause(context: Context, reason: str | None = None) -> Receipt:
    """Pause a loop until `resume`."""
    by = "an agent" if context.author.by == "agent" else "hand"
    return context.append("pause", {"code": "manual", "reason": reason or f"paused by {by}"})


def cancel(context: Context, reason: str | None = None) -> Cancellation:
    """End a loop for good."""
    proof = context.append("cancel", {"reason": reason} if reason else {})
    loop = proof.loop
    work = [name for name, task in loop.tasks.items() if task.is_work]
    shares = {
        "tasks": _share(work, open_work(loop)),
        "gaps": _share(list(loop.gaps), open_gaps(loop)),
        "criteria": _share(list(loop.criteria), unmet(loop)),
    }
    return Cancellation(proof, shares)


def _share(names: list[str], remaining: list[str]) -> Share:
    left = set(remaining)
    return Share([name for name in names if name not in left], remaining)


# answers


class Decision(NamedTuple):
    """An answer, or a change of mode, and the switch of branch that it led to."""

    receipt: Receipt
    switch: Switch | None = None
    # The branch that is kept after a no to another one.
    stays_on: str | None = None


@one_at_a_time
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
        repository = context.repository_or_none()
        stays_on = (repository.branch() if repository else None) or "the present commit"
        return Decision(_begun(context, receipt(tx, loop)), stays_on=stays_on)
    return _decided(context, tx, loop, _is_about_branch(asked))


@one_at_a_time
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


# resume


class Running(NamedTuple):
    """A task that was running: its reference, and its TDD phase."""

    task: str
    ref: str | None
    phase: str | None


class Resumed(NamedTuple):
    """A resumed loop; of a planned one, what was interrupted and which commits are on the branch."""

    receipt: Receipt
    switch: Switch | None
    running: list[Running]
    verified_commits: int
    missing_commits: list[str]


@one_at_a_time
def resume(context: Context, add: Mapping[str, float]) -> Resumed:
    """Resume a loop in the calling session, with `add` added to its limits.

    The whole journal is verified and replayed by the state machine first. Effects that a killed
    command left unfinished are finished.
    """
    from gsd_fsm.history.replay import Replay

    # A journal of its own: the transaction below must not step the machine.
    replay = Replay(Journal(context.gsd, keep=context.loop_id))
    replay.run()
    require_trust(replay.loops, context.gsd)
    switches = any(branch_effects(context, context.loop(replay.loops)))
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        if loop.status == "paused" and (loop.pause_reason or "").startswith(DECLINED):
            require_human(loop, context.author, "continue against a no in")
        still_asked = _still_asked(loop)
        tx.append(loop, "resume", _data(context, loop, add))
        if not switches:
            accept_plan_change(tx, context.project, loop, context.author)
            if still_asked:
                tx.append(loop, "wait", still_asked, by="cli")
            append_question(tx, loop)
    switch = take_branch(context, loop) if switches else None
    proof = switch.receipt if switch else receipt(tx, loop)
    first = set_first_checkpoint(context, proof.loop).warning
    context.notices += [*([first] if first else []), *task_effects(context, proof.loop)]
    return Resumed(proof, switch, *_interrupted(context, proof.loop))


def _data(context: Context, loop: Loop, add: Mapping[str, float]) -> dict[str, Any]:
    data: dict[str, Any] = {"add": dict(add)} if add else {}
    if loop.kind == "goal":
        views = list(context.settings()["views"])
        data.update({"views": views} if views != loop.views else {})
    retried = used_up_tasks(loop) if "max_retries" in add else []
    data.update({"retry": retried} if retried else {})
    if is_resting(loop) or loop.owner != context.author.session:
        data["anew"] = True
    return data


def _still_asked(loop: Loop) -> dict[str, str] | None:
    """Return the wait for a decision that resuming does not make: it is more than yes or no."""
    if loop.status != "waiting" or loop.asked is None or may_decline(loop.asked):
        return None
    return {"for": "human", "question": loop.question or "", "about": loop.asked}


def _interrupted(context: Context, loop: Loop) -> tuple[list[Running], int, list[str]]:
    """Return the running tasks, the number of commits found, and the tasks whose commit is not."""
    if not loop.is_planned:
        return [], 0, []
    running = [
        Running(name, loop.tasks[name].ref, loop.tasks[name].phase) for name in running_tasks(loop)
    ]
    commits = {name: task.commit for name, task in loop.tasks.items() if task.commit}
    repository = context.repository_or_none() if commits else None
    if repository is None:
        return running, 0, []
    here = repository.contained(commits.values())
    missing = [name for name, commit in commits.items() if commit not in here]
    return running, len(commits) - len(missing), missing

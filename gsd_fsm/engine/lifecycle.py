"""Let a loop wait, answer it, pause, resume and cancel it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import GsdError, Refused, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.events.lifecycle import used_up_tasks
from gsd_fsm.core.loop.events.sessions import NO, YES, decision_of, open_questions
from gsd_fsm.core.loop.state import Loop, open_gaps, open_work, unmet
from gsd_fsm.core.loop.waves import running_tasks
from gsd_fsm.core.text.questions import is_yes_or_no, may_decline
from gsd_fsm.core.usage.transcript import is_resting
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.context import Context, Receipt, one_at_a_time, require_trust
from gsd_fsm.engine.journals import live_loops, refuse_agents
from gsd_fsm.engine.planned.branches import branch_effects, take_branch
from gsd_fsm.engine.planned.checkpoints import (
    awaits_first_checkpoint,
    finish_tasks,
    recorded_commits,
    rewritten_tasks,
    try_checkpoint,
)
from gsd_fsm.engine.planned.plan import (
    accept_plan_change,
    append_consequences,
    append_question,
    append_wave_files,
)

# Prefix of the pause reason after the user declines.
DECLINED = "the user declined:"
YES_OR_NO = f"Yes is one of: {', '.join(YES)}. No is one of: {', '.join(NO)}."


class Cancellation(NamedTuple):
    """A cancelled loop; which of its tasks, gaps and criteria are `done`, which `remaining`."""

    receipt: Receipt
    work: dict[str, dict[str, list[str]]]


def ask(context: Context, question: str) -> Receipt:
    """Wait for the user's answer to this question."""
    asked = redact_and_truncate(question, 4_000)
    return context.append("wait", {"for": "human", "question": asked})


def wait_until(context: Context, time: str, question: str | None = None) -> Receipt:
    """Wait until the limit of the client ends."""
    more = {"question": redact_and_truncate(question, 4_000)} if question else {}
    return context.append("wait", {"for": "throttled", "until": time, **more})


class Pause(NamedTuple):
    """A paused loop, and whether this call has paused it."""

    receipt: Receipt
    is_new: bool


def pause(context: Context, reason: str | None = None) -> Pause:
    """Pause a loop until `resume`; append nothing if it is paused already."""
    by = "an agent" if context.author.by == "agent" else "hand"
    why = redact_and_truncate(reason, 2_000) if reason else f"paused by {by}"
    with context.writing() as tx:
        is_new = tx.loop.status != "paused"
        if is_new:
            tx.append("pause", {"code": "manual", "reason": why})
    return Pause(tx.receipt, is_new)


def pause_all(
    context: Context, reason: str | None = None
) -> Iterator[tuple[str, str | None, Pause | GsdError]]:
    """Pause every live loop on this machine; yield project, loop and result of each.

    A problem with one does not stop the others; the loop is None if a journal cannot be read.
    Raise CannotWrite for an agent: the loops of other projects are not its own.
    """
    refuse_agents(context, "pause all loops on this machine", "pause --all")
    for project, found in list(live_loops()):
        if isinstance(found, GsdError):
            yield project, None, found
            continue
        try:
            yield project, found.id, pause(type(context)(project, found.id, context.author), reason)
        except GsdError as error:
            yield project, found.id, error


def cancel(context: Context, reason: str | None = None) -> Cancellation:
    """End a loop for good."""
    why = {"reason": redact_and_truncate(reason, 2_000)} if reason else {}
    proof = context.append("cancel", why)
    loop = proof.loop
    parts = {
        "tasks": ([task.id for task in loop.tasks.values() if task.is_work], open_work(loop)),
        "gaps": (loop.gaps, open_gaps(loop)),
        "criteria": (loop.criteria, unmet(loop)),
    }
    work = {}
    for what, (names, remaining) in parts.items():
        left = set(remaining)
        work[what] = {"done": [name for name in names if name not in left], "remaining": remaining}
    return Cancellation(proof, work)


def release(context: Context) -> Receipt:
    """Take a loop from the session that owns it; it waits for another one."""
    return context.append("session", {"action": "release"})


# answers


class Decision(NamedTuple):
    """An answer, or a change of mode, and a sentence about the branch, if it was about one."""

    receipt: Receipt
    note: str = ""


@one_at_a_time
def answer(context: Context, text: str, question_id: str | None = None) -> Decision:
    """Answer the question that the loop is waiting for; a no to the engine's own pauses it.

    `question_id` is required while more than one is open. Raise UsageError, and record nothing, if
    only yes or no answers the question and `text` is neither.
    """
    text = redact_and_truncate(text, 4_000)
    with context.writing() as tx:
        loop = tx.loop
        data, asked, question = _answered(loop, text, question_id)
        about_branch = asked.startswith("branch:")
        no = data.get("yes") is False
        tx.append("answer", data)
        if no and may_decline(asked):
            pause = {"code": "manual", "reason": f"{DECLINED} {question}", "declined": True}
            tx.append("pause", pause, by="cli")
        elif no or not about_branch:
            append_consequences(tx, context.project)
    if not about_branch or not no:
        return _decided(context, loop, takes_branch=about_branch)
    repository = context.repository_or_none()
    stays_on = (repository.branch() if repository else None) or "the current commit"
    note = f"Continuing on {stays_on}. Changes will be on base branch."
    return Decision(_decided(context, loop, takes_branch=False).receipt, note)


def _answered(
    loop: Loop, text: str, question_id: str | None
) -> tuple[dict[str, Any], str, str | None]:
    """Return the data of an `answer`, and the key and the words of its question."""
    data: dict[str, Any] = {"text": text}
    asked, question = loop.asked or "", loop.question
    left = open_questions(loop)
    if left:
        chosen = next((it for it in left if it.id == question_id), None)
        if chosen is None and question_id is None and len(left) == 1:
            chosen = left[0]
        if chosen is None:
            raise _unknown_question(loop, question_id)
        data["question"], asked, question = chosen.id, chosen.about, chosen.question
    elif question_id is not None and question_id not in asked.split(":"):
        raise _unknown_question(loop, question_id)
    if asked.startswith("verdict:"):
        how = f"--verdict {data['question']} pass|fail --evidence TEXT"
        raise UsageError("a verdict needs evidence", f"Run: {command_line('verify', loop.id, how)}")
    if is_yes_or_no(asked):
        decision = decision_of(text)
        if decision is None:
            raise UsageError(f"the question needs a yes or a no: {question}", YES_OR_NO)
        data["yes"] = decision
    return data, asked, question


def _unknown_question(loop: Loop, question_id: str | None) -> UsageError:
    left = [it.id for it in open_questions(loop)]
    if not left:
        return UsageError(
            f"loop {loop.id} has no open question {question_id}", "Run: gsd-fsm status"
        )
    what = f"no open question {question_id}" if question_id else f"{len(left)} open questions"
    names = ", ".join(left)
    return UsageError(
        f"loop {loop.id} has {what}",
        f"Run: {command_line('answer', loop.id, 'ID TEXT')}, ID one of: {names}",
    )


@one_at_a_time
def set_mode(context: Context, mode: str) -> Decision:
    """Change the mode; yolo also answers the pending question, if a yes or a no does."""
    with context.writing() as tx:
        loop = tx.loop
        asked = (loop.asked or "") if loop.status == "waiting" else ""
        if mode == "yolo":
            context.require_human(loop, "set yolo mode for")
        tx.append("mode", {"mode": mode})
        takes_branch = mode == "yolo" and asked.startswith("branch:")
        if takes_branch or (mode == "yolo" and may_decline(asked)):
            tx.append("answer", {"text": "go on without asking", "yes": True})
        if not takes_branch:
            append_question(tx)
    return _decided(context, loop, takes_branch=takes_branch)


def _decided(context: Context, loop: Loop, *, takes_branch: bool) -> Decision:
    """Check out the branch of the loop, and set the first checkpoint, if nothing is left to decide."""
    note = ""
    if takes_branch:
        try:
            take_branch(context, loop)
            note = f"Switched to {loop.branch}."
        except Refused as error:
            note = f"{error.message[:1].upper()}{error.message[1:]}."
    loop = context.receipt(loop).loop
    if awaits_first_checkpoint(loop):
        try_checkpoint(context, loop, "pre")
    if takes_branch:
        with context.writing(loop) as tx:
            append_wave_files(tx, context.project)
    return Decision(context.receipt(loop), note)


# resume


class Running(NamedTuple):
    """A task that was running: its reference, and its TDD phase."""

    task: str
    ref: str | None
    phase: str | None


class Resumed(NamedTuple):
    """A resumed loop and, if it was about to switch its branch, a sentence about that.

    Of a planned loop also what was interrupted, and which commits are on the branch.
    """

    receipt: Receipt
    note: str
    running: list[Running]
    verified_commits: int
    missing_commits: list[str]


@one_at_a_time
def resume(
    context: Context, add: Mapping[str, float], advance: Callable[[int], None] | None = None
) -> Resumed:
    """Resume a loop in the calling session, with `add` added to its limits.

    The whole journal is verified and replayed by the state machine first; `advance` is called with
    the number of events that have been read. Effects that a killed command left unfinished are
    finished.
    """
    from gsd_fsm.history.replay import Replay

    # A journal of its own: the transaction below must not step the machine.
    replay = Replay(Journal(context.gsd, keep=context.loop_id))
    replay.run(advance=advance)
    require_trust(replay.loops, context.gsd)
    switches = any(branch_effects(context, context.loop(replay.loops)))
    with context.writing(ends_throttling=False) as tx:
        loop = tx.loop
        if loop.status == "paused" and (loop.pause_reason or "").startswith(DECLINED):
            context.require_human(loop, "override the user's no in")
        still_asked = _still_asked(loop)
        tx.append("resume", _data(context, loop, add))
        if not switches:
            accept_plan_change(tx, context)
            if still_asked:
                tx.append("wait", still_asked, by="cli")
            append_question(tx)
    done, note = _decided(context, loop, takes_branch=switches)
    finish_tasks(context, done.loop)
    return Resumed(context.receipt(loop), note, *_interrupted(context, done.loop))


def _data(context: Context, loop: Loop, add: Mapping[str, float]) -> dict[str, Any]:
    data: dict[str, Any] = {"add": dict(add)} if add else {}
    if loop.kind == "goal":
        views = list(context.settings()["views"])
        data.update({"views": views} if views != loop.views else {})
    retried = used_up_tasks(loop) if "max_retries" in add else []
    data.update({"retry": retried} if retried else {})
    if is_resting(loop) or loop.owner != context.session:
        data["anew"] = True
    return data


def _still_asked(loop: Loop) -> dict[str, Any] | None:
    """Return the wait for decisions that resuming does not make: they are more than yes or no."""
    if loop.status != "waiting" or may_decline(loop.asked):
        return None
    left = open_questions(loop)
    if left:
        specs = [{"id": it.id, "about": it.about, "question": it.question} for it in left]
        return {"for": "human", "question": loop.question or "", "questions": specs}
    if loop.asked is None:
        return None
    return {"for": "human", "question": loop.question or "", "about": loop.asked}


def _interrupted(context: Context, loop: Loop) -> tuple[list[Running], int, list[str]]:
    """Return the running tasks, the number of commits found, and the tasks whose commit is not."""
    if not loop.is_planned:
        return [], 0, []
    tasks = [loop.tasks[name] for name in running_tasks(loop)]
    running = [Running(task.id, task.ref, task.phase) for task in tasks]
    commits = recorded_commits(loop)
    if not commits or context.repository_or_none() is None:
        return running, 0, []
    missing = rewritten_tasks(context, loop)
    return running, len(commits) - len(missing), missing

"""Decide what happens when the agent stops."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.hook.clients import claims_completion
from gsd_fsm.core.loop.completion import (
    COMPLETABLE,
    awaits_complete,
    completes_by_command,
    first_missing,
    is_complete,
    latest_tree,
    waits_for_altered,
)
from gsd_fsm.core.loop.limits import BUDGET, reached_limit, unmetered, used_up_limit
from gsd_fsm.core.loop.protection import unnamed_files
from gsd_fsm.core.loop.waves import busy_tasks
from gsd_fsm.core.text.block_text import next_action, short_list
from gsd_fsm.core.text.next_step import altered_remedy, altered_words, asks_reviewer
from gsd_fsm.core.text.notices import (
    background_notice,
    completion_notice,
    disabled_notice,
    notice,
    pause_notice,
    program_notice,
    wait_notice,
)
from gsd_fsm.core.text.questions import pending_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.limits import LimitReached
    from gsd_fsm.core.loop.records import HookAnswer, SeenSignal
    from gsd_fsm.core.loop.state import Loop

# Copies of the hook that were called for the same stop answer within this time of each other.
_TOGETHER_MS = 15_000
_NO_PROGRAM = (
    "The agent cannot run gsd-fsm: it is not on the PATH, and its recorded path is missing"
)
# Missing conditions that a pause lists.
_LISTED = 8


class Observed:
    """What the hook saw outside the journal when the agent stopped."""

    __slots__ = ("commit", "disabled_by", "missing_program", "nonce", "tool_used", "transcript")

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        self.disabled_by = ""
        self.missing_program = ""
        self.tool_used = False
        self.transcript: int | None = None
        self.commit: str | None = None


class Decision:
    """The answer to one stop, and the event that must be durable before the answer is given.

    `message` goes to the agent if the stop is blocked, otherwise to the user.
    """

    __slots__ = ("blocks", "data", "event", "message")

    def __init__(
        self, event: str, data: dict[str, Any], message: str = "", blocks: bool = False
    ) -> None:
        self.event = event
        self.data = data
        self.message = message
        self.blocks = blocks


def decide_stop(loop: Loop, signal: Signal, seen: Observed, now: int) -> Decision:
    """Return the decision of the first rule that applies; the last one always does.

    The order is contract (docs/hook.md).
    """
    if seen.disabled_by:
        is_news = seen.disabled_by != "GSD_FSM_DISABLE" and loop.status != "paused"
        message = disabled_notice([loop]) if is_news else ""
        return _allow("disabled", "The hook is disabled by %s" % seen.disabled_by, message)

    if signal.mode == "plan":
        return _allow("plan-mode", "The client is in plan mode")

    if loop.status in ("paused", "waiting"):
        message = "" if _user_knows(loop) else notice(loop)
        return _allow(loop.status, _why_not_active(loop), message)

    spent = budget_pause(loop, now)
    if spent is not None:
        return spent

    work = background_work(loop, signal)
    if work is not None:
        reason, ids = work
        return _allow("background", reason, background_notice(loop, reason), background=ids)

    if is_complete(loop, latest_tree(loop)) and not completes_by_command(loop):
        return Decision("complete", {}, completion_notice(loop, now))

    asked = pending_wait(loop) if not busy_tasks(loop) else None
    if asked is not None:
        return Decision("wait", {**asked}, wait_notice(loop, asked["question"]))

    is_held = waits_for_altered(loop)
    if is_held and loop.protection.warned:
        return _pause_at_altered(loop)

    activity = seen.tool_used or _has_committed(loop, seen)
    limit = reached_limit(loop, now, activity, signal.cap)
    if limit is not None:
        return _pause_at(loop, limit)
    if not loop.auto_loop and loop.rules is not None:
        return _pause_without_auto_loop(loop)

    if seen.missing_program:
        return _allow("error", _NO_PROGRAM, program_notice(seen.missing_program))

    text, delivered = next_action(loop, seen.nonce, claims_completion(signal.message))
    code = "review" if loop.verified and asks_reviewer(loop) else "continue"
    code = "altered" if is_held else code
    data: dict[str, Any] = {"activity": activity, "code": code, "reason": text}
    if loop.protection.altered:
        data["altered"] = [file.path for file in unnamed_files(loop)]
    if delivered:
        data["delivered"] = delivered
    if seen.transcript is not None:
        data["transcript"] = seen.transcript
    if seen.commit is not None:
        data["commit"] = seen.commit
    return Decision("iteration", data, text, blocks=True)


def budget_pause(loop: Loop, now: int, is_stop: bool = True) -> Decision | None:
    """Return the pause of an active loop whose budget is used up or, at a stop, cannot be enforced.

    A loop that is done spends nothing more: it may complete.
    """
    limit = used_up_limit(loop, loop.limits, now, BUDGET)
    if limit is not None:
        every = used_up_limit(loop, loop.limits, now)
        limit.remedy = every.remedy if every is not None else limit.remedy
    elif is_stop:
        limit = unmetered(loop)
    if limit is None or not loop.is_active or is_complete(loop, latest_tree(loop)):
        return None
    return _pause_at(loop, limit)


def _pause_at(loop: Loop, limit: LimitReached) -> Decision:
    reason, command = limit.reason, limit.remedy
    if awaits_complete(loop):
        reason += "; only '%s' is left to run" % command_line("complete")
        if loop.rules is not None and limit.code in COMPLETABLE:
            command = command_line("complete", loop.id)
    return _pause(loop, limit.code, reason, command)


def _pause_without_auto_loop(loop: Loop) -> Decision:
    """Return the pause at a stop of a loop that does not keep its agent working."""
    if awaits_complete(loop):
        end = command_line("complete")
        left = "everything is met: resume the loop, then run '%s'" % end
    else:
        missing, count = first_missing(loop, latest_tree(loop), _LISTED)
        left = "not done yet: %s" % short_list(missing, count, 160)
    reason = "auto_loop is off; %s" % left
    return _pause(loop, "manual", reason, command_line("resume", loop.id))


def _pause_at_altered(loop: Loop) -> Decision:
    """Return the pause of a loop in which only altered checks are left, after a block has said so."""
    first, *others = loop.protection.altered
    reason = "; ".join([altered_words(file) for file in (first, *others[:_LISTED])])
    return _pause(loop, "altered", reason, altered_remedy(loop, first, "accept"))


def _pause(loop: Loop, code: str, reason: str, command: str) -> Decision:
    message = pause_notice(loop, code, reason, command)
    return Decision("pause", {"code": code, "reason": reason}, message)


def _allow(code: str, reason: str, message: str = "", **more: Any) -> Decision:
    return Decision("stop", {"code": code, "reason": reason, **more}, message)


def _why_not_active(loop: Loop) -> str:
    if loop.status == "paused":
        return "The loop is paused (%s): %s" % (loop.pause_code, loop.pause_reason)
    return "The loop is waiting for the user's answer: %s" % loop.question


def _user_knows(loop: Loop) -> bool:
    """Return whether the user was notified since the loop stopped being active.

    A question is repeated after each prompt that was not recorded as its answer.
    """
    answer = loop.last_answer
    notified = answer is not None and answer.notified >= loop.history[-1][0]
    return notified and not (loop.status == "waiting" and loop.human_spoke)


def _has_committed(loop: Loop, seen: Observed) -> bool:
    return None not in (seen.commit, loop.commit) and seen.commit != loop.commit


def background_work(loop: Loop, signal: Signal) -> tuple[str, list[str]] | None:
    """Return why background work allows this stop, and the ids that allow no further one."""
    agents = [task for kind, task in signal.background if kind == "subagent"]
    others = [task for kind, task in signal.background if kind != "subagent"]
    new = [task for task in others if task not in loop.background]
    if agents:
        return "waiting for running subagents (%d)" % len(agents), others
    if new:
        return "one stop is allowed while this runs: %s" % ", ".join(new[:5]), others
    return None


# the same stop, reported twice


def answered_before(loops: Loops, signal: Signal, now: int) -> HookAnswer | None:
    """Return the answer of another copy of the hook to this very stop."""
    for loop in loops.by_id.values():
        answer = loop.last_answer
        if loop.owner != signal.session or answer is None or answer.seq < loop.history[-1][0]:
            continue  # an answer no longer holds once the status has changed
        if by_another_copy(answer, signal, now):
            return answer
    return None


def by_another_copy(last: HookAnswer | SeenSignal | None, signal: Signal, now: int) -> bool:
    """Return whether another copy of the hook has just handled this very signal."""
    return (
        last is not None
        and last.signal == signal.digest
        and last.copy != signal.copy
        and abs(now - ms_of(last.ts)) <= _TOGETHER_MS
    )

"""Every stop of an agent, decided: the first rule that applies, journalled before it is told."""

from __future__ import annotations

from gsd_fsm.core.announce import (
    background_notice,
    completion_notice,
    notice,
    pause_notice,
    wait_notice,
)
from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.dialect import WITHOUT_PROMPTS
from gsd_fsm.core.events import draft
from gsd_fsm.core.guards import guard
from gsd_fsm.core.loop import unmet
from gsd_fsm.core.prompt import next_action
from gsd_fsm.core.proof import ends_by_command, latest_tree, missing
from gsd_fsm.core.question import pending_question
from gsd_fsm.core.signal import claims_completion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

    from gsd_fsm.core.fold import World
    from gsd_fsm.core.loop import Loop
    from gsd_fsm.core.signal import Signal

    Event = dict[str, Any]

# Copies of the hook that were called for the same stop answer within this time of each other.
_TOGETHER_MS = 15_000


class Seen:
    """What the hook saw outside of the journal; everything absent is empty."""

    __slots__ = ("commit", "disabled", "news", "nonce", "tool", "transcript")

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        self.disabled = ""
        self.tool = False
        self.transcript: int | None = None
        self.commit: str | None = None
        # What the client itself tells: the types of events, and their data.
        self.news: Iterable[tuple[str, dict[str, Any]]] = ()


class Verdict:
    """What is to be told: to the model, when the stop is blocked, or else to the user."""

    __slots__ = ("blocks", "text")

    def __init__(self) -> None:
        self.blocks = False
        self.text = ""


def own_loop(world: World, session: str) -> Loop | None:
    """The live loop of this session; an empty id matches nothing."""
    return next((loop for loop in world.live() if session and loop.owner == session), None)


def unowned_loop(world: World) -> Loop | None:
    return next((loop for loop in world.live() if not loop.owner), None)


def own_or_first(world: World, signal: Signal) -> Loop | None:
    """The loop that a stop of this session is about."""
    own = own_loop(world, signal.session)
    if own is None and signal.session and signal.client in WITHOUT_PROMPTS:
        return unowned_loop(world)
    return own


def answered_before(world: World, signal: Signal, now: int) -> dict[str, Any] | None:
    """What another copy of the hook has already said to this very stop."""
    for loop in world.loops.values():
        said: dict[str, Any] | None = loop.said
        if loop.owner != signal.session or said is None or said["seq"] < loop.history[-1][0]:
            continue  # what was said no longer holds once the loop has come to another status
        if by_another_copy(said, signal, now):
            return said
    return None


def by_another_copy(last: dict[str, Any] | None, signal: Signal, now: int) -> bool:
    """Whether another copy of the hook has just dealt with this very signal."""
    return (
        last is not None
        and last["signal"] == signal.digest
        and last["copy"] != signal.copy
        and abs(now - ms_of(last["ts"])) <= _TOGETHER_MS
    )


def hook_event(kind: str, loop: Loop, signal: Signal, data: dict[str, Any]) -> Event:
    return draft(kind, loop.id, "hook", data, **signal.members())


def decide_stop(
    loop: Loop, signal: Signal, seen: Seen, now: int, verdict: Verdict
) -> Iterator[Event]:
    """The events of this stop, and in `verdict` what is to be told once they are acknowledged."""
    about: dict[str, Any] = {"signal": signal.digest, "active": signal.active}
    if signal.copy:
        about["copy"] = signal.copy

    def allow(kind: str, **data: Any) -> Event:
        if verdict.text:
            data["said"] = verdict.text
        return hook_event(kind, loop, signal, {**data, **about})

    bound = loop.owner == signal.session
    if seen.disabled:
        reason = "The hook is switched off by %s" % seen.disabled
        if bound:
            yield allow("stop", code="disabled", reason=reason)
        return
    if not bound:
        yield hook_event("session", loop, signal, {"action": "bind"})
    if loop.status == "waiting" and loop.wait_for == "throttled":
        yield hook_event("resume", loop, signal, {"reason": "the client works again"})
    if loop.status in ("paused", "waiting"):
        if not _was_told(loop):
            verdict.text = notice(loop)
        yield allow("stop", code=loop.status, reason=_standing(loop))
        return
    busy = _background(loop, signal)
    if busy is not None:
        reason, ids = busy
        verdict.text = background_notice(loop, reason)
        yield allow("stop", code="background", reason=reason, background=ids)
        return
    for kind, data in seen.news:
        yield hook_event(kind, loop, signal, data)
    claimed = claims_completion(signal.message)
    if claimed and loop.kind == "goal" and not loop.exit_signal and not unmet(loop):
        yield hook_event("exit", loop, signal, {"reason": "the completion mark"})
    if not missing(loop, latest_tree(loop)) and not ends_by_command(loop):
        verdict.text = completion_notice(loop)
        yield allow("complete")
        return
    asked = pending_question(loop)
    if asked is not None:
        key, question = asked
        verdict.text = wait_notice(loop, question)
        yield allow("wait", question=question, about=key, **{"for": "human"})
        return
    committed = None not in (seen.commit, loop.commit) and seen.commit != loop.commit
    activity = seen.tool or committed
    spent = guard(loop, now, activity, signal.cap)
    if spent is not None:
        reason = spent.reason
        if not missing(loop, latest_tree(loop)):
            reason += "; everything is met but 'gsd-fsm complete'"
        verdict.text = pause_notice(loop, spent.code, reason, spent.remedy)
        yield allow("pause", code=spent.code, reason=reason)
        return
    verdict.text, delivered = next_action(loop, seen.nonce, claimed)
    verdict.blocks = True
    data = {"activity": activity, "code": "continue", "reason": verdict.text, **about}
    yield hook_event("iteration", loop, signal, {**data, **_looked(seen, delivered)})


def _looked(seen: Seen, delivered: list[int]) -> dict[str, Any]:
    """What a block delivers, and how far the hook has looked; nothing that is absent."""
    found = {"delivered": delivered or None, "transcript": seen.transcript, "commit": seen.commit}
    return {name: value for name, value in found.items() if value is not None}


def _standing(loop: Loop) -> str:
    if loop.status == "paused":
        return "The loop is paused (%s): %s" % (loop.pause_code, loop.pause_reason)
    return "The loop waits for a human: %s" % loop.question


def _was_told(loop: Loop) -> bool:
    """Whether the user has heard of it since the loop came to stand still.

    A question is told again after each prompt that was not recorded as its answer.
    """
    said = loop.said
    heard = said and said["told"] >= loop.history[-1][0]
    return bool(heard) and not (loop.status == "waiting" and loop.prompted)


def _background(loop: Loop, signal: Signal) -> tuple[str, list[str]] | None:
    """Why running work lets the agent rest, and the ids that will not do so again."""
    agents = [task for kind, task in signal.background if kind == "subagent"]
    others = [task for kind, task in signal.background if kind != "subagent"]
    new = [task for task in others if task not in loop.background]
    if agents:
        return "it goes on when the running subagents (%d) have ended" % len(agents), others
    if new:
        return "it rests while background work runs (%s), this once" % ", ".join(new[:5]), others
    return None

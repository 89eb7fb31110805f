"""Sessions come and go: who owns a loop, what they are told, what is marked in the journal."""

from __future__ import annotations

from gsd_fsm.core.announce import lost_turn_notice, reminder, resumption
from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.decide import by_another_copy, hook_event, own_loop, unowned_loop
from gsd_fsm.core.signal import TELLS_OF_THE_CLIENT, is_human
from gsd_fsm.core.table import ACTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.decide import Seen
    from gsd_fsm.core.fold import World
    from gsd_fsm.core.loop import Loop
    from gsd_fsm.core.signal import Signal

    Event = dict[str, Any]

# Errors of the client that pass by themselves.
_PASSING = frozenset(("rate_limit", "overloaded", "overloaded_error", "server_error", "timeout"))
# Ends of a session after which the same client goes on in another.
_GOING_ON = frozenset(("clear", "resume"))
_TURN_LOST = "The client, not the loop, ended the turn after block %d"


class Talk:
    """What is to be told once the events are acknowledged: to the model, and to the user."""

    __slots__ = ("context", "notice")

    def __init__(self) -> None:
        self.context = ""
        self.notice = ""


def concerned(world: World, signal: Signal) -> Loop | None:
    """The loop that a signal of this session changes; None when there is nothing to append."""
    own = own_loop(world, signal.session)
    if own is not None or not signal.session:
        return own
    if signal.event == "SessionStart" and signal.source == "clear":
        return _left_by(world, signal.pid)
    if signal.event == "UserPromptSubmit" and is_human(signal, ""):
        return unowned_loop(world)
    return None


def visited(world: World, signal: Signal) -> list[Loop]:
    """The loops of others that stand still while a human speaks here: from here they may go on."""
    if signal.event != "UserPromptSubmit" or not signal.session or not is_human(signal, ""):
        return []
    return [
        loop
        for loop in world.live()
        if loop.status not in ACTIVE and signal.session not in (loop.owner, *loop.visitors)
    ]


def _left_by(world: World, pid: int) -> Loop | None:
    """The loop of the session that this very client process has just cleared away."""
    return next((loop for loop in world.live() if pid and loop.pid == pid), None)


def decide_session(loop: Loop, signal: Signal, seen: Seen, now: int, talk: Talk) -> Iterator[Event]:
    """The events of a signal that is no stop, and in `talk` what is to be told of it."""

    def mark(action: str, **data: Any) -> Event:
        if signal.pid:
            data["pid"] = signal.pid
        if seen.transcript is not None and action in ("bind", "prompt"):
            data["transcript"] = seen.transcript
        heard = {"signal": signal.digest, "copy": signal.copy}
        return hook_event("session", loop, signal, {"action": action, **data, **heard})

    event = signal.event
    if by_another_copy(loop.heard, signal, now):
        return
    for kind, data in seen.news:
        yield hook_event(kind, loop, signal, data)
    if event in TELLS_OF_THE_CLIENT:
        return
    if event == "StopFailure":
        yield from _failed_turn(loop, signal, now)
        return
    if event == "PreCompact":
        yield mark("compact", reason=signal.reason)
        return
    said = loop.said["text"] if loop.said and loop.said["blocks"] else ""
    human = event == "UserPromptSubmit" and is_human(signal, said)
    if event == "UserPromptSubmit" and not human:
        return
    # Compaction happens within a turn; and a block that led to work was honoured.
    lost = 0 if signal.source == "compact" or seen.tool else loop.unconfirmed
    if lost:
        reason = _TURN_LOST % lost
        yield hook_event("stop", loop, signal, {"code": "client", "reason": reason})
    if lost or (event == "SessionStart" and _was_lost(loop)):
        talk.notice = lost_turn_notice(loop)
    if event == "SessionEnd":
        yield mark("end", reason=signal.reason)
        if loop.session_only and signal.reason not in _GOING_ON:
            yield hook_event("cancel", loop, signal, {"reason": "its session has ended"})
        return
    bound = loop.owner != signal.session
    if bound:
        yield mark("bind", source=signal.source or "prompt")
    if event == "SessionStart":
        yield mark("start", source=signal.source)
        talk.context = resumption(loop, seen.nonce)
        return
    yield mark("prompt")
    talk.context = resumption(loop, seen.nonce) if bound else reminder(loop)
    if bound:
        talk.context = "This session now owns the loop below.\n" + talk.context


def _was_lost(loop: Loop) -> bool:
    """Whether the client ended the last turn, and no stop was decided since."""
    last, said = loop.last_stop, loop.said
    return bool(last and last["code"] == "client" and (not said or said["seq"] < last["seq"]))


def _failed_turn(loop: Loop, signal: Signal, now: int) -> Iterator[Event]:
    """The client could not finish a turn: wait for what passes by itself, pause for the rest."""
    if loop.status not in ACTIVE:
        return
    error = signal.error if _is_word(signal.error) else "unknown"
    if error in _PASSING:
        data: dict[str, Any] = {"for": "throttled", "reason": "the client reports %s" % error}
        until = _reset_time(signal.message, now)
        if until:
            data["until"] = to_iso(until)
        yield hook_event("wait", loop, signal, data)
    else:
        reason = "the client could not finish the turn: %s" % error
        yield hook_event("pause", loop, signal, {"code": "client", "reason": reason})


def _is_word(text: str) -> bool:
    """Whether this is a code as clients write them: nothing else of theirs is passed on."""
    return len(text) <= 40 and text.isascii() and text.islower() and text.replace("_", "").isalpha()


def _reset_time(message: str, now: int) -> int:
    """When the limit ends, if the client said so as a moment (`…|1794787200`); 0 when not."""
    moment = message.rpartition("|")[2].strip()
    if not (moment.isdecimal() and len(moment) == 10):
        return 0
    until = int(moment) * 1000
    return until if now < until < now + 8 * 86_400_000 else 0

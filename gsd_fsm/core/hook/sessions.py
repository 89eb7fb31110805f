"""Record the signals of sessions that are not stops, and compose the answers to them."""

from __future__ import annotations

from gsd_fsm.core.clock import to_iso
from gsd_fsm.core.hook.clients import CLIENT_REPORTS, is_human, prompt_digest
from gsd_fsm.core.hook.decide import by_another_copy
from gsd_fsm.core.hook.owners import loops_of_others
from gsd_fsm.core.loop.events.sessions import CLIENT_WORKS
from gsd_fsm.core.text.notices import bound_notice, lost_turn_notice, reminder, resumption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.journal.journal import Transaction
    from gsd_fsm.core.loop.state import Loop

# Errors of the client that end by themselves.
_TEMPORARY = frozenset(("rate_limit", "overloaded", "overloaded_error", "server_error", "timeout"))
# Reasons for which a session ends while its client continues with another one.
_CONTINUING = frozenset(("clear", "resume"))
_TURN_LOST = "The client, not the loop, ended the turn after block %d"
_LONGEST_PATH = 1000


def meter_anew(loop: Loop, signal: Signal) -> dict[str, Any]:
    """Return the member of a `bind` after which only further growth of a known total counts."""
    return {"anew": True} if signal.session in loop.usage.totals else {}


def append_prompts(tx: Transaction, signal: Signal, source: str, transcript: int | None) -> None:
    """Record a human prompt for loops of other sessions: it permits resuming them from here."""
    for loop in loops_of_others(tx.loops, signal):
        data: dict[str, Any] = {"action": "prompt"}
        if loop.rules is not None:
            if source:
                continue  # nobody typed it
            data.update(_place(loop, signal, transcript))
        tx.append(loop, "session", data)


def _place(loop: Loop, signal: Signal, transcript: int | None) -> dict[str, Any]:
    """Return which process sent a prompt, and where its client records it."""
    place: dict[str, Any] = {"pid": signal.pid} if signal.pid else {}
    if transcript is not None:
        place["transcript"] = transcript
    return {**place, **_file(loop, signal)}


def _file(loop: Loop, signal: Signal) -> dict[str, Any]:
    """Return the transcript of a session, unless that is known or cannot be a path."""
    path = signal.transcript
    is_new = path and loop.rules is not None and loop.transcripts.get(signal.session) != path
    return {"file": path} if is_new and path.isprintable() and len(path) <= _LONGEST_PATH else {}


def append_signal(
    tx: Transaction,
    loop: Loop,
    signal: Signal,
    nonce: str,
    transcript: int | None,
    tool_used: bool,
    source: str,
) -> tuple[str, str]:
    """Append the events of a signal that is not a stop; return texts for the model and the user.

    `transcript`: its size. `tool_used`: whether it has a tool call since the last block. `source`:
    why a prompt does not count.
    """
    event = signal.event
    if event in CLIENT_REPORTS or by_another_copy(loop.last_signal, signal, tx.now):
        return "", ""
    if event == "StopFailure":
        _append_failed_turn(tx, loop, signal)
        return "", ""

    def mark(action: str, **data: Any) -> None:
        if signal.pid:
            data["pid"] = signal.pid
            data.update({"began": signal.began} if signal.began else {})
        if transcript is not None and action in ("bind", "prompt"):
            data["transcript"] = transcript
        if action in ("bind", "start", "prompt"):
            data.update(_file(loop, signal))
        data.update(signal=signal.digest, copy=signal.copy)
        tx.append(loop, "session", {"action": action, **data})

    if event == "PreCompact":
        mark("compact", reason=signal.reason)
        return "", ""
    if event == "UserPromptSubmit" and not _is_new_prompt(loop, signal):
        return "", ""
    notice = ""
    # Compaction happens within a turn, and a block that led to work was honoured.
    lost = 0 if signal.source == "compact" or tool_used else loop.unconfirmed
    if lost:
        tx.append(loop, "stop", {"code": "client", "reason": _TURN_LOST % lost})
    if lost or (event == "SessionStart" and _was_lost(loop)):
        notice = lost_turn_notice(loop)
    if event == "SessionEnd":
        mark("end", reason=signal.reason)
        if loop.session_only and signal.reason not in _CONTINUING:
            tx.append(loop, "cancel", {"reason": "its session has ended"})
        return "", notice
    bound = loop.owner != signal.session
    if bound:
        mark("bind", source=signal.source or "prompt", **meter_anew(loop, signal))
        notice = "\n".join(filter(None, (notice, bound_notice(loop))))
    if event == "SessionStart":
        mark("start", source=signal.source)
        return resumption(loop, nonce), notice
    if loop.status == "waiting" and loop.wait_for == "throttled":
        tx.append(loop, "resume", {"reason": CLIENT_WORKS})
    mark("prompt", **_identity(loop, signal, source))
    if bound:
        return "This session now owns the loop below.\n" + resumption(loop, nonce), notice
    return reminder(loop), notice


def _identity(loop: Loop, signal: Signal, source: str) -> dict[str, Any]:
    """Return what identifies a prompt in the transcript, or why it does not count."""
    if loop.rules is None:
        return {}
    if source:
        return {"source": source}
    identity = {"digest": prompt_digest(signal.prompt)}
    if signal.prompt_id:
        identity["prompt"] = signal.prompt_id
    return identity


def _is_new_prompt(loop: Loop, signal: Signal) -> bool:
    """Return whether a human wrote this prompt: it does not repeat our own block."""
    answer = loop.last_answer
    return is_human(signal, answer.text if answer and answer.blocks else "")


def _was_lost(loop: Loop) -> bool:
    """Return whether the client ended the last turn, and no stop was decided since."""
    last, answer = loop.last_stop, loop.last_answer
    return bool(last and last.code == "client" and (not answer or answer.seq < last.seq))


def _append_failed_turn(tx: Transaction, loop: Loop, signal: Signal) -> None:
    """Record a turn that the client could not finish: wait for a passing error, else pause."""
    if not loop.is_active:
        return
    error = signal.error if _is_code(signal.error) else "unknown"
    if error in _TEMPORARY:
        data: dict[str, Any] = {"for": "throttled", "reason": "the client reports %s" % error}
        until = _reset_time(signal.message, tx.now)
        if until:
            data["until"] = to_iso(until)
        tx.append(loop, "wait", data)
    else:
        reason = "the client could not finish the turn: %s" % error
        tx.append(loop, "pause", {"code": "client", "reason": reason})


def _is_code(text: str) -> bool:
    """Return whether this is an error code as clients write them; other text is not trusted."""
    return len(text) <= 40 and text.isascii() and text.islower() and text.replace("_", "").isalpha()


def _reset_time(message: str, now: int) -> int:
    """Return when the limit ends, if the client reports it (`…|1794787200`); else 0."""
    moment = message.rpartition("|")[2].strip()
    if not (moment.isdecimal() and len(moment) == 10):
        return 0
    until = int(moment) * 1000
    return until if now < until < now + 8 * 86_400_000 else 0

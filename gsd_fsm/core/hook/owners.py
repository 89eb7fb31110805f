"""Find the loop that a signal is about: the session's own, or the one that it may come to own."""

from __future__ import annotations

from gsd_fsm.core.hook.clients import WITHOUT_PROMPTS, is_human

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from gsd_fsm.core.hook.clients import Signal
    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.state import Loop


def own_loop(loops: Loops, session: str) -> Loop | None:
    """Return the live loop of this session; an empty id matches nothing."""
    return next((loop for loop in loops.live() if session and loop.owner == session), None)


def ended_loop(loops: Loops, session: str) -> Loop | None:
    """Return the loop that ended last, if this session owned it."""
    loop = loops.last_ended()
    return loop if loop is not None and session and loop.owner == session else None


def unowned_loop(loops: Loops, session: str) -> Loop | None:
    """Return the loop without an owner, unless this session was released from it."""
    return next(_free_loops(loops, session), None)


def named_loop(loops: Loops, signal: Signal, source: str) -> Loop | None:
    """Return the loop that the user has named for this session, while it has no owner.

    A session below another client may have inherited the name: it can only be the first owner.
    """
    if signal.agent or not signal.session:
        return None
    for loop in _free_loops(loops, signal.session):
        is_first = loop.owned_since == loop.first_ts
        if loop.id == signal.loop and (is_first or source != "nested"):
            return loop
    return None


def _free_loops(loops: Loops, session: str) -> Iterator[Loop]:
    return (loop for loop in loops.live() if not loop.owner and session not in loop.released)


def loop_for_stop(loops: Loops, signal: Signal, source: str) -> Loop | None:
    """Return the loop that this stop is about; `source`: why no user can be in this session."""
    own = own_loop(loops, signal.session)
    if own is None and binds_at_stop(signal):
        own = named_loop(loops, signal, source)
        if own is None and not source:
            return unowned_loop(loops, signal.session)
    return own


def binds_at_stop(signal: Signal) -> bool:
    """Return whether a stop may be the first signal of a session."""
    return bool(signal.session) and signal.client in WITHOUT_PROMPTS


def loop_for_signal(loops: Loops, signal: Signal, source: str) -> Loop | None:
    """Return the loop that a signal of this session changes, or None.

    `source`: why no user can have typed a prompt. Only a prompt that a user typed binds a loop that
    the session was not started for.
    """
    own = own_loop(loops, signal.session)
    if own is not None or not signal.session:
        return own
    if signal.event in ("SessionStart", "UserPromptSubmit"):
        own = named_loop(loops, signal, source)
    if own is None and signal.event == "SessionStart" and signal.source == "clear":
        return _cleared_loop(loops, signal)
    if own is None and signal.event == "UserPromptSubmit" and is_human(signal, "") and not source:
        return unowned_loop(loops, signal.session)
    return own


def _cleared_loop(loops: Loops, signal: Signal) -> Loop | None:
    """Return the loop of the session that this very client process has just cleared.

    Process ids are used again, and in containers they are alike: the time decides.
    """
    client = (signal.pid, signal.began)
    known = all(client)
    return next((it for it in loops.live() if known and (it.pid, it.began) == client), None)


def loops_of_others(loops: Loops, signal: Signal) -> list[Loop]:
    """Return the loops of other sessions that do not know yet that a human prompts here."""
    if signal.event != "UserPromptSubmit" or not signal.session or not is_human(signal, ""):
        return []
    return [
        loop
        for loop in loops.live()
        if signal.session != loop.owner and not _knows_prompts(loop, signal)
    ]


def _knows_prompts(loop: Loop, signal: Signal) -> bool:
    if loop.rules is None:
        return loop.is_active or signal.session in loop.prompted_elsewhere
    senders = [(prompt.session, prompt.pid or 0) for prompt in loop.prompts]
    return (signal.session, signal.pid) in senders

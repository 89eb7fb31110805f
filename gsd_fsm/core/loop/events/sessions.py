"""Sessions: which one owns a loop, and what the hook learned from their signals."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.records import SeenSignal
from gsd_fsm.core.loop.schema import COUNT, SAME, Arrow, EventType, Trigger, one_of
from gsd_fsm.core.loop.state import LIVE, MAX_KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event, SessionData
    from gsd_fsm.core.loop.state import Loop


def record_session(loop: Loop, event: Event[SessionData]) -> None:
    data = event["data"]
    action = data["action"]
    ended = action == "end" and data.get("reason") != "clear"
    loop.pid = None if ended else data.get("pid", loop.pid)
    if "signal" in data:
        loop.last_signal = SeenSignal(event["ts"], data["signal"], data.get("copy", ""))
    read_transcript(loop, event)
    if action == "bind":
        become_owner(loop, event)
        loop.client = event.get("client")
    elif action == "release":
        loop.owner = None
    elif action == "prompt":
        _record_prompt(loop, event.get("session"))


def _record_prompt(loop: Loop, session: str | None) -> None:
    if loop.owner and session not in (None, loop.owner):
        # From another session the user may resume, answer or cancel a loop that is not active.
        loop.prompted_elsewhere = [*loop.prompted_elsewhere, str(session)][-MAX_KEPT:]
    else:
        loop.human_spoke = loop.human_spoke_since_score = True
        loop.idle = 0


def read_transcript(loop: Loop, event: Event[Any]) -> None:
    """Remember how far the transcript of this session was read."""
    if "transcript" in event["data"]:
        loop.transcript = (event.get("session"), event["data"]["transcript"])


def become_owner(loop: Loop, event: Event[Any], restart_meter: bool = False) -> None:
    """Give the loop to the session of this event; what that did before does not count."""
    session = event.get("session")
    if session != loop.owner or restart_meter:
        loop.owner, loop.owned_since = session, event["ts"]
    if restart_meter and session in loop.meters:
        loop.meters_to_reset[session] = None


def require_free_session(loop: Loop, event: Event[Any], loops: Loops) -> None:
    """Refuse a second live loop for one session, or a second one without an owner."""
    _require_no_other(loop, event.get("session"), loops)


def require_binding(loop: Loop, event: Event[SessionData], loops: Loops) -> None:
    """Refuse to bind or release a loop if the session then owns a second live one."""
    action = event["data"]["action"]
    if action == "bind":
        if not event.get("session"):
            raise ValueError("session.bind without session")
        _require_no_other(loop, event.get("session"), loops)
    elif action == "release":
        _require_no_other(loop, None, loops)


def _require_no_other(loop: Loop, session: str | None, loops: Loops) -> None:
    for other in loops.live():
        if other.owner == session and other.id != loop.id:
            whose = "already belongs to this session" if session else "has no session yet"
            raise Refused(
                "live loop %s (%s) %s" % (other.id, other.status, whose),
                "Run: gsd-fsm --loop %s status, or: gsd-fsm --loop %s resume; "
                "'start … --fresh' cancels it" % (other.id, other.id),
            )


SESSION = EventType(
    "session",
    Trigger(rules=(require_binding,), arrows=(Arrow(LIVE, SAME, record_session),)),
    required={"action": one_of("bind", "release", "start", "prompt", "compact", "end")},
    optional={
        "source": str,
        "reason": str,
        "pid": COUNT,
        "transcript": COUNT,
        "signal": str,
        "copy": str,
    },
    text="{action}[ {source}][ {reason}]",
)

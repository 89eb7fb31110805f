"""Who decides: the session that owns a loop, what a loop asks, and what the user answers."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.records import SeenSignal
from gsd_fsm.core.loop.schema import BACK, COUNT, SAME, TIME, Arrow, EventType, Trigger, one_of
from gsd_fsm.core.loop.state import ACTIVE, LIVE, MAX_KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import AnswerData, Event, SessionData, WaitData
    from gsd_fsm.core.loop.state import Loop

# What the hook adds to the event in which it decides a stop: which call it was, which of its
# copies was called, and whether the client is already continuing because of a block.
STOP_FIELDS = {"signal": str, "copy": str, "active": bool}
# An allowed stop may notify the user; the text of a block is its `reason`.
ALLOW = {**STOP_FIELDS, "said": str}


def clear_human_prompt(loop: Loop) -> None:
    """Clear the record of human prompts."""
    loop.human_spoke = False
    loop.prompted_elsewhere = []


def wait(loop: Loop, event: Event[WaitData]) -> None:
    data = event["data"]
    loop.before_wait = loop.status
    loop.wait_for = data["for"]
    loop.question = data.get("question", data.get("reason"))
    loop.until = data.get("until")
    loop.asked = data.get("about")
    loop.answer = None
    clear_human_prompt(loop)
    if event["by"] == "hook":
        loop.unconfirmed = 0


WAIT = EventType(
    "wait",
    Trigger(verb="wait", arrows=(Arrow(ACTIVE, "waiting", wait),)),
    required={"for": one_of("human", "throttled")},
    optional={"question": str, "until": TIME, "reason": str, "about": str, **ALLOW},
    text=lambda data: with_reason(data["for"], data.get("question") or data.get("reason")),
)


def with_reason(what: str, text: str | None) -> str:
    """Return a timeline text with the reason, if there is one."""
    return "%s: %s" % (what, text) if text else what


def may_decide(loop: Loop, by: str, session: str | None) -> bool:
    """Return whether this caller may decide for the user: agents only after a human prompt.

    A prompt counts until the next iteration, wait or pause.
    """
    return by != "agent" or loop.human_spoke or session in loop.prompted_elsewhere


def require_human(loop: Loop, event: Event[Any], loops: Loops) -> None:
    """Refuse an agent that answers, cancels or raises limits before the user sent a message."""
    what = "cancel" if event["type"] == "cancel" else "answer for"
    if event["type"] == "resume":
        if event["data"].get("add"):
            what = "raise the limits of"
        elif loop.status != "waiting" or loop.wait_for != "human":
            return
    if not may_decide(loop, event["by"], event.get("session")):
        raise Refused(
            "agents cannot %s loop %s until the user sends a message" % (what, loop.id),
            "Ask the user.",
        )


def is_no(text: str) -> bool:
    """Return whether the first word of an answer is n, no or nope."""
    word = ""
    for char in text:
        if char.isalnum() or char == "_":
            word += char
        elif word:
            break
    return word.lower() in ("n", "no", "nope")


def take_answer(loop: Loop, event: Event[AnswerData]) -> None:
    loop.answer = event["data"]["text"]
    about, _, named = (loop.asked or "").partition(":")
    if about == "checkpoint":
        task = loop.tasks.get(named.partition(":")[0])
        if task is not None:
            task.answer = loop.answer
    elif about == "branch":
        loop.branch = None if is_no(loop.answer) else named
    stop_waiting(loop)


def stop_waiting(loop: Loop) -> None:
    if loop.asked:
        remember_answered(loop, [loop.asked])
    loop.wait_for = loop.question = loop.until = loop.asked = None


def remember_answered(loop: Loop, keys: list[str]) -> None:
    loop.answered = [*loop.answered, *keys][-MAX_KEPT:]


ANSWER = EventType(
    "answer",
    Trigger(
        verb="answer", rules=(require_human,), arrows=(Arrow(("waiting",), BACK, take_answer),)
    ),
    required={"text": str},
    text="{text}",
)


# session


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
            whose = "already belongs to this session" if session else "has no owner yet"
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
        "source": str, "reason": str, "pid": COUNT, "transcript": COUNT, "signal": str, "copy": str,
    },
    text="{action}[ {source}][ {reason}]",
)  # fmt: skip

"""Who decides: the session that owns a loop, what a loop asks, and what the user answers."""

from __future__ import annotations

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.records import Prompt, Question, SeenSignal
from gsd_fsm.core.loop.schema import (
    BACK,
    COUNT,
    SAME,
    TIME,
    Arrow,
    EventType,
    Trigger,
    one_of,
    records,
)
from gsd_fsm.core.loop.state import ACTIVE, LIVE, MAX_KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import AnswerData, Event, SessionData, WaitData
    from gsd_fsm.core.loop.schema import Fields
    from gsd_fsm.core.loop.state import Loop

# Raised when an older hook could not read, or not decide, what this one can. `start` compares it
# with that of the installed file, and with that of the last stop of other loops.
HOOK_VERSION = 4
# What the hook adds to the event in which it decides a stop: which call it was, which of its
# copies was called, its version, and whether the client is already continuing because of a block.
STOP_FIELDS: Fields = {"signal": str, "copy": str, "hook": COUNT, "active": bool}
# An allowed stop may notify the user; the text of a block is its `reason`.
ALLOW: Fields = {**STOP_FIELDS, "said": str}
# What an agent's decision adds: it relies on a prompt of the user, which no transcript confirms.
RELAYED: Fields = {"relayed": bool, "unverified": bool}
# Why the wait for the client's limit has ended.
CLIENT_WORKS = "the client works again"
ASK_USER = (
    "Ask the user to send a message (a command typed with ! sends none), or to run this in another "
    "terminal."
)
# Answers to a question that a yes or a no decides, in lower case and without a final mark.
YES = (
    "y", "yes", "yeah", "yep", "yes please", "ok", "okay", "sure", "fine", "go", "go on",
    "go ahead", "continue", "proceed", "do it", "start", "retry", "approved",
)  # fmt: skip
NO = (
    "n", "no", "nope", "no thanks", "stop", "cancel", "abort", "quit", "later", "never", "wait",
    "pause", "not yet", "not now", "don't", "do not",
)  # fmt: skip
QUESTIONS = records(
    "questions", {"id": str, "about": str, "question": str}, ("id", "about", "question")
)


def clear_human_prompt(loop: Loop) -> None:
    """Clear the record of human prompts."""
    loop.human_spoke = False
    loop.prompted_elsewhere = []
    loop.prompts = []


def consume_prompts(loop: Loop) -> None:
    """Clear the prompts that the owner has acted on; other sessions may still act on theirs."""
    loop.human_spoke = False
    loop.prompted_elsewhere = []
    if loop.prompts:
        loop.prompts = [prompt for prompt in loop.prompts if prompt.session != loop.owner]


def wait(loop: Loop, event: Event[WaitData]) -> None:
    data = event["data"]
    loop.before_wait = loop.status
    loop.wait_for = data["for"]
    loop.question = data.get("question", data.get("reason"))
    loop.until = data.get("until")
    loop.asked = data.get("about")
    loop.questions = {spec["id"]: Question(spec) for spec in data.get("questions", ())}
    loop.answer = None
    clear_human_prompt(loop)
    if event["by"] == "hook":
        loop.unconfirmed = 0


WAIT = EventType(
    "wait",
    Trigger(verb="wait", arrows=(Arrow(ACTIVE, "waiting", wait),)),
    required={"for": one_of("human", "throttled")},
    optional={
        "question": str, "until": TIME, "reason": str, "about": str, "questions": QUESTIONS,
        **ALLOW,
    },
    text=lambda data: with_reason(data["for"], data.get("question") or data.get("reason")),
    is_newer=lambda _loop, data: "questions" in data,
)  # fmt: skip


def with_reason(what: str, text: str | None) -> str:
    """Return a timeline text with the reason, if there is one."""
    return "%s: %s" % (what, text) if text else what


def may_decide(loop: Loop, by: str, session: str | None) -> bool:
    """Return whether this caller may decide for the user: agents only after a human prompt.

    A prompt counts until the next iteration, wait or pause, and for the session that got it.
    """
    if by != "agent":
        return True
    if loop.rules is None:
        return loop.human_spoke or session in loop.prompted_elsewhere
    return bool(prompts_for(loop, session))


def prompts_for(loop: Loop, session: str | None) -> list[Prompt]:
    """Return the prompts that a decision from this session relies on, the latest first."""
    everyone = session is None or loop.owner is None
    return [it for it in reversed(loop.prompts) if everyone or it.session == session]


def decision_in(loop: Loop, kind: str, data: Any, session: str | None) -> str:
    """Return what such an event decides for the user, "" if an agent may append it."""
    if kind == "cancel":
        return "cancel"
    if kind == "answer":
        return "answer for"
    if kind == "session" and data["action"] == "release":
        return "release"
    if kind != "resume":
        return ""
    if data.get("add"):
        return "raise the limits of"
    if loop.status == "waiting" and loop.wait_for == "human":
        return "answer for"
    changes_owner = loop.rules is not None and loop.owner not in (None, session)
    return "change the owner of" if changes_owner else ""


def require_human(loop: Loop, event: Event[Any], loops: Loops) -> None:
    """Refuse an agent that decides for the user before the user sent a message."""
    session = event.get("session")
    what = decision_in(loop, event["type"], event["data"], session)
    if what and not may_decide(loop, event["by"], session):
        raise Refused(
            "agents cannot %s loop %s until the user sends a message" % (what, loop.id), ASK_USER
        )


def decision_of(text: str) -> bool | None:
    """Return whether this answer, as a whole, says yes or no; None if it says neither."""
    words = " ".join(text.replace("\u2019", "'").lower().split()).strip("\"'`").rstrip(".!")
    return True if words in YES else False if words in NO else None


def is_no(text: str) -> bool:
    """Return whether the first word of an answer is n, no or nope; loops of version 1 ask for that."""
    word = ""
    for char in text:
        if char.isalnum() or char == "_":
            word += char
        elif word:
            break
    return word.lower() in ("n", "no", "nope")


def open_questions(loop: Loop) -> list[Question]:
    """Return the questions of a wait with several that are not answered yet."""
    return [question for question in loop.questions.values() if question.answer is None]


def is_decided(loop: Loop) -> bool:
    """Return whether the wait had several questions, and verdicts have closed the last of them."""
    return loop.status == "waiting" and bool(loop.questions) and not open_questions(loop)


def leaves_questions(loop: Loop, event: Event[AnswerData]) -> bool:
    """Return whether other questions of the wait stay open."""
    answered = event["data"].get("question")
    return any(question.id != answered for question in open_questions(loop))


def answer_question(loop: Loop, event: Event[AnswerData]) -> None:
    """Take over the answer to one question, or to the only one."""
    data = event["data"]
    text = data["text"]
    question = loop.questions.get(data.get("question", ""))
    key = question.about if question is not None else loop.asked or ""
    if question is not None:
        question.answer = text
        remember_answered(loop, [key])
    about, _, named = key.partition(":")
    task = loop.tasks.get(named.partition(":")[0])
    if about == "checkpoint" and task is not None:
        task.answer = text
    elif about == "skip" and task is not None:
        task.skips = data.get("yes", False)
        if not task.skips:
            task.skip, task.skip_reason, task.skips = 0, None, None
    elif about == "branch":
        loop.branch = named if data.get("yes", not is_no(text)) else None
    if question is not None:
        text = "%s: %s" % (question.id, text)
    loop.answer = "%s\n%s" % (loop.answer, text) if loop.answer else text


def take_answer(loop: Loop, event: Event[AnswerData]) -> None:
    """Take over the last answer; without an id, verdicts have decided the questions before."""
    if not loop.questions or "question" in event["data"]:
        answer_question(loop, event)
    stop_waiting(loop)


def stop_waiting(loop: Loop) -> None:
    if loop.asked:
        remember_answered(loop, [loop.asked])
    loop.wait_for = loop.question = loop.until = loop.asked = None
    loop.questions = {}


def remember_answered(loop: Loop, keys: list[str]) -> None:
    loop.answered = [*loop.answered, *keys][-MAX_KEPT:]


def require_known_question(loop: Loop, event: Event[AnswerData], loops: Loops) -> None:
    """Refuse an answer to a question that the wait does not have, or that is answered."""
    wanted, left = event["data"].get("question"), [it.id for it in open_questions(loop)]
    if wanted not in left if wanted is not None else left:
        raise Refused(
            "loop %s has no open question %s" % (loop.id, wanted or "without an id"),
            "Use one of: %s" % ", ".join(left),
        )


ANSWER = EventType(
    "answer",
    Trigger(
        verb="answer",
        rules=(require_known_question, require_human),
        arrows=(
            Arrow(("waiting",), SAME, answer_question, when=leaves_questions),
            Arrow(("waiting",), BACK, take_answer),
        ),
    ),
    required={"text": str},
    optional={"question": str, "yes": bool, **RELAYED},
    text="[{question}: ]{text}",
    is_newer=lambda loop, _data: loop is not None and bool(loop.questions),
)


# session


def record_session(loop: Loop, event: Event[SessionData]) -> None:
    data = event["data"]
    action = data["action"]
    ended = action == "end" and data.get("reason") != "clear"
    if ended or action in ("bind", "release"):
        loop.pid, loop.began = None, ""
    if "pid" in data and not ended:
        loop.pid, loop.began = data["pid"], data.get("began", "")
    if "signal" in data:
        loop.last_signal = SeenSignal(event["ts"], data["signal"], data.get("copy", ""))
    read_transcript(loop, event)
    if "file" in data and len(loop.transcripts) < MAX_KEPT:
        loop.transcripts.setdefault(event.get("session") or "", data["file"])
    if action == "bind":
        become_owner(loop, event, data.get("anew", False))
        loop.client = event.get("client")
    elif action == "release":
        loop.released = [*loop.released, loop.owner or ""][-MAX_KEPT:]
        loop.owner = None
    elif action == "prompt":
        _record_prompt(loop, event)


def _record_prompt(loop: Loop, event: Event[SessionData]) -> None:
    session = event.get("session")
    is_own = not loop.owner or session in (None, loop.owner)
    is_typed = loop.rules is None or "source" not in event["data"]
    if loop.rules is not None and is_typed:
        prompt = Prompt(event, loop.transcripts.get(session or ""))
        loop.prompts = [*loop.prompts, prompt][-MAX_KEPT:]
    if is_own:
        loop.idle = 0
        loop.human_spoke = loop.human_spoke or is_typed
        loop.human_spoke_since_score = loop.human_spoke_since_score or is_typed
    elif loop.rules is None:
        # From another session the user may resume, answer or cancel a loop that is not active.
        loop.prompted_elsewhere = [*loop.prompted_elsewhere, str(session)][-MAX_KEPT:]


def read_transcript(loop: Loop, event: Event[Any]) -> None:
    """Remember how far the transcript of this session was read."""
    if "transcript" in event["data"]:
        loop.transcript = (event.get("session"), event["data"]["transcript"])


def become_owner(loop: Loop, event: Event[Any], restart_meter: bool = False) -> None:
    """Give the loop to the session of this event; what that did before does not count."""
    session = event.get("session")
    if session in loop.released:
        loop.released = [name for name in loop.released if name != session]
    if session != loop.owner or restart_meter:
        loop.owner, loop.owned_since = session, event["ts"]
        loop.usage.begin_session()
    if restart_meter and session in loop.usage.totals:
        loop.usage.resets[session] = None


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
        if not loop.owner:
            raise Refused(
                "no session owns loop %s" % loop.id, "Run: %s" % command_line("status", loop.id)
            )
        _require_no_other(loop, None, loops)


def _require_no_other(loop: Loop, session: str | None, loops: Loops) -> None:
    for other in loops.live():
        if other.owner == session and other.id != loop.id:
            whose = "already belongs to this session" if session else "has no owner yet"
            raise Refused(
                "live loop %s (%s) %s" % (other.id, other.status, whose),
                "Run: %s, or: %s; 'start … --fresh' cancels it"
                % (command_line("status", other.id), command_line("resume", other.id)),
            )


SESSION = EventType(
    "session",
    Trigger(
        verb="release",
        rules=(require_binding, require_human),
        arrows=(Arrow(LIVE, SAME, record_session),),
    ),
    required={"action": one_of("bind", "release", "start", "prompt", "compact", "end")},
    optional={
        "source": str, "reason": str, "pid": COUNT, "began": str, "transcript": COUNT, "signal": str,
        "copy": str, "file": str, "digest": str, "prompt": str, "anew": bool, **RELAYED,
    },
    text="{action}[ {source}][ {reason}]",
)  # fmt: skip

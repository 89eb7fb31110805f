"""What a client tells a hook: untrusted, in many spellings, read into one shape."""

from __future__ import annotations

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.hook.clients import CAP, block_cap, client_of, ended_its_turn, event_of, is_quiet
from gsd_fsm.core.loop.schema import session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_SESSION = ("session_id", "sessionId", "conversation_id", "conversationId")
_TRANSCRIPT = ("transcript_path", "transcriptPath")
_TAG = "<loop-complete>"
_END = "</loop-complete>"
_FENCES = ("`", "~")
HANDLED = frozenset((
    "Stop", "SubagentStop", "SessionStart", "UserPromptSubmit", "StopFailure", "PreCompact",
    "SessionEnd", "TaskCreated", "TaskCompleted",
))  # fmt: skip
# Signals that only tell what the client has done.
TELLS_OF_THE_CLIENT = frozenset(("SubagentStop", "TaskCreated", "TaskCompleted"))
# More of them let nobody rest, and would not fit into an event.
_MOST_TASKS = 500
# What a client writes itself where a human would.
_MACHINE = ("<task-notification", "<system-reminder")


class Signal:
    """One call of the hook; each member that the client did not send is empty."""

    __slots__ = (
        "active", "agent", "agent_transcript", "background", "cap", "client", "copy", "digest",
        "error", "event", "message", "pid", "prompt", "quiet", "reason", "session",
        "source", "subject", "task", "transcript",
    )  # fmt: skip

    def __init__(
        self, payload: dict[str, Any], text: str, copy: str, env: Callable[[str], str]
    ) -> None:
        self.client = client_of(payload, env)
        self.event = event_of(payload)
        if self.event == "Stop" and not ended_its_turn(payload, self.client):
            self.event = ""
        self.session = session_name(_first(payload, _SESSION))
        self.transcript = _first(payload, _TRANSCRIPT)
        self.message = _first(payload, ("last_assistant_message", "prompt_response"))
        self.active = payload.get("stop_hook_active") is True
        self.background = _running(payload.get("background_tasks"))
        self.source = _first(payload, ("source",))
        self.reason = _first(payload, ("reason", "trigger"))
        self.prompt = _first(payload, ("prompt",))
        self.error = _first(payload, ("error",))
        self.agent = session_name(_first(payload, ("agent_id",)))
        self.agent_transcript = _first(payload, ("agent_transcript_path",))
        self.task = _first(payload, ("task_id",))
        self.subject = _first(payload, ("task_subject",))
        self.quiet = is_quiet(self.client, env("AI_AGENT"))
        self.cap = block_cap(self.client, env(CAP))
        pid = env("CLAUDE_PID")
        self.pid = int(pid) if pid.isdecimal() and len(pid) < 12 else 0
        self.copy = session_name(copy or digest_of(__file__))
        self.digest = digest_of(text)


def _first(payload: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = payload.get(name)
        if type(value) is str:
            return value
    return ""


def _running(tasks: Any) -> list[tuple[str, str]]:
    """The kind and id of every background task that still runs."""
    if type(tasks) is not list:
        return []
    return [
        (str(task.get("type", "")), _short(str(task.get("id", ""))))
        for task in tasks[:_MOST_TASKS]
        if type(task) is dict and task.get("status", "running") == "running"
    ]


def _short(name: str) -> str:
    return session_name(name if len(name) <= 40 else digest_of(name))


def is_human(signal: Signal, told: str) -> bool:
    """Whether a person wrote this prompt: not the client, and not we (`told`: our last text)."""
    prompt = signal.prompt.strip()
    return not prompt.startswith(_MACHINE) and (not told or told not in prompt)


def claims_completion(message: str) -> bool:
    """Whether the message ends with the completion mark, outside of every code fence."""
    text = message.rstrip()
    last = text[text.rfind("\n") + 1 :].strip()
    if text.endswith(_END):
        opened = text.rfind(_TAG)
    elif last == _TAG:
        opened = len(text) - len(_TAG)
    else:
        return False
    return opened >= 0 and not _inside_fence(text[:opened])


def _inside_fence(text: str) -> bool:
    fence = ""
    for line in text.split("\n"):
        start = line.strip()
        sign = start[:1]
        marks = start[: len(start) - len(start.lstrip(sign))] if sign in _FENCES else ""
        if fence:
            if marks == start and marks.startswith(fence):
                fence = ""
        elif len(marks) >= 3 and (sign != "`" or "`" not in start[len(marks) :]):
            fence = marks
    return bool(fence)

"""Read what a client sends into a `Signal`, and write answers in the client's own form.

What a client sends identifies it better than its environment: agents inherit each other's variables.
"""

from __future__ import annotations

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.loop.schema import session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Payload = dict[str, Any]

HANDLED = frozenset((
    "Stop", "SubagentStop", "SessionStart", "UserPromptSubmit", "StopFailure", "PreCompact",
    "SessionEnd", "TaskCreated", "TaskCompleted",
))  # fmt: skip
# The signals that only report what the client has done.
CLIENT_REPORTS = frozenset(("SubagentStop", "TaskCreated", "TaskCompleted"))
# The names that other clients give to these events.
SIGNALS = {
    "stop": "Stop", "AfterAgent": "Stop", "agentStop": "Stop", "session.idle": "Stop",
    "sessionStart": "SessionStart",
    "BeforeAgent": "UserPromptSubmit", "userPromptSubmitted": "UserPromptSubmit",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "subagentStop": "SubagentStop", "sessionEnd": "SessionEnd", "preCompact": "PreCompact",
    "PreCompress": "PreCompact",
}  # fmt: skip
# Clients without a hook for prompts: a stop is the first signal of a session.
WITHOUT_PROMPTS = frozenset(("antigravity", "auggie", "goose", "opencode", "amp"))
# Clients that show a `systemMessage`; others might report it as an error.
_WITH_NOTICES = frozenset(("", "claude", "codex", "gemini", "qwen", "copilot", "droid"))
# Members that only one client sends, and a part of the path of its transcripts; the first row that
# fits counts.
_BY_PAYLOAD = (
    ("cursor", ("cursor_version", "generation_id", "loop_count"), ""),
    ("auggie", ("agent_stop_cause",), ""),
    ("antigravity", ("fullyIdle", "terminationReason"), ""),
    ("gemini", ("prompt_response",), ""),
    ("vscode", ("hookEventName",), ""),
    ("copilot", ("sessionId",), ""),
    ("codex", ("turn_id",), "/.codex/"),
    ("droid", ("tool_execution_count",), ""),
    ("qwen", ("crons", "context_limit"), "/.qwen/"),
    ("copilot", ("initial_prompt",), ""),
)
_BY_VARIABLE = (
    ("QWEN_PROJECT_DIR", "qwen"),
    ("FACTORY_PROJECT_DIR", "droid"),
    ("DEVIN_PROJECT_DIR", "devin"),
    ("COPILOT_CLI", "copilot"),
    ("AUGMENT_HOOK_EVENT", "auggie"),
    ("GEMINI_SESSION_ID", "gemini"),
)
_SESSION = ("session_id", "sessionId", "conversation_id", "conversationId")
# The first version of Claude Code with the form of a block that is not shown as an error.
QUIET_SINCE = (2, 1, 163)
# Names the loop that the next session owns, for sessions without a user.
LOOP_VARIABLE = "GSD_FSM_LOOP"
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
_DEFAULT_CAP = 8
# More background tasks would not fit into an event.
_MOST_TASKS = 500
# Prefixes of prompts written by a client, not a human.
_MACHINE = (
    "<task-notification", "<system-reminder",
    "You have not yet marked the task as complete using the task_complete tool",
)  # fmt: skip
_TAG = "<loop-complete>"
_END = "</loop-complete>"
_FENCES = ("`", "~")


class Signal:
    """One call of the hook; a member that the client did not send is empty."""

    __slots__ = (
        "active", "agent", "agent_transcript", "background", "began", "cap", "client", "copy", "digest",
        "error", "event", "loop", "message", "mode", "pid", "place", "prompt", "prompt_id", "quiet", "reason",
        "session", "source", "subject", "task", "transcript",
    )  # fmt: skip

    def __init__(self, payload: Payload, text: str, copy: str, env: Callable[[str], str]) -> None:
        def first(*names: str) -> str:
            for name in names:
                value = payload.get(name)
                if type(value) is str:
                    return value
            return ""

        agent, cap, pid = env("AI_AGENT"), env(CAP), env("CLAUDE_PID")
        self.client = client_of(payload, env)
        self.event = event_of(payload)
        if self.event == "Stop" and not _ended_its_turn(payload, self.client):
            self.event = ""
        self.session = session_name(first(*_SESSION))
        self.transcript = first("transcript_path", "transcriptPath")
        self.message = first("last_assistant_message", "prompt_response")
        self.active = payload.get("stop_hook_active") is True
        self.background = _running_tasks(payload.get("background_tasks"))
        self.loop = env(LOOP_VARIABLE)
        self.mode = first("permission_mode")
        self.source = first("source")
        self.reason = first("reason", "trigger")
        self.prompt = first("prompt")
        self.prompt_id = session_name(first("prompt_id"))
        self.error = first("error")
        self.agent = session_name(first("agent_id", "subagentId", "subagentType"))
        self.agent_transcript = first("agent_transcript_path")
        self.task = first("task_id")
        self.subject = first("task_subject")
        self.quiet = _is_quiet(self.client, agent)
        self.cap = block_cap(self.client, cap)
        self.began = ""  # when the client's process began; asked for where it matters
        self.pid = int(pid) if pid.isdecimal() and len(pid) < 12 else 0
        self.copy = session_name(copy or digest_of(__file__))
        self.digest = digest_of(text)
        self.place = ""  # the `.gsd` that the hook is at work on


def client_of(payload: Payload, env: Callable[[str], str]) -> str:
    """Return the name of the client that sent this, "" for one that looks like Claude Code."""
    event = payload.get("hook_event_name")
    transcript = str(payload.get("transcript_path") or "").replace("\\", "/")
    if type(payload.get("gsd_client")) is str:
        return str(payload["gsd_client"])
    if event in ("AfterAgent", "BeforeAgent"):
        return "gemini"
    if payload.get("client_type") == "kimi_code_cli":
        return "kimi"
    for client, members, place in _BY_PAYLOAD:
        if any(member in payload for member in members) or (place and place in transcript):
            return client
    if "stop_reason" in payload and "permission_mode" not in payload:
        return "copilot"
    if "event" in payload and event is None:
        return "goose"
    if "session_crons" in payload or "/.claude/" in transcript:
        return "claude"
    return next((client for variable, client in _BY_VARIABLE if env(variable)), "")


def event_of(payload: Payload) -> str:
    """Return the event by our name; if the client does not name it, by what it sends."""
    for name in ("hook_event_name", "hookEventName", "event"):
        event = payload.get(name)
        if type(event) is str:
            return SIGNALS.get(event, event)
    if "stopReason" in payload or "terminationReason" in payload:
        return "Stop"
    if "initialPrompt" in payload:
        return "SessionStart"
    return "UserPromptSubmit" if "prompt" in payload else ""


def _ended_its_turn(payload: Payload, client: str) -> bool:
    """Return whether this stop ends a turn that can continue: not an abort or an error."""
    if client == "cursor":
        return payload.get("status") == "completed"
    if client == "auggie":
        return payload.get("agent_stop_cause") == "end_turn"
    return client != "antigravity" or payload.get("fullyIdle") is True


def _running_tasks(tasks: Any) -> list[tuple[str, str]]:
    """Return type and id of every background task that is running."""
    if type(tasks) is not list:
        return []
    return [
        (str(task.get("type", "")), _short(str(task.get("id", ""))))
        for task in tasks[:_MOST_TASKS]
        if type(task) is dict and task.get("status", "running") == "running"
    ]


def _short(name: str) -> str:
    return session_name(name if len(name) <= 40 else digest_of(name))


def _is_quiet(client: str, agent: str) -> bool:
    """Return whether the client can be blocked without showing an error; `agent`: its AI_AGENT."""
    name, _, rest = agent.partition("_")
    if client != "claude" or name != "claude-code":
        return False
    numbers = [int(part) for part in rest.split("_")[0].split("-") if part.isdecimal()]
    return tuple(numbers) >= QUIET_SINCE


def block_cap(client: str, wanted: str) -> int:
    """Return after how many blocks without a tool call the client ends the turn, 0 for never."""
    if client != "claude":
        return 0
    try:
        return max(0, int(wanted))
    except ValueError:
        return _DEFAULT_CAP


# what a message says


def is_human(signal: Signal, last_block: str) -> bool:
    """Return whether a human wrote this prompt: no client, no agent, and not we with our last block."""
    prompt = signal.prompt.strip()
    # Qwen repeats the signal after every tool call, without a text.
    of_a_machine = signal.agent or (signal.client == "qwen" and not prompt)
    if of_a_machine or prompt.startswith(_MACHINE):
        return False
    return not last_block or last_block not in prompt


def prompt_digest(text: str) -> str:
    """Return a digest of a prompt that does not depend on its blanks and line ends."""
    return digest_of(" ".join(text.split()))


def claims_completion(message: str) -> bool:
    """Return whether the message ends with the completion mark, which begins a line of its own.

    A mark within a sentence, a quotation or code is only mentioned.
    """
    text = message.rstrip()
    opened = text.rfind(_TAG)
    if opened < 0 or not (text.endswith(_END) or opened + len(_TAG) == len(text)):
        return False
    before = text[text.rfind("\n", 0, opened) + 1 : opened]
    # Markdown takes a line that is indented by four blanks or a tab for code.
    return before in ("", " ", "  ", "   ") and not _inside_fence(text[:opened])


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


# answers


def block_answer(client: str, quiet: bool, text: str) -> Payload:
    """Return the answer that makes this client continue, with this text for its model."""
    if client == "cursor":
        return {"followup_message": text}
    if client == "antigravity":
        return {"decision": "continue", "reason": text}
    if client == "kimi":
        deny = {"permissionDecision": "deny", "permissionDecisionReason": text}
        return {"hookSpecificOutput": {"hookEventName": "Stop", **deny}}
    nested = {"hookEventName": "Stop", "decision": "block", "reason": text}
    if client == "auggie":
        return {"hookSpecificOutput": nested}
    if client == "vscode":
        return {"decision": "block", "reason": text, "hookSpecificOutput": nested}
    if quiet:
        return {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": text}}
    return {"decision": "block", "reason": text}


def context_answer(client: str, event: str, text: str) -> Payload:
    """Return the answer that shows this text to the model at a session start or with a prompt."""
    if client == "copilot":
        return {"additionalContext": text}
    if client == "cursor":
        return {"additional_context": text}
    if client == "kimi":
        return {}
    if client == "gemini" and event == "UserPromptSubmit":
        event = "BeforeAgent"
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def notice_answer(client: str, text: str) -> Payload:
    """Return the answer that shows this text to the user, {} if the client cannot."""
    return {"systemMessage": text} if client in _WITH_NOTICES else {}

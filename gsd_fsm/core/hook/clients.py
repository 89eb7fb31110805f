"""Which client is calling, and how it wants to be answered.

What a client sends tells more than its environment: agents inherit each other's variables.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Payload = dict[str, Any]

# event as a client calls it -> event as we call it
SIGNALS = {
    "stop": "Stop", "AfterAgent": "Stop", "agentStop": "Stop", "session.idle": "Stop",
    "sessionStart": "SessionStart",
    "BeforeAgent": "UserPromptSubmit", "userPromptSubmitted": "UserPromptSubmit",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "subagentStop": "SubagentStop", "sessionEnd": "SessionEnd", "preCompact": "PreCompact",
    "PreCompress": "PreCompact",
}  # fmt: skip

_BY_VARIABLE = (
    ("QWEN_PROJECT_DIR", "qwen"),
    ("FACTORY_PROJECT_DIR", "droid"),
    ("DEVIN_PROJECT_DIR", "devin"),
    ("COPILOT_CLI", "copilot"),
    ("AUGMENT_HOOK_EVENT", "auggie"),
    ("GEMINI_SESSION_ID", "gemini"),
)
# A stop is the first that is heard of a session in these: they have no hook for prompts.
WITHOUT_PROMPTS = frozenset(("antigravity", "auggie", "goose", "opencode", "amp"))
# These show a `systemMessage`; the others might take it for a mistake.
_WITH_NOTICES = frozenset(("", "claude", "codex", "gemini", "qwen", "copilot", "droid"))
# The quiet form of a block came with this version of Claude Code.
_QUIET_SINCE = (2, 1, 163)
_DEFAULT_CAP = 8
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


def client_of(payload: Payload, env: Callable[[str], str]) -> str:
    """The name of the client that sent this, "" for one that is shaped like Claude Code."""
    event = payload.get("hook_event_name")
    transcript = str(payload.get("transcript_path") or "").replace("\\", "/")
    if type(payload.get("gsd_client")) is str:
        return str(payload["gsd_client"])
    if "cursor_version" in payload or "generation_id" in payload or "loop_count" in payload:
        return "cursor"
    if "agent_stop_cause" in payload:
        return "auggie"
    if "fullyIdle" in payload or "terminationReason" in payload:
        return "antigravity"
    if event in ("AfterAgent", "BeforeAgent") or "prompt_response" in payload:
        return "gemini"
    if payload.get("client_type") == "kimi_code_cli":
        return "kimi"
    if "sessionId" in payload:
        return "vscode" if "hookEventName" in payload else "copilot"
    if "turn_id" in payload or "/.codex/" in transcript:
        return "codex"
    if "tool_execution_count" in payload:
        return "droid"
    if "crons" in payload or "context_limit" in payload or "/.qwen/" in transcript:
        return "qwen"
    if "initial_prompt" in payload or (
        "stop_reason" in payload and "permission_mode" not in payload
    ):
        return "copilot"
    if "event" in payload and event is None:
        return "goose"
    if "session_crons" in payload or "/.claude/" in transcript:
        return "claude"
    return next((client for variable, client in _BY_VARIABLE if env(variable)), "")


def event_of(payload: Payload) -> str:
    """The event in our words; clients that do not name it are told by what they send."""
    for name in ("hook_event_name", "hookEventName", "event"):
        said = payload.get(name)
        if type(said) is str:
            return SIGNALS.get(said, said)
    if "stopReason" in payload or "terminationReason" in payload:
        return "Stop"
    if "initialPrompt" in payload:
        return "SessionStart"
    return "UserPromptSubmit" if "prompt" in payload else ""


def ended_its_turn(payload: Payload, client: str) -> bool:
    """Whether this stop is the end of a turn that may be continued: not an abort or an error."""
    if client == "cursor":
        return payload.get("status") == "completed"
    if client == "auggie":
        return payload.get("agent_stop_cause") == "end_turn"
    return client != "antigravity" or payload.get("fullyIdle") is True


def is_quiet(client: str, agent: str) -> bool:
    """Whether this client (`agent`: its variable AI_AGENT) takes a block without calling it an error."""
    name, _, rest = agent.partition("_")
    if client != "claude" or name != "claude-code":
        return False
    numbers = [int(part) for part in rest.split("_")[0].split("-") if part.isdecimal()]
    return tuple(numbers) >= _QUIET_SINCE


def block_cap(client: str, wanted: str) -> int:
    """Blocks without a tool call after which the client ends the turn itself; 0 when it never does."""
    if client != "claude":
        return 0
    try:
        return max(0, int(wanted))
    except ValueError:
        return _DEFAULT_CAP


def block_answer(client: str, quiet: bool, text: str) -> Payload:
    """What makes this client go on, with this text for its model."""
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
    """What puts this text before the model at the start of a session or with a prompt."""
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
    """What shows this text to the user; nothing where a client has no way to."""
    return {"systemMessage": text} if client in _WITH_NOTICES else {}

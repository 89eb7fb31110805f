"""Who calls: a human or an agent, from which session of which client."""

from __future__ import annotations

from gsd_fsm.core.journal.transaction import Author
from gsd_fsm.core.names import session_name
from gsd_fsm.core.system import getenv

# client, variables it sets in the shells it opens, variable with its session's id
CLIENTS = (
    ("claude", ("CLAUDECODE",), "CLAUDE_CODE_SESSION_ID"),
    ("gemini", ("GEMINI_CLI",), "GEMINI_SESSION_ID"),
    ("qwen", ("QWEN_CODE",), "QWEN_CODE_SESSION_ID"),
    ("codex", ("CODEX_SANDBOX", "CODEX_THREAD_ID"), "CODEX_THREAD_ID"),
    ("copilot", ("COPILOT_CLI",), "COPILOT_SESSION_ID"),
    ("cursor", ("CURSOR_AGENT",), "CURSOR_SESSION_ID"),
    ("auggie", ("AUGMENT_AGENT",), "AUGMENT_CONVERSATION_ID"),
    ("opencode", ("OPENCODE",), "OPENCODE_SESSION_ID"),
    ("goose", ("GOOSE_TERMINAL",), "GOOSE_SESSION_ID"),
    ("agent", ("AI_AGENT",), "AI_AGENT_SESSION_ID"),
)


def caller() -> Author:
    """Return the caller of this process; treat an empty session id as none."""
    found = [
        Author(
            "agent" if any(getenv(marker) for marker in markers) else "human",
            session_name(getenv(session_variable)) or None,
            client,
        )
        for client, markers, session_variable in CLIENTS
    ]
    # A marked client first: a session id that another one left behind must not hide an agent.
    agents = [caller for caller in found if caller.by == "agent"]
    sessions = [caller for caller in found if caller.session]
    return next(iter(agents + sessions), Author("human", None, None))

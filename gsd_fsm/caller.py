"""Who calls: a human or an agent, from which session of which client."""

from __future__ import annotations

from typing import NamedTuple

from gsd_fsm.core.disk import getenv
from gsd_fsm.core.names import session_name

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


class Caller(NamedTuple):
    by: str
    session: str | None
    client: str | None

    def members(self) -> dict[str, str]:
        """The optional members of an event."""
        named = {"session": self.session, "client": self.client}
        return {name: value for name, value in named.items() if value}


def caller() -> Caller:
    """Whoever runs this process; an empty session id is none."""
    found = [
        Caller(
            "agent" if any(getenv(marker) for marker in markers) else "human",
            session_name(getenv(session_variable)) or None,
            client,
        )
        for client, markers, session_variable in CLIENTS
    ]
    # A marked client first: a session id that another one left behind must not hide an agent.
    agents = [caller for caller in found if caller.by == "agent"]
    sessions = [caller for caller in found if caller.session]
    return next(iter(agents + sessions), Caller("human", None, None))

"""Find out who calls: a human or an agent, from which session of which client."""

from __future__ import annotations

import os
from typing import NamedTuple

from gsd_fsm.core.ancestors import ancestors, clients_among
from gsd_fsm.core.journal.journal import Author
from gsd_fsm.core.loop.schema import session_name
from gsd_fsm.core.system import getenv

# client, variables it sets in the shells it opens, variable with the id of its session
CLIENTS = (
    ("claude", ("CLAUDECODE",), "CLAUDE_CODE_SESSION_ID"),
    ("gemini", ("GEMINI_CLI",), "GEMINI_SESSION_ID"),
    ("qwen", ("QWEN_CODE",), "QWEN_CODE_SESSION_ID"),
    ("codex", ("CODEX_SESSION_ID", "CODEX_SANDBOX", "CODEX_THREAD_ID"), "CODEX_SESSION_ID"),
    ("copilot", ("COPILOT_CLI",), "COPILOT_AGENT_SESSION_ID"),
    ("cursor", ("CURSOR_AGENT",), "CURSOR_SESSION_ID"),
    ("auggie", ("AUGMENT_AGENT",), "AUGMENT_CONVERSATION_ID"),
    ("opencode", ("OPENCODE",), "OPENCODE_SESSION_ID"),
    ("goose", ("GOOSE_TERMINAL",), "GOOSE_SESSION_ID"),
    ("grok", ("GROK_AGENT",), "GROK_SESSION_ID"),
    ("pi", ("PI_CODING_AGENT",), "PI_SESSION_ID"),
    ("agent", ("AI_AGENT",), "AI_AGENT_SESSION_ID"),
)
_HOMES = (
    "HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA",
    "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
)  # fmt: skip
_DROPPED = {
    *(name for _, markers, session in CLIENTS for name in (*markers, session)),
    *("CLAUDE_PID", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED"),
    *("GSD_FSM_DISABLE", "GSD_FSM_CHECK"),
}


class Above(NamedTuple):
    """What runs above this process: ids of all processes, and the nearest client ("": none)."""

    pids: tuple[int, ...]
    client: str


def above() -> Above:
    """Return what runs above this process; nothing if that cannot be read."""
    processes = ancestors()
    clients = clients_among(processes)
    return Above(tuple(it.pid for it in processes), clients[0].name if clients else "")


def caller() -> Author:
    """Return the caller of this process; treat an empty session id as none.

    A process below a client is an agent's whatever its variables say, and so is a check.
    """
    found = caller_by_variables()
    if found.by == "human":
        client = above().client
        if client or getenv("GSD_FSM_CHECK"):
            return Author("agent", found.session, client or found.client)
    return found


def caller_by_variables() -> Author:
    """Return the caller as its variables describe it: its session is known, `by` may be wrong."""
    # Markers come first: a session id left over from another client must not hide an agent.
    for client, markers, variable in CLIENTS:
        if any(getenv(marker) for marker in markers):
            return Author("agent", session_name(getenv(variable)) or None, client)
    for client, _, variable in CLIENTS:
        given = getenv(variable)
        session = session_name(given) if given else ""
        if session:
            return Author("human", session, client)
    return Author("human", None, None)


def scratch_environment(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the environment without traces of an agent, and with every home below `folder`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED and not name.endswith("_PROJECT_DIR")
    }
    return {**kept, **dict.fromkeys(_HOMES, os.path.join(folder, "home"))}

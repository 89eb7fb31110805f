"""Tell whether a user can have typed a prompt: not to a headless client, nor to one below another."""

from __future__ import annotations

from gsd_fsm.core.ancestors import ancestors, clients_among
from gsd_fsm.core.system import getenv


def prompt_source(client: str | None) -> str:
    """Return "" if a user can type prompts to the client of this process, else "headless" or "nested"."""
    clients = clients_among(ancestors())
    if len(clients) > 1:
        return "nested"
    if clients and clients[0].headless:
        return "headless"
    return "headless" if client in (None, "", "claude") and _is_unattended() else ""


def _is_unattended() -> bool:
    """Return whether Claude Code says that no user is in front of it."""
    attended = getenv("CLAUDE_CODE_SESSION_ATTENDED")
    if attended:
        return attended == "0"
    return getenv("CLAUDE_CODE_ENTRYPOINT").startswith("sdk-")

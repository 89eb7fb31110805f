"""Names of sessions and clients: foreign text that may stand in an event."""

from __future__ import annotations

from gsd_fsm.core.codec import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_session(text: Any) -> bool:
    """Whether this can be a session's or client's name: short printable ASCII without blanks."""
    return (
        type(text) is str
        and 0 < len(text) <= 200
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def session_name(text: str) -> str:
    """The text as a session's name, "" for none: what cannot be one is named by its digest."""
    text = text.strip()
    return text if not text or is_session(text) else "x-" + digest_of(text)


def kept_name(name: str, loop_id: str) -> str:
    """Return the name under which a file is saved before it first shows this loop."""
    return "%s.before-%s" % (name, loop_id)

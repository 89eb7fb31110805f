"""Check events: the members of every journal line, and the payload of its type."""

from __future__ import annotations

from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.codec import check_value, decode_line
from gsd_fsm.core.errors import Newer
from gsd_fsm.core.loop.schema import check_fields, is_id
from gsd_fsm.core.loop.table import EVENTS, OF_THE_JOURNAL
from gsd_fsm.core.names import is_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

VERSION = 1
BY = ("agent", "human", "hook", "cli")
MEMBERS = frozenset(
    ("v", "seq", "ts", "loop", "type", "by", "session", "client", "optional", "data", "sum")
)
_known_by = frozenset(BY)
_minute = [""]


def check_time(ts: Any) -> None:
    """Raise ValueError unless this is a time as the journal writes it."""
    # Most lines share their minute with the line before: only a new one is parsed.
    if type(ts) is str and ts[:17] == _minute[0]:
        rest = ts[17:]
        digits = rest[:2] + rest[3:6]
        signs = rest[2:3] + rest[6:]
        if digits.isdecimal() and digits < "6" and signs == ".Z" and ts.isascii():
            return
    try:
        to_ms(ts)
    except (TypeError, ValueError):
        raise ValueError("ts is not a time") from None
    _minute[0] = ts[:17]


def check_event(event: Any) -> None:
    """Raise ValueError unless this is an event that the fold can apply; Newer for a later version."""
    if type(event) is not dict:
        raise ValueError("not a JSON object")
    # The version first: what a later one changed must not pass for damage.
    version = event.get("v", VERSION)
    if version != VERSION or type(version) is not int:
        raise Newer("an event has version %.20r" % (version,))
    try:
        seq, loop, kind = event["seq"], event["loop"], event["type"]
        by, data = event["by"], event["data"]
        check_time(event["ts"])
    except KeyError as missing:
        raise ValueError("no member %s" % missing) from None
    if "v" not in event:
        raise ValueError("no member 'v'")
    if type(seq) is not int:
        raise ValueError("seq is not a number")
    if type(by) is not str or by not in _known_by:
        raise ValueError("by is none of %s" % ", ".join(BY))
    if type(data) is not dict:
        raise ValueError("data is not an object")
    if type(kind) is not str or kind not in EVENTS:
        if event.get("optional") is not True or not is_id(kind):
            raise ValueError("unknown event type %.40r" % (kind,))
        if loop is not None and not is_id(loop):
            raise ValueError("loop is not an id")
        _check_members(event)
        check_value(event)
        return
    if not is_id(loop) and (loop is not None or kind not in OF_THE_JOURNAL):
        raise ValueError("loop is not an id")
    if len(event) > 7:
        _check_members(event)
    check_payload(kind, data)


def check_payload(kind: str, data: dict[str, Any]) -> None:
    """Raise ValueError unless an event of this known type may carry this."""
    check_fields(EVENTS[kind], data)


def _check_members(event: dict[str, Any]) -> None:
    unknown = [name for name in event if name not in MEMBERS]
    if unknown:
        raise ValueError("unknown member %.40r" % unknown[0])
    if not (is_session(event.get("session", "-")) and is_session(event.get("client", "-"))):
        raise ValueError("session or client is not a name")
    if type(event.get("optional", False)) is not bool:
        raise ValueError("optional is not a flag")


def load_event(line: bytes, loads: Callable[[bytes], Any] = decode_line) -> Any:
    """Return the event of a line whose sum is right; raise ValueError if it is not an event."""
    event = loads(line)
    check_event(event)
    return event

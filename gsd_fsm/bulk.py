"""Reading whole journals fast: orjson, and no line parsed twice.

Everything here gives what `gsd_fsm.core.events.load_event` gives, or refuses what it refuses; a
test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from gsd_fsm.core.codec import MAX_DEPTH, SUM_TAIL, check_value, dumps
from gsd_fsm.core.events import MILLIS, check_event, check_time
from gsd_fsm.core.fold import World

Event = dict[str, Any]
_HEAD = b'{"v":1,"seq":%d,"ts":"'
_REMEMBERED = 4096
_SHORT = 512


def fast_loads(line: bytes) -> Any:
    """What `decode_line` gives, several times faster; for lines whose sum is right."""
    if line[:1] != b"{" or not line.isascii():
        raise ValueError("not an ASCII JSON object")
    value = orjson.loads(line)
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH:
        check_value(value)
    return value


def fast_load_event(line: bytes) -> Event:
    event = fast_loads(line)
    check_event(event)
    return event  # type: ignore[no-any-return] # checked


def watching(visit: Callable[[Event], None]) -> Callable[[World], Callable[[bytes], None]]:
    """A reader that shows each event to `visit` before it is folded."""

    def reader(world: World) -> Callable[[bytes], None]:
        def take(line: bytes) -> None:
            event = fast_load_event(line)
            visit(event)
            world.fold(event)

        return take

    return reader


def in_bulk(world: World) -> Callable[[bytes], None]:
    """A reader that remembers the parts of lines it has checked.

    Lines differ in seq and time; who did what to which loop, and with what data, recurs. A line
    made of a known middle and known data needs no parser. The fold keeps no event, so one object
    serves all lines with the same middle.
    """
    # The middle of a line -> its event, and the payloads already checked for that type of event.
    middles: dict[bytes, tuple[Event, dict[bytes, Any]]] = {}
    payloads: dict[str, dict[bytes, Any]] = {}
    fold = world.fold

    def parse(line: bytes, start: int, split: int) -> None:
        event = fast_load_event(line)
        fold(event)
        # Only lines just as we write them are remembered: their parts can be put together anew.
        if len(line) > _SHORT or dumps(event) != str(line, "ascii"):
            return
        middle = line[start:split]
        checked = payloads.setdefault(event["type"], {})
        if len(middles) >= _REMEMBERED or len(checked) >= _REMEMBERED:
            middles.clear()
            checked.clear()
        middles[middle] = (dict(event), checked)
        checked[line[split:-SUM_TAIL]] = event["data"]

    second = ""

    def take(line: bytes) -> None:
        nonlocal second
        seq = world.seq + 1
        head = _HEAD % seq
        start = len(head) + 24
        split = line.find(b',"data":', start)
        known = middles.get(line[start:split])
        if known is not None and line.startswith(head):
            event, checked = known
            data = checked.get(line[split:-SUM_TAIL])
            if data is not None:
                ts = line[start - 24 : start].decode()
                if ts[:20] != second or ts[20:] not in MILLIS:
                    check_time(ts)
                    second = ts[:20]
                event["seq"] = seq
                event["ts"] = ts
                event["data"] = data
                fold(event)
                return
        parse(line, start, split)

    return take

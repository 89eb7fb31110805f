"""Verified lines into the fold, and nothing parsed twice.

A line as we write it is a head with the seq, a time, a middle (who does what to which loop), data
and a sum. Middles recur, and mostly data too: each is parsed and checked once, by itself, and
remembered. A line of any other form is parsed whole. Either way the fold gets what `load_event`
gives; a test compares them.
"""

from __future__ import annotations

from gsd_fsm.core.codec import MAX_DEPTH, SUM_TAIL, decode_line, dumps
from gsd_fsm.core.loop.envelope import check_payload, check_time, load_event
from gsd_fsm.core.loop.table import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event

_HEAD = b'{"v":1,"seq":%d,"ts":"'
_TIME = 24
_DATA = b',"data":'
_OF_THE_LINE = frozenset(("v", "seq", "ts", "data", "sum"))
_REMEMBERED = 4096
_SHORT = 512


def _middle_of(event: dict[str, Any]) -> bytes:
    """The bytes between the time and the data of this event, as we write them."""
    members = {name: value for name, value in event.items() if name not in _OF_THE_LINE}
    return dumps({"ts": "", **members})[len('{"ts":"') : -1].encode("ascii")


def into_fold(loops: Loops, loads: Callable[[bytes], Any] = decode_line) -> Callable[[bytes], None]:
    """What takes each line of a journal, in order, into this loops."""
    # The middle of a line -> its event, and the data already checked for that type of event. The
    # fold keeps no event and changes no data, so one object serves all lines with the same bytes.
    middles: dict[bytes, tuple[Event[Any], dict[bytes, Any]]] = {}
    checked: dict[str, dict[bytes, Any]] = {}
    fold = loops.fold
    second = b""

    def take_whole(line: bytes, middle: bytes) -> None:
        event = load_event(line, loads)
        fold(event)
        if event["type"] in EVENTS and _middle_of(event) == middle:
            if len(middles) >= _REMEMBERED:
                middles.clear()
            middles[middle] = (event, checked.setdefault(event["type"], {}))

    def learn(kind: str, raw: bytes, known: dict[bytes, Any]) -> Any:
        """The data of these bytes, or None if only the whole line tells what is wrong with them."""
        try:
            data = loads(raw[len(_DATA) :])
            if type(data) is not dict or raw.count(b"{") + raw.count(b"[") >= MAX_DEPTH:
                return None
            check_payload(kind, data)
        except ValueError:
            return None
        if len(raw) <= _SHORT:
            if len(known) >= _REMEMBERED:
                known.clear()
            known[raw] = data
        return data

    def take(line: bytes) -> None:
        nonlocal second
        seq = loops.seq + 1
        head = _HEAD % seq
        start = len(head) + _TIME
        split = line.find(_DATA, start)
        middle = middles.get(line[start:split])
        if middle is None or not line.startswith(head):
            return take_whole(line, line[start:split])
        event, known = middle
        raw = line[split:-SUM_TAIL]
        data = known.get(raw)
        if data is None:
            data = learn(event["type"], raw, known)
            if data is None:
                return take_whole(line, line[start:split])
        time = line[start - _TIME : start]
        ts = time.decode()
        if time[:20] != second or not time[20:23].isdigit() or time[23:] != b"Z":
            check_time(ts)
            second = time[:20]
        event["seq"] = seq
        event["ts"] = ts
        event["data"] = data
        fold(event)
        return None

    return take

"""Read the lines of a journal: verify each, distinguish torn from corrupt, stop at damage, and fold.

After the last good line there may be an unfinished tail (torn): an append that never returned.
Everything else that is not a good line is corrupt.

A line as we write it is a head with the seq, a time, a middle (who does what to which loop), data
and a sum. Middles recur, and mostly data too: `into_fold` parses and checks each once, by itself,
and remembers it. A line of any other form is parsed whole. Either way the fold gets what
`load_event` returns; a test compares them.
"""

from __future__ import annotations

from gsd_fsm.core.codec import MAX_DEPTH, MAX_LINE, SUM_TAIL, decode_line, dumps, sha256
from gsd_fsm.core.errors import Corrupt, Refused
from gsd_fsm.core.loop.fold import EVENTS
from gsd_fsm.core.loop.schema import check_event, check_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.schema import EventType

CHUNK = 1 << 16
SECTOR = 512

_HEAD = b'{"v":1,"seq":%d,"ts":"'
_TIME = 24
_DATA = b',"data":'
_OF_THE_LINE = frozenset(("v", "seq", "ts", "data", "sum"))
_REMEMBERED = 4096
_SHORT = 512


class Cursor:
    """How far a journal was read: so many good bytes and lines, and the sum of the last line."""

    __slots__ = ("line", "offset", "sum", "torn", "unended")

    def __init__(self, offset: int = 0, line: int = 0, sum_: str = "") -> None:
        self.offset = offset
        self.line = line
        self.sum = sum_
        self.torn = 0
        # A last line that is whole but for its newline: bytes to cut before completing it.
        self.unended: int | None = None


def frame_ok(line: bytes, previous: str) -> bool:
    """Return whether this line, without its newline, carries the right sum."""
    digest = sha256(previous.encode("ascii") + line[:-SUM_TAIL]).hexdigest()[:16]
    return bool(line[-SUM_TAIL:] == b',"sum":"' + digest.encode("ascii") + b'"}')


def _lost_sector(line: bytes, offset: int) -> bool:
    """Return whether a disk sector of this line was never written: all NUL from edge to edge."""
    end = offset + len(line)
    start = offset
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        part = line[start - offset : stop - offset]
        # One NUL byte alone may be damage to an acknowledged line; that must not pass for torn.
        if len(part) > 1 and not part.strip(b"\0"):
            return True
        start = stop
    return False


def scan(
    read: Callable[[int, int], bytes],
    size: int,
    at: Cursor,
    take: Callable[[bytes], None],
    sha: Any = sha256,
) -> Cursor:
    """Call `take` with every line whose sum is right, up to `size`; return the cursor after the last.

    Raises Corrupt at the first line that is damaged or that `take` refuses; a torn tail is only
    noted in the cursor.
    """
    offset, number, previous = at.offset, at.line, at.sum.encode("ascii")
    reached = offset
    rest = b""
    good = 0  # lines of this chunk
    lines: list[bytes] = []
    try:
        while reached < size:
            chunk = read(reached, min(CHUNK, size - reached))
            if not chunk:
                break
            reached += len(chunk)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            good = 0
            for line in lines:
                digest = sha(previous + line[:-26]).hexdigest()[:16].encode()
                if line[-26:] != b',"sum":"' + digest + b'"}':
                    raise ValueError(_what_is_wrong(line))
                if len(line) >= MAX_LINE:
                    raise ValueError("longer than %d bytes" % MAX_LINE)
                take(line)
                previous = digest
                good += 1
            number += good
            offset += sum(map(len, lines)) + good
            if len(rest) > MAX_LINE:
                lines, good = [rest], 0
                raise ValueError("longer than %d bytes" % MAX_LINE)
        end = Cursor(offset, number, previous.decode("ascii"))
        lines, good = [rest], 0
        if rest:
            _finish(end, rest, take)
    except (ValueError, Refused) as error:
        number += good
        offset += sum(map(len, lines[:good])) + good
        bad = lines[good] + b"\n"
        end = Cursor(offset, number, previous.decode("ascii"))
        is_last = offset + len(bad) == size
        if is_last and _lost_sector(bad, offset) and not frame_ok(bad[:-1], end.sum):
            end.torn = len(bad)
            return end
        message = error.message if isinstance(error, Refused) else str(error)
        raise Corrupt(message, number + 1, offset) from error
    return end


def _what_is_wrong(line: bytes) -> str:
    if len(line) >= MAX_LINE:
        return "longer than %d bytes" % MAX_LINE
    if not line:
        return "an empty line"
    if line.endswith(b"\r"):
        return "the line endings were changed (CRLF)"
    if line[-SUM_TAIL:][:8] != b',"sum":"':
        return "no sum at its end"
    return "its sum does not match: the line was changed, or lines before it are missing or moved"


def _finish(end: Cursor, rest: bytes, take: Callable[[bytes], None]) -> None:
    """Judge the bytes after the last newline."""
    whole = rest.rstrip(b"\0")
    if whole and frame_ok(whole, end.sum):
        if len(whole) >= MAX_LINE:
            raise ValueError("longer than %d bytes" % MAX_LINE)
        take(whole)
        end.sum = whole[-18:-2].decode("ascii")
        end.line += 1
        end.unended = end.offset + len(whole)
        end.offset += len(rest)
        return
    if frame_ok(rest[:-1], end.sum):
        raise ValueError("its newline was changed")
    end.torn = len(rest)


# lines into the fold


def load_event(line: bytes, loads: Callable[[bytes], Any] = decode_line) -> Any:
    """Return the event of a line whose sum is right; raise ValueError if it is not an event."""
    event = loads(line)
    check_event(event, EVENTS)
    return event


def _middle_of(event: dict[str, Any]) -> bytes:
    """Return the bytes between the time and the data of this event, as we write them."""
    members = {name: value for name, value in event.items() if name not in _OF_THE_LINE}
    return dumps({"ts": "", **members})[len('{"ts":"') : -1].encode("ascii")


def into_fold(loops: Loops, loads: Callable[[bytes], Any] = decode_line) -> Callable[[bytes], None]:
    """Return a function that takes each line of a journal, in order, and folds it into `loops`."""
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

    def learn(declared: EventType, raw: bytes, known: dict[bytes, Any]) -> Any:
        """Return the data of these bytes, None if only the whole line shows what is wrong."""
        try:
            data = loads(raw[len(_DATA) :])
            if type(data) is not dict or raw.count(b"{") + raw.count(b"[") >= MAX_DEPTH:
                return None
            declared.check(data)
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
            data = learn(EVENTS[event["type"]], raw, known)
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

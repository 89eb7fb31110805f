"""Reading a journal's bytes: verify every line, tell torn from corrupt, stop at damage.

After the last good line there may be an unfinished tail (torn): an append that never returned.
Everything else that is not a good line is corrupt.
"""

from __future__ import annotations

from gsd_fsm.core.codec import MAX_LINE, SUM_TAIL, decode_line, sha256
from gsd_fsm.core.errors import Corrupt, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

CHUNK = 1 << 20
SECTOR = 512


class Position:
    """Where a scan stands: after so many good bytes, lines and events, with this sum."""

    __slots__ = ("line", "offset", "sum", "torn", "unended")

    def __init__(self, offset: int = 0, line: int = 0, sum_: str = "") -> None:
        self.offset = offset
        self.line = line
        self.sum = sum_
        self.torn = 0
        # A last line that is whole but for its newline: bytes to cut before completing it.
        self.unended: int | None = None


def frame_ok(line: bytes, previous: str) -> bool:
    """Whether this line, without its newline, carries the right sum."""
    digest = sha256(previous.encode("ascii") + line[:-SUM_TAIL]).hexdigest()[:16]
    return line[-SUM_TAIL:] == b',"sum":"' + digest.encode("ascii") + b'"}'


def _lost_sector(line: bytes, offset: int) -> bool:
    """Whether a disk sector of this line was never written: all NUL from edge to edge."""
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
    at: Position,
    visit: Callable[[Any], None],
    loads: Callable[[bytes], Any] = decode_line,
    sha: Any = sha256,
) -> Position:
    """Visit every event up to `size` and return the position behind the last good one.

    Raises Corrupt at the first damage; a torn tail is only noted in the position.
    """
    offset, number, previous = at.offset, at.line, at.sum.encode("ascii")
    reached = offset
    rest = b""
    try:
        while reached < size:
            chunk = read(reached, min(CHUNK, size - reached))
            if not chunk:
                break
            reached += len(chunk)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                digest = sha(previous + line[:-26]).hexdigest()[:16].encode()
                if line[-26:] != b',"sum":"' + digest + b'"}':
                    if offset + len(line) + 1 == size and _lost_sector(line + b"\n", offset):
                        rest = line + b"\n"
                        break
                    raise ValueError(_what_is_wrong(line))
                if len(line) >= MAX_LINE:
                    raise ValueError("longer than %d bytes" % MAX_LINE)
                visit(loads(line))
                previous = digest
                number += 1
                offset += len(line) + 1
            if len(rest) > MAX_LINE and reached < size:
                raise ValueError("longer than %d bytes" % MAX_LINE)
        end = Position(offset, number, previous.decode("ascii"))
        if rest:
            _finish(end, rest, visit, loads)
    except (ValueError, Refused) as error:
        message = error.message if isinstance(error, Refused) else str(error)
        raise Corrupt(message, number + 1, offset) from error
    return end


def _what_is_wrong(line: bytes) -> str:
    if len(line) >= MAX_LINE:
        return "longer than %d bytes" % MAX_LINE
    if not line:
        return "an empty line"
    if line.endswith(b"\r"):
        return "the line ends were changed (CRLF)"
    if line[-SUM_TAIL:][:8] != b',"sum":"':
        return "no sum at its end"
    return "its sum does not match: the line was changed, or lines before it are missing or moved"


def _finish(end: Position, rest: bytes, visit: Callable[[Any], None], loads: Any) -> None:
    """Judge the bytes after the last newline."""
    whole = rest.rstrip(b"\0")
    if len(rest) <= 2 * MAX_LINE:
        if whole and frame_ok(whole, end.sum):
            visit(loads(whole))
            end.sum = whole[-18:-2].decode("ascii")
            end.line += 1
            end.unended = end.offset + len(whole)
            end.offset += len(rest)
            return
        if not rest.endswith(b"\n") and frame_ok(rest[:-1], end.sum):
            raise ValueError("its newline was changed")
    end.torn = len(rest)

"""Reading a journal's bytes: verify every line, tell torn from corrupt, stop at damage.

After the last good line there may be an unfinished tail (torn): an append that never returned.
Everything else that is not a good line is corrupt.
"""

from __future__ import annotations

from gsd_fsm.core.codec import MAX_LINE, SUM_TAIL, sha256
from gsd_fsm.core.errors import Corrupt, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

CHUNK = 1 << 16
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
    return bool(line[-SUM_TAIL:] == b',"sum":"' + digest.encode("ascii") + b'"}')


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
    take: Callable[[bytes], None],
    sha: Any = sha256,
) -> Position:
    """Let `take` have every line with a right sum, up to `size`; the position behind the last.

    Raises Corrupt at the first line that is damaged or that `take` refuses; a torn tail is only
    noted in the position.
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
        end = Position(offset, number, previous.decode("ascii"))
        lines, good = [rest], 0
        if rest:
            _finish(end, rest, take)
    except (ValueError, Refused) as error:
        number += good
        offset += sum(map(len, lines[:good])) + good
        bad = lines[good] + b"\n"
        end = Position(offset, number, previous.decode("ascii"))
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
        return "the line ends were changed (CRLF)"
    if line[-SUM_TAIL:][:8] != b',"sum":"':
        return "no sum at its end"
    return "its sum does not match: the line was changed, or lines before it are missing or moved"


def _finish(end: Position, rest: bytes, take: Callable[[bytes], None]) -> None:
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

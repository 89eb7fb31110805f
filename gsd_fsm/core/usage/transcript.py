"""Read money and tokens from a client's transcript; count each reply once, however often read."""

from __future__ import annotations

from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.schema import session_name
from gsd_fsm.core.syscalls import READ, close, is_regular, read_at, read_file
from gsd_fsm.core.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.state import Loop

# Of a transcript that grew by more than this, only the end is read; longer rows are not replies.
_MOST_READ = 8 << 20
_LONGEST_ROW = 1 << 20
# The client's own bound for a session; sums of such figures stay below 2^53.
_MOST_SPENT = 1_000_000_000
_LAST_REPLIES = 16
_REPLY = b'"type":"assistant"'
_TIMESTAMP = b'"timestamp":"'
_TOKENS = (
    "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
)  # fmt: skip


class Spending:
    """What a part of a transcript adds, and where the next part begins.

    `total_usd` is the client's own figure for the whole session, None if it reports none.
    """

    __slots__ = ("messages", "offset", "tokens", "total_usd", "usd")

    def __init__(self, messages: list[str]) -> None:
        self.tokens = 0
        self.usd = 0.0
        self.total_usd: float | None = None
        self.offset = 0
        self.messages = messages


def is_resting(loop: Loop) -> bool:
    """Return whether its session now works on something else: the user went on during a pause."""
    return bool(loop.status == "paused" and loop.human_spoke)


def is_younger(path: str, moment: str) -> bool:
    """Return whether the first reply in this transcript is later than `moment`, so that all are."""
    try:
        start = read_file(path, 0, _LONGEST_ROW)
    except (OSError, ValueError):
        return False
    replies = [row for row in start.split(b"\n") if _REPLY in row]
    if not replies:
        return len(start) < _LONGEST_ROW
    first = replies[0].partition(_TIMESTAMP)[2][:24].decode("ascii", "replace")
    return bool(first) and first >= moment


def unpaid(loop: Loop, session: str, total: float) -> float:
    """Return the part of a session's first total that was not counted reply by reply."""
    return float(max(0, round(total - loop.priced_usd.get(session, 0), 6)))


def read_spending(path: str, counted: int, messages: list[str], since: str) -> Spending | None:
    """Return what the transcript adds after `counted` bytes; None for nothing.

    `messages`: the last replies that were counted before. Rows older than `since` do not count. A
    row that is still being written is left for the next time.
    """
    try:
        rows, offset = _new_rows(path, counted)
    except (OSError, ValueError):
        return None
    found = Spending(messages[-_LAST_REPLIES:])
    known = set(found.messages)
    for raw in rows:
        if len(raw) <= _LONGEST_ROW and (b'"usage"' in raw or b'"cost-state"' in raw):
            row = _parsed(raw)
            if row is not None and not _is_older(row, since):
                _take_row(found, row, known)
    found.offset = offset
    found.usd = round(found.usd, 6)
    return found if found.tokens or found.usd or found.total_usd is not None else None


def _new_rows(path: str, counted: int) -> tuple[list[bytes], int]:
    """Return the complete new rows, and the offset of their end."""
    fd = system.open(path, READ)
    try:
        info = system.fstat(fd)
        if not is_regular(info):
            raise ValueError("not a regular file")
        start = counted if 0 <= counted <= info.st_size else 0  # shorter: it was replaced
        skipped = info.st_size - start > _MOST_READ
        if skipped:
            start = info.st_size - _MOST_READ
        data = read_at(fd, start, info.st_size - start)
    finally:
        close(fd)
    end = data.rfind(b"\n") + 1
    rows = data[:end].split(b"\n")
    return rows[1:] if skipped else rows, start + end


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        row = parse_json(raw.decode("utf-8").strip())
    except ValueError:
        return None
    return row if type(row) is dict else None


def _is_older(row: dict[str, Any], since: str) -> bool:
    moment = row.get("timestamp")
    return type(moment) is str and moment < since


def _take_row(found: Spending, row: dict[str, Any], known: set[str]) -> None:
    """Add what this row reports: a reply that is not known yet, or the total of the session."""
    if row.get("type") == "cost-state":
        if _is_figure(row.get("totalCostUSD")):
            found.total_usd = row["totalCostUSD"]
        return
    message = row.get("message")
    if row.get("type") != "assistant" or type(message) is not dict:
        return
    usage, name = message.get("usage"), message.get("id")
    name = session_name(name) if type(name) is str else ""
    if type(usage) is not dict or not name:
        return
    found.messages = [each for each in found.messages if each != name][1 - _LAST_REPLIES :] + [name]
    if name in known:
        return
    known.add(name)
    tokens = [usage.get(kind) for kind in _TOKENS]
    found.tokens += sum(n for n in tokens if type(n) is int and 0 <= n <= _MOST_SPENT)
    if _is_figure(row.get("costUSD")):
        found.usd += row["costUSD"]


def _is_figure(value: Any) -> bool:
    """Return whether this is a valid amount; comparisons with NaN and infinity fail."""
    return type(value) in (int, float) and 0 <= value <= _MOST_SPENT

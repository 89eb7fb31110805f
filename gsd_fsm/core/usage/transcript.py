"""Read money and tokens from a client's transcript; count each reply once, however often read."""

from __future__ import annotations

from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.schema import session_name
from gsd_fsm.core.syscalls import READ, close, is_regular, read_at, read_file
from gsd_fsm.core.system import system
from gsd_fsm.core.usage.prices import reply_usd, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.core.usage.prices import Prices

# A transcript is read in parts, and if it grew by more than can be read in time, only its end.
_PART = 4 << 20
_MOST_READ = 256 << 20
_LONGEST_ROW = 1 << 20  # longer ones are not replies
_LAST_PART = 1 << 18
# The client's own bound for a session; sums of such figures stay below 2^53.
_MOST_SPENT = 1_000_000_000
_LAST_REPLIES = 16
_REPLY = b'"type":"assistant"'
_TIMESTAMP = b'"timestamp":"'
# A client writes the last reply while its hooks run already: how often, and how long to wait.
_LOOKS = 20
_LOOK_SECONDS = 0.01


class Spending:
    """What a part of a transcript adds, and where the next part begins.

    `usd` is what its replies cost, `is_estimate`: at least one of them by the price table.
    `total_usd` is the client's own figure for the whole session, None if it reports none.
    """

    __slots__ = ("is_estimate", "messages", "offset", "prices", "tokens", "total_usd", "usd")

    def __init__(self, messages: list[str], prices: Prices) -> None:
        self.prices = prices
        self.tokens = 0
        self.usd = 0.0
        self.is_estimate = False
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


def total_of(loop: Loop, session: str, total: float, path: str) -> dict[str, Any]:
    """Return the members of a `spend` event for the client's own total of a session."""
    data: dict[str, Any] = {"meter": session, "total_usd": total}
    if session not in loop.usage.totals and is_younger(path, loop.owned_since):
        data["whole"] = True
    return data


def read_spending(
    path: str, counted: int, messages: list[str], since: str, prices: Prices
) -> Spending | None:
    """Return what the transcript adds after `counted` bytes; None for nothing.

    `messages`: the last replies that were counted before. Rows older than `since` do not count. A
    row that is still being written is left for the next time. Without `prices`, a reply costs only
    what the client says.
    """
    found = Spending(messages[-_LAST_REPLIES:], prices)
    known = set(found.messages)
    try:
        for rows, offset in _parts(path, counted, _MOST_READ):
            for raw in rows:
                if b'"usage"' in raw or b'"cost-state"' in raw:
                    row = _parsed(raw)
                    if row is not None and not _is_older(row, since):
                        _take_row(found, row, known)
            found.offset = offset
    except (OSError, ValueError):
        return None
    found.usd = round(found.usd, 6)
    return found if found.tokens or found.usd or found.total_usd is not None else None


def await_reply(path: str, text: str, known: list[str]) -> None:
    """Wait a moment until the transcript ends with this last reply of the agent.

    `known`: replies that were counted before; an equal text may have been one of them.
    """
    from time import sleep

    wanted = text.strip()
    for _ in range(_LOOKS if wanted else 0):
        try:
            rows = [row for rows, _ in _parts(path, 0, _LAST_PART) for row in rows]
        except (OSError, ValueError):
            rows = []
        if any(_is_reply(raw, wanted, known) for raw in reversed(rows)):
            return
        sleep(_LOOK_SECONDS)


def _is_reply(raw: bytes, text: str, known: list[str]) -> bool:
    """Return whether this row has a block of a new reply with this text."""
    row = _parsed(raw) if _REPLY in raw else None
    reply = row.get("message") if row is not None else None
    if type(reply) is not dict or reply.get("id") in known:
        return False
    blocks = reply.get("content")
    return any(
        type(block) is dict and str(block.get("text", "")).strip() == text
        for block in (blocks if type(blocks) is list else ())
    )


def _parts(path: str, counted: int, most: int) -> Iterator[tuple[list[bytes], int]]:
    """Yield the complete rows after `counted` bytes, part by part, with the offset of their end."""
    fd = system.open(path, READ)
    try:
        info = system.fstat(fd)
        if not is_regular(info):
            raise ValueError("not a regular file")
        size = info.st_size
        at = counted if 0 <= counted <= size else 0  # shorter: it was replaced
        is_cut = size - at > most
        at = size - most if is_cut else at
        while at < size:
            data = read_at(fd, at, min(_PART, size - at))
            end = data.rfind(b"\n") + 1
            if not end and len(data) < _PART:
                return  # the last row is still being written
            rows = data[:end].split(b"\n")
            at += end or len(data)
            yield rows[is_cut:], at
            is_cut = not end  # a row longer than a part goes on
    finally:
        close(fd)


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        row = parse_json(raw.decode("utf-8").strip()) if len(raw) <= _LONGEST_ROW else None
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
    found.tokens += tokens_of(usage)
    if _is_figure(row.get("costUSD")):
        found.usd += row["costUSD"]
    elif found.prices and tokens_of(usage):
        found.usd += reply_usd(found.prices, str(message.get("model") or ""), usage)
        found.is_estimate = True


def _is_figure(value: Any) -> bool:
    """Return whether this is a valid amount; comparisons with NaN and infinity fail."""
    return type(value) in (int, float) and 0 <= value <= _MOST_SPENT

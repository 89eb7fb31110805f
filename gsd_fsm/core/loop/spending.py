"""Add up what a loop has spent, and say it in words.

Of a session counts the larger of two figures: the growth of the client's own total, and the sum of
its replies. Neither ever shrinks.
"""

from __future__ import annotations

from gsd_fsm.core.loop.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

    from gsd_fsm.core.loop.payloads import Event, PriceSpec, SpendData
    from gsd_fsm.core.loop.records import Limits
    from gsd_fsm.core.loop.state import Loop

# Transcripts whose offsets a loop remembers: one for each session and subagent.
MOST_SOURCES = 2_000
FAST, LONG = " fast", " long"
# Smaller amounts are shown with four digits after the point.
_SMALL_USD = 0.1


class Usage(Record):
    """What sessions spent on a loop, and how far their transcripts were read."""

    def __init__(self) -> None:
        # The prices frozen by `start`: US dollars for a million tokens, by model. FAST and LONG
        # after its name mark those of fast replies and of long prompts.
        self.prices: dict[str, dict[str, float]] = {}
        # By session: the client's last total, how much it has grown, and what its replies cost.
        self.totals: dict[str, float] = {}
        self.reported_usd: dict[str, float] = {}
        self.replies_usd: dict[str, float] = {}
        # Sessions with replies that were priced by the table, and those whose next total is only a
        # starting point.
        self.estimated: dict[str, None] = {}
        self.resets: dict[str, None] = {}
        # How far each transcript was counted, and the last replies in it.
        self.offsets: dict[str, tuple[int, list[str]]] = {}
        # What was reported since the owner changed (usd, tokens), and the stops since then or since
        # the last `resume`.
        self.sources: dict[str, None] = {}
        self.stops = 0

    def take_prices(self, rows: Iterable[PriceSpec]) -> None:
        for row in rows:
            mark = FAST if row.get("fast") else LONG if "above" in row else ""
            self.prices[row["model"] + mark] = {
                name: float(it)  # type: ignore[arg-type]
                for name, it in row.items()
                if type(it) in (int, float)
            }

    def counted_usd(self, session: str) -> float:
        return max(self.reported_usd.get(session, 0), self.replies_usd.get(session, 0))

    @property
    def is_estimate(self) -> bool:
        """Return whether a part of the money spent comes from the price table."""
        return any(
            self.replies_usd.get(session, 0) > self.reported_usd.get(session, 0)
            for session in self.estimated
        )

    def begin_session(self) -> None:
        """Forget the sources of the session that owned the loop before."""
        self.sources = {}
        self.stops = 0


def record_spending(loop: Loop, event: Event[SpendData]) -> None:
    data, usage = event["data"], loop.usage
    session = data.get("meter", event.get("session") or "")
    before = usage.counted_usd(session)
    if "replies_usd" in data:
        usage.replies_usd[session] = _sum(usage.replies_usd.get(session, 0), data["replies_usd"])
    if data.get("estimated"):
        usage.estimated[session] = None
    if "meter" in data:
        _record_total(usage, session, data)
    if "counted" in data:
        _record_offset(loop, data)
    usd = data.get("usd", 0) + usage.counted_usd(session) - before
    loop.spent_usd = _sum(loop.spent_usd, usd)
    loop.spent_tokens += data.get("tokens", 0)
    # An agent cannot make its client count by recording something itself.
    is_report = "counted" in data or "meter" in data or event["by"] == "human"
    for source in ("usd", "tokens"):
        if is_report and data.keys() & {source, "total_" + source, "replies_" + source}:
            usage.sources[source] = None
    if loop.pause_code == "budget" and usage.prices:
        loop.pause_reason = used_up_words(loop, loop.limits) or loop.pause_reason


def _record_total(usage: Usage, session: str, data: Mapping[str, Any]) -> None:
    """Take over a total of the client.

    The first one is only a starting point, unless the whole session belongs to the loop. One that
    is smaller than the last is late, or the client has begun anew: with prices the replies count
    then, without them it counts as a whole.
    """
    total = data.get("total_usd", 0)
    last = usage.totals.get(session)
    if last is not None and usage.prices and session not in usage.resets:
        total = max(total, last)
    usage.totals[session] = total
    if session in usage.resets or (last is None and not data.get("whole")):
        usage.resets.pop(session, None)
        usage.reported_usd[session] = usage.counted_usd(session)
        return
    growth = total - last if last is not None and total >= last else total
    usage.reported_usd[session] = _sum(usage.reported_usd.get(session, 0), growth)


def _record_offset(loop: Loop, data: Mapping[str, Any]) -> None:
    offsets, source = loop.usage.offsets, data.get("source", "")
    offsets.pop(source, None)
    offsets[source] = (data["counted"], data.get("messages", []))
    if len(offsets) > MOST_SOURCES:
        del offsets[next(name for name in offsets if name != loop.owner)]


def _sum(one: float, other: float) -> float:
    # Cents do not add up in binary: six digits are kept, as they are written.
    return round(one + other, 6)


def missing_source(loop: Loop) -> str:
    """Return which limit nothing has been reported for by the second stop; "" for none."""
    usage, limits = loop.usage, loop.limits
    if loop.rules is None or usage.stops < 1:
        return ""
    if limits.budget_usd and usage.prices and "usd" not in usage.sources:
        return "the budget"
    return "the token limit" if limits.max_tokens and "tokens" not in usage.sources else ""


# words


def used_up_words(loop: Loop, limits: Limits) -> str:
    """Return which budget of these limits is used up, "" if none is."""
    if limits.budget_usd and loop.spent_usd >= limits.budget_usd:
        return "%s of %s are spent" % (spent(loop), money(limits.budget_usd))
    if limits.max_tokens and loop.spent_tokens >= limits.max_tokens:
        return "%d of %d tokens are used" % (loop.spent_tokens, limits.max_tokens)
    return ""


def money(amount: float) -> str:
    """Return an amount as people read it; small ones keep the digits that matter."""
    return "$%.*f" % (4 if 0 < amount < _SMALL_USD else 2, amount)


def spent(loop: Loop) -> str:
    """Return the money spent, with a tilde if a part of it is an estimate."""
    return ("~" if loop.usage.is_estimate else "") + money(loop.spent_usd)


def spent_of_budget(loop: Loop) -> str:
    """Return the money spent, and the budget if there is one."""
    budget = loop.limits.budget_usd
    return "%s of %s" % (spent(loop), money(budget)) if budget else spent(loop)

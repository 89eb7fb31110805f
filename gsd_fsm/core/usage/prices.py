"""Price the replies of a model: tokens times the table that `start` froze into the loop."""

from __future__ import annotations

from gsd_fsm.core.loop.spending import FAST, LONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    Price = Mapping[str, float]
    Prices = Mapping[str, Price]

_MILLION = 1_000_000
# The part of a price for each kind of token in a usage record.
_PARTS = (
    ("input_tokens", "input"),
    ("output_tokens", "output"),
    ("cache_read_input_tokens", "cache_read"),
)
# Prices relative to that of input, where a table names only input and output.
_RELATIVE = {"cache_read": 0.1, "cache_write": 1.25, "cache_write_1h": 2.0}
PRICE_KINDS = ("input", "output", *_RELATIVE)
# Replies that must be computed in the US cost this much more.
_GEO = {"us": 1.1}
# A search of the web, in US dollars.
_SEARCH = 0.01
# Larger counts are not believed.
_MOST_TOKENS = 1_000_000_000


def tokens_of(usage: Mapping[str, Any]) -> int:
    """Return all tokens of a reply, those of the cache included."""
    kinds = (*[kind for kind, _ in _PARTS], "cache_creation_input_tokens")
    return sum([_count(usage, kind) for kind in kinds])


def reply_usd(prices: Prices, model: str, usage: Mapping[str, Any]) -> float:
    """Return what a reply costs; a model that the table does not have costs the most."""
    name = model_name(model)
    is_fast = usage.get("speed") == "fast"
    price = prices.get(name) or _most_expensive(prices, is_fast)
    if is_fast:
        price = prices.get(name + FAST, price)
    long = prices.get(name + LONG)
    prompt = tokens_of(usage) - _count(usage, "output_tokens")
    if long is not None and prompt > long.get("above", 0):
        price = long
    cost = sum([_count(usage, kind) * _part(price, part) for kind, part in _PARTS])
    written = _count(usage, "cache_creation_input_tokens")
    details = usage.get("cache_creation")
    hours = _count(details, "ephemeral_1h_input_tokens") if type(details) is dict else 0
    hours = min(hours, written)
    cost += hours * _part(price, "cache_write_1h") + (written - hours) * _part(price, "cache_write")
    cost *= _GEO.get(str(usage.get("inference_geo")), 1.0)
    tools = usage.get("server_tool_use")
    searches = _count(tools, "web_search_requests") if type(tools) is dict else 0
    return cost / _MILLION + searches * _SEARCH


def model_name(model: str) -> str:
    """Return the name of a model without provider, region, version and date.

    `us.anthropic.claude-opus-4-5-20251101-v1:0` is `claude-opus-4-5`.
    """
    name = model.lower().rpartition("/")[2]
    at = name.find("claude-")
    name = name[at:] if at > 0 else name
    for end in "[@:":
        name = name.partition(end)[0]
    head, _, tail = name.rpartition("-v")
    name = head if head and tail.isdigit() else name
    head, _, tail = name.rpartition("-")
    return head if head and (tail == "latest" or (len(tail) == 8 and tail.isdigit())) else name


def _most_expensive(prices: Prices, is_fast: bool) -> Price:
    """Return a price that no reply of a model in the table exceeds at this speed."""
    rows = [price for name, price in prices.items() if is_fast or not name.endswith(FAST)]
    return {kind: max([_part(row, kind) for row in rows]) for kind in PRICE_KINDS} if rows else {}


def _part(price: Price, kind: str) -> float:
    found = price.get(kind)
    if found is None:
        return float(price.get("input", 0)) * _RELATIVE.get(kind, 0)
    return float(found)


def _count(record: Mapping[str, Any], name: str) -> int:
    count = record.get(name)
    return count if type(count) is int and 0 <= count <= _MOST_TOKENS else 0

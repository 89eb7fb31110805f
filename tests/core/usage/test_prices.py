"""Prices of replies: each kind of token by its own price, and nothing is cheaper for being unknown."""

from __future__ import annotations

from typing import Any

import pytest

from gsd_fsm.config.prices import frozen_prices, price_table
from gsd_fsm.core.loop.spending import Usage
from gsd_fsm.core.usage.prices import PRICE_KINDS, model_name, reply_usd

LIMITS = {"budget_usd": 5}


def prices(own: Any = None) -> dict[str, dict[str, float]]:
    usage = Usage()
    usage.take_prices(frozen_prices({"prices": own}, LIMITS)["prices"])
    return usage.prices


def used(**more: Any) -> dict[str, Any]:
    return {"input_tokens": 100, "output_tokens": 55, **more}


CACHE = {
    "cache_read_input_tokens": 7,
    "cache_creation_input_tokens": 5,
    "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 3},
}


@pytest.mark.parametrize(
    ("model", "usage", "microdollars"),
    [
        # The client itself reports this figure for these tokens (version 2.1.325).
        ("claude-opus-5-5", used(**CACHE), 100 * 4 + 55 * 20 + 7 * 0.2 + 2 * 5 + 3 * 8),
        ("claude-opus-5-5[1m]", used(), 1_500),
        ("claude-opus-5-5", used(cache_creation_input_tokens=10), 1_500 + 10 * 5),
        ("claude-opus-5-5", used(speed="fast"), 100 * 8 + 55 * 40),
        ("claude-haiku-4-5", used(speed="fast"), 100 + 55 * 5),
        ("claude-opus-5-5", used(inference_geo="us"), 1_500 * 1.1),
        ("claude-opus-5-5", used(server_tool_use={"web_search_requests": 3}), 1_500 + 30_000),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", used(), 100 * 5 + 55 * 25),
        ("claude-haiku-5-5", used(), 10 + 27.5),
        ("claude-haiku-5-5", {"input_tokens": 100_001}, 100_001 * 0.5),
        # Unknown models cost as much as the most expensive one.
        ("claude-opus-9", used(**CACHE), 100 * 15 + 55 * 75 + 7 * 1.5 + 2 * 18.75 + 3 * 30),
        ("", used(), 100 * 15 + 55 * 75),
        ("claude-opus-9", used(speed="fast"), 100 * 30 + 55 * 150),
        ("claude-opus-5-5", {}, 0),
    ],
)  # fmt: skip
def test_each_kind_of_token_has_its_price(model: str, usage: Any, microdollars: float) -> None:
    assert reply_usd(prices(), model, usage) == pytest.approx(microdollars / 1e6)


@pytest.mark.parametrize("value", [-1, 1.5, True, "7", None, [], {}, 10**40])
def test_invalid_counts_cost_nothing(value: Any) -> None:
    usage = dict.fromkeys(("input_tokens", "cache_creation_input_tokens"), value)
    more = {"cache_creation": value, "server_tool_use": value, "speed": value}
    assert reply_usd(prices(), "claude-opus-5-5", {**usage, **more, "inference_geo": value}) == 0


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("Claude-Opus-5-5[1m]", "claude-opus-5-5"),
        ("gpt-9", "gpt-9"),
        ("-latest", "-latest"),
        ("", ""),
    ],
)
def test_name_of_a_model_has_no_provider_version_or_date(model: str, name: str) -> None:
    assert model_name(model) == name


def test_prices_of_settings_replace_those_of_the_table_and_default_the_cache_to_its_input() -> None:
    own = {
        "anthropic/claude-opus-5-5": {"input": 2, "output": 4},
        "mine": {"input": 1, "output": 9},
    }
    found = prices(own)
    assert "claude-opus-5-5 fast" not in found
    for speed in ("fast", "standard"):
        usage = used(**CACHE, speed=speed)
        expected = 100 * 2 + 55 * 4 + 7 * 0.2 + 2 * 2.5 + 3 * 4
        assert reply_usd(found, "claude-opus-5-5", usage) == pytest.approx(expected / 1e6)
    assert reply_usd(found, "mine", used()) == pytest.approx((100 + 55 * 9) / 1e6)


def test_only_a_loop_with_a_budget_keeps_prices() -> None:
    assert frozen_prices({"prices": None}, {"max_iterations": 3, "budget_usd": 0}) == {}
    assert frozen_prices({"prices": None}, {"max_tokens": 9})["prices_of"] == price_table()["date"]


def test_every_price_of_the_table_is_complete() -> None:
    for row in price_table()["prices"]:
        assert all(row[kind] > 0 for kind in PRICE_KINDS), row
        assert row["cache_read"] < row["input"] < row["cache_write"] < row["output"], row

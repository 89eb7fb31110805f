"""Freeze the prices of models: a dated table that comes with this version, and the user's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gsd_fsm.core.loop.limits import BUDGET, COUNTED
from gsd_fsm.core.usage.prices import model_name

FILE = "prices.json"


def price_table() -> dict[str, Any]:
    """Return the table: its `date`, and its `prices` in US dollars for a million tokens."""
    from importlib.resources import files  # most loops have no budget

    table: dict[str, Any] = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    return table


def frozen_prices(settings: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `start` freezes of the prices: nothing for a loop without a budget.

    A model in the settings replaces that of the table, also for fast replies and long prompts.
    """
    if not any(limits.get(COUNTED[code].limit) for code in BUDGET):
        return {}
    table = price_table()
    own = {model_name(name): price for name, price in (settings["prices"] or {}).items()}
    rows = [row for row in table["prices"] if row["model"] not in own]
    rows += [{"model": name, **price} for name, price in own.items()]
    return {"prices": rows, "prices_of": table["date"]}

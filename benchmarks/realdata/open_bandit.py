"""The Open Bandit Data sample: 10,000 rows of a shop that showed 80 items at random, .4 % of them
clicked.

What 10,000 rows can say: an interval of a policy's click rate. What they cannot: that it is better.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from realdata.datasets import table

from c4b._validate import Array
from c4b.offpolicy import OffPolicyGate

ITEMS = 80
PAST = 2000


def run() -> dict[str, Any]:
    """The item with the best rate among the past rows, and chance itself, judged on the others."""
    rows = table("open-bandit")
    item, clicks = rows["item_id"].to_numpy(), rows["click"].to_numpy().astype(float)
    propensity = rows["propensity_score"].to_numpy()
    best = _best_of(rows.head(PAST))
    live = slice(PAST, None)
    weights = (np.isin(item[live], best) / len(best)) / propensity[live]
    return {
        "rows": len(rows) - PAST,
        "click_rate": float(clicks[live].mean()),
        "policy": f"one of the {len(best)} items that were clicked in the first {PAST} rows",
        "rate": _judged(weights, clicks[live], fraction=0.0, top=ITEMS / len(best)),
        "lift": _judged(weights, clicks[live], fraction=1.0, top=ITEMS / len(best)),
        "rate_of_chance": _judged(np.ones_like(weights), clicks[live], fraction=0.0, top=1.0),
    }


def _best_of(past: pl.DataFrame) -> Array:
    return past.filter(pl.col("click") == 1)["item_id"].unique().sort().to_numpy()


def _judged(weights: Array, clicks: Array, fraction: float, top: float) -> dict[str, Any]:
    gate = OffPolicyGate(fraction=fraction, max_weight=top)
    gate.extend(weights, clicks)
    return gate.report().as_dict()

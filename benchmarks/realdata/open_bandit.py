"""The Open Bandit Data sample: 10,000 rows of a shop that showed 80 items at random, .4 % of them
clicked.

What 10,000 rows can say: an interval of a policy's click rate. What they cannot: that it is better.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from realdata.datasets import table

import c4b
from c4b import LinearModel, Policy
from c4b._validate import Array
from c4b.logs import Columns
from c4b.offpolicy import OffPolicyGate
from c4b.replay import replay_queues

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


def log() -> tuple[pl.DataFrame, str]:
    """The rows with columns action and reward, and the item that was shown most often: as good an
    incumbent as any, because all were drawn at random."""
    rows = table("open-bandit").sort("timestamp")
    usual = str(rows["item_id"].value_counts(sort=True)["item_id"][0])
    return rows.select(action="item_id", reward=pl.col("click").cast(pl.Float64)), usual


def plan() -> dict[str, Any]:
    """What ``c4b.plan`` says of the rows, and when the gate opens in a replay of their last quarter."""
    frame, usual = log()
    made = c4b.plan(frame, Columns(reward="reward", action="action"), baseline=usual, rounds_a_day=1000.0)
    proposal, half = made.proposal, len(frame) // 2
    features = np.column_stack([np.ones(ITEMS), np.eye(ITEMS)])
    policy = Policy(
        proposal.policy, LinearModel.bounded(ITEMS + 1, proposal.norm_bound), alpha=proposal.alpha,
        reserve=proposal.reserve,
    )  # fmt: skip
    action, reward = frame["action"].to_numpy(), frame["reward"].to_numpy()
    given, live = slice(half, half + proposal.history), slice(half + proposal.history, None)
    policy.learn(features[action[given]], reward[given])
    found = replay_queues(policy, features, int(usual), action[live], reward[live])
    return {
        "policy": proposal.policy,
        "opens_at": list(made.forecast.opens_at),
        "opened_at": found.opened_at,
        "replayed_rounds": found.rounds,
        "uplift": list(made.forecast.uplift.values())[-1],
        "verdict": made.verdict,
    }


def _best_of(past: pl.DataFrame) -> Array:
    return past.filter(pl.col("click") == 1)["item_id"].unique().sort().to_numpy()


def _judged(weights: Array, clicks: Array, fraction: float, top: float) -> dict[str, Any]:
    gate = OffPolicyGate(fraction=fraction, max_weight=top)
    gate.extend(weights, clicks)
    return gate.report().as_dict()

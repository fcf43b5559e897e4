"""What sharing features among items buys, where rewards are clicks. Prints one JSON line a case.

    python benchmarks/sharing.py [--items 30 150 500] [--rows 100000] [--own 0 .002] [--seed 1]

A log shows every visitor one of ``items`` items at random; visitors have three numbers, items four. The
click rate is .1, plus up to about .04 by the item's numbers, plus an effect of the item's own of standard
deviation ``own`` (0 where there are more than 150 items); S = 2. Three builders of features
(``c4b.features``), with an intercept and the visitor's numbers in each:

- *items*: an indicator for each item; not for more than 150 items;
- *numbers*: the item's numbers, and their products with the visitor's;
- *both*: all of these. Indicators, of at most 150 items, are scaled to .02: with the norm bound that
  declares that what the numbers leave unexplained is small.

For a visitor of average numbers, each item is compared with a typical one, the incumbent, at alpha = .05.
``half_width``: of the interval of x(item) - x(incumbent), the mean over items. ``certified``: items that
are certified to earn at least 95 % of the incumbent; ``true``: items that do. ``missed``: items whose
interval does not contain the truth; it may be above 0 only where the features cannot say the truth.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from typing import Any

import numpy as np
import polars as pl

import c4b
from c4b._validate import Array
from c4b.features import FeatureBuilder, Interaction, Intercept, Number, OneHot
from c4b.features.part import Part

RATE, ALPHA, LABELLED, SCALE, NORM_BOUND = 0.1, 0.05, 150, 0.02, 2.0
NUMBERS, VISITOR = ("price", "age", "length", "quality"), ("hour", "loyalty", "screen")
KINDS = ("items", "numbers", "both")


def builder(kind: str, past: pl.DataFrame) -> FeatureBuilder:
    """Features of one kind, fixed from past rows."""
    parts: list[Part] = [Intercept(), *(Number(name, scale="none") for name in VISITOR)]
    if kind != "items":
        parts += [Number(name, scale="none") for name in NUMBERS]
        parts += [Interaction(Number(i, scale="none"), Number(v, scale="none"))
                  for i in NUMBERS for v in VISITOR]  # fmt: skip
    if kind != "numbers":
        parts.append(OneHot("item", at_most=LABELLED))
    return FeatureBuilder(parts).fit(past)


def scaled(kind: str, built: FeatureBuilder, rows: pl.DataFrame) -> Array:
    """Feature vectors; where numbers are known, too, indicators are scaled."""
    features = built.transform(rows)
    if kind == "both":
        own = [n for n, name in enumerate(built.names) if name.startswith("item=")]
        features[:, own] *= SCALE
    return features


def world(
    items: int, rows: int, own: float, seed: int
) -> tuple[pl.DataFrame, Array, pl.DataFrame, Array]:
    """The log and its clicks; all items for an average visitor and their rates, the incumbent first."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-0.5, 0.5, (items, len(NUMBERS)))
    effect = numbers @ np.array([0.04, -0.03, 0.0, 0.02]) + own * rng.normal(size=items)
    order = np.argsort(np.abs(effect - np.median(effect)), kind="stable")  # the incumbent is typical
    numbers, effect = numbers[order], effect[order]
    shown, visitor = rng.integers(items, size=rows), rng.uniform(-0.5, 0.5, (rows, len(VISITOR)))
    rates = np.clip(RATE + effect[shown] + visitor @ np.array([0.02, 0.01, 0.0]), 0.0, 1.0)
    log = _frame(shown, numbers, visitor)
    every = _frame(np.arange(items), numbers, np.zeros((items, len(VISITOR))))
    return log, (rng.random(rows) < rates).astype(float), every, RATE + effect


def _frame(items: Array, numbers: Array, visitor: Array) -> pl.DataFrame:
    columns: dict[str, Any] = {"item": [f"{item:03d}" for item in items]}
    columns |= {name: numbers[items, n] for n, name in enumerate(NUMBERS)}
    return pl.DataFrame(columns | {name: visitor[:, n] for n, name in enumerate(VISITOR)})


def measured(kind: str, items: int, rows: int, own: float, seed: int) -> dict[str, Any]:
    """One case: what a log of so many rows certifies."""
    log, clicks, every, rates = world(items, rows, own, seed)
    built = builder(kind, every)
    started = time.perf_counter()
    evidence = c4b.Evidence(c4b.LinearModel.bounded(built.dim, NORM_BOUND))
    evidence.learn(scaled(kind, built, log), clicks)
    seconds = time.perf_counter() - started
    features = scaled(kind, built, every)
    above = features[1:] - features[0]
    low, high = (np.array([bound(v) for v in above]) for bound in (evidence.lower, evidence.upper))
    truth = rates[1:] - rates[0]
    safe = [evidence.lower(x - (1.0 - ALPHA) * features[0]) >= 0.0 for x in features[1:]]
    return {
        "features": kind,
        "dim": built.dim,
        "items": items,
        "rows": rows,
        "own": own,
        "seed": seed,
        "half_width": round(float(np.mean(high - low)) / 2.0, 4),
        "certified": int(np.sum(safe)),
        "true": int(np.sum(rates[1:] >= (1.0 - ALPHA) * rates[0])),
        "missed": int(np.sum((truth < low) | (truth > high))),
        "learning_seconds": round(seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[30, 150, 500])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--own", type=float, nargs="+", default=[0.0, 0.002])
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for items, rows, own in itertools.product(asked.items, asked.rows, asked.own):
        if items <= LABELLED or own == 0.0:
            for kind in KINDS if items <= LABELLED else KINDS[1:]:
                print(json.dumps(measured(kind, items, rows, own, asked.seed)), flush=True)


if __name__ == "__main__":
    main()

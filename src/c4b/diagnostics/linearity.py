"""Is the mean linear in these features? Residuals of held-out rows, averaged over groups of alike
rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from c4b._validate import Array
from c4b.diagnostics.finding import Finding
from c4b.diagnostics.ridge_fit import fit

PREDICTION_BINS, FEATURE_BINS, FEWEST_ROWS = 10, 5, 30


@dataclass(frozen=True)
class Group:
    """Rows that are alike: by their prediction, or by one feature."""

    by: str
    low: float
    high: float
    rows: int
    predicted: float
    observed: float
    half_width: float
    """Of observed - predicted, for all groups at once (normal approximation)."""

    @property
    def deviation(self) -> float:
        return self.observed - self.predicted


def held_out_predictions(x: Array, y: Array, seed: int = 0) -> Array:
    """Each half of the rows predicted by a fit of the other half."""
    first = np.random.default_rng(seed).permutation(len(y)) < len(y) // 2
    predicted = np.empty(len(y))
    for half in (first, ~first):
        predicted[half] = x[half] @ fit(x[~half], y[~half]).estimate
    return predicted


def groups(x: Array, y: Array, predicted: Array, names: list[str], delta: float) -> list[Group]:
    found = [
        (by, low, high, rows)
        for by, values, bins in _axes(x, predicted, names)
        for low, high, rows in _bins(values, bins)
        if rows.sum() >= FEWEST_ROWS
    ]
    quantile = float(norm.isf(delta / (2 * max(len(found), 1))))
    made = []
    for by, low, high, rows in found:
        residuals = y[rows] - predicted[rows]
        half_width = quantile * float(residuals.std()) / np.sqrt(rows.sum())
        observed, expected = float(y[rows].mean()), float(predicted[rows].mean())
        made.append(Group(by, low, high, int(rows.sum()), expected, observed, float(half_width)))
    return made


def _axes(x: Array, predicted: Array, names: list[str]) -> Iterator[tuple[str, Array, int]]:
    yield "prediction", predicted, PREDICTION_BINS
    for n, name in enumerate(names):
        yield name, x[:, n], FEATURE_BINS


def _bins(values: Array, bins: int) -> Iterator[tuple[float, float, NDArray[np.bool_]]]:
    """Groups of about equal size; a feature of few values has a group for each."""
    distinct = np.unique(values)
    if len(distinct) <= bins:
        for value in distinct if len(distinct) > 1 else ():
            yield float(value), float(value), values == value
        return
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, bins + 1)))
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    for n in range(len(edges) - 1):
        yield float(edges[n]), float(edges[n + 1]), place == n


def linearity(found: list[Group]) -> Finding:
    """The largest deviation of a group's mean: a lower bound on the misspecification ε."""
    question = "Is the mean linear in these features?"
    if not found:
        return Finding(question, True, "too few rows to say", "Give more rows.")
    worst = max(found, key=lambda group: abs(group.deviation) - group.half_width)
    low = max(0.0, abs(worst.deviation) - worst.half_width)
    high = max(abs(group.deviation) + group.half_width for group in found)
    said = (
        f"some group's mean is at least {low:.3g} and none more than {high:.3g} away from its prediction "
        f"({len(found)} groups); the clearest: {worst.by} in [{worst.low:.3g}, {worst.high:.3g}], "
        f"{worst.observed:.3g} instead of {worst.predicted:.3g}"
    )
    remedy = ""
    if low > 0.0:
        remedy = (
            f"Give {worst.by} bins or an interaction, or declare misspecification={high:.2g}; "
            "a bend that no group shows stays unseen."
        )
    return Finding(question, low == 0.0, said, remedy)

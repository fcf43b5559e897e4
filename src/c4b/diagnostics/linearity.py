"""Tests whether the mean is linear in the features: held-out residuals, averaged over similar rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.diagnostics.finding import Finding
from c4b.diagnostics.ridge_fit import fit

PREDICTION_BINS, FEATURE_BINS, FEWEST_ROWS = 10, 5, 30


@dataclass(frozen=True)
class Group:
    """Similar rows: grouped by their prediction, or by one feature."""

    by: str
    low: float
    high: float
    rows: int
    predicted: float
    observed: float
    half_width: float
    """Half-width of the interval of observed - predicted, which holds for all groups at once (normal
    approximation)."""

    @property
    def deviation(self) -> float:
        return self.observed - self.predicted


class HeldOut(NamedTuple):
    """Each half of the rows predicted by a fit of the other half."""

    predicted: Array
    halves: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    covariances: tuple[Array, Array]
    """Of the estimate that predicted each half."""

    @classmethod
    def of(cls, x: Array, y: Array, seed: int = 0) -> HeldOut:
        first = np.random.default_rng(seed).permutation(len(y)) < len(y) // 2
        predicted, covariances = np.empty(len(y)), []
        for half in (first, ~first):
            found = fit(x[~half], y[~half])
            predicted[half] = x[half] @ found.estimate
            covariances.append(found.inverse @ found.meat @ found.inverse)
        return cls(predicted, (first, ~first), (covariances[0], covariances[1]))

    def variance(self, x: Array, rows: NDArray[np.bool_]) -> float:
        """Of the mean prediction of some rows. That the rows of one half also made the estimate for the
        other is left out: it makes the mean residual vary less, not more."""
        total = 0.0
        for half, covariance in zip(self.halves, self.covariances, strict=True):
            sums = x[rows & half].sum(axis=0)
            total += float(sums @ covariance @ sums)
        return total / float(rows.sum()) ** 2


def groups(x: Array, y: Array, held_out: HeldOut, names: list[str], delta: float) -> list[Group]:
    """Observed and predicted means, with intervals that hold for all groups at once."""
    predicted = held_out.predicted
    found = [
        (by, low, high, rows)
        for by, values, bins in _axes(x, predicted, names)
        for low, high, rows in _bins(values, bins)
        if rows.sum() >= FEWEST_ROWS
    ]
    quantile = float(scipy.stats.norm.isf(delta / (2 * max(len(found), 1))))
    made = []
    for by, low, high, rows in found:
        residuals = y[rows] - predicted[rows]
        variance = float(residuals.var()) / float(rows.sum()) + held_out.variance(x, rows)
        half_width = quantile * np.sqrt(max(variance, 0.0))  # rounding may leave less
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
        f"of {len(found)} groups of alike rows, the mean of none is more than {high:.3g} away from its "
        f"prediction, and of one at least {low:.3g}; the clearest: {worst.by} in "
        f"[{worst.low:.3g}, {worst.high:.3g}], {worst.observed:.3g} instead of {worst.predicted:.3g}"
    )
    remedy = ""
    if low > 0.0:
        remedy = (
            f"Give {worst.by} bins or an interaction, or declare misspecification={high:.2g}; "
            "a bend that no group shows stays unseen."
        )
    return Finding(question, low == 0.0, said, remedy)

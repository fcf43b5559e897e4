"""Tests whether theta is the same in the whole log: each period is compared with all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from c4b._validate import Array
from c4b.diagnostics.finding import Finding
from c4b.diagnostics.rare_rewards import SimulatedPeriods
from c4b.diagnostics.ridge_fit import fit


@dataclass(frozen=True)
class Period:
    """One period of the log."""

    name: str
    rows: int
    reward: float
    p_value: float
    """P-value of the hypothesis that theta is the same as in all other periods, for this period alone;
    asymptotic."""


def periods(x: Array, y: Array, labels: list[str]) -> list[Period]:
    """Wald's statistic of the difference of two estimates, in the directions that the period has seen."""
    names = np.array(labels)
    made = []
    for name in dict.fromkeys(labels):
        rows = names == name
        rest = fit(x[~rows], y[~rows])
        own = x[rows]
        residuals = y[rows] - own @ rest.estimate
        score = own.T @ residuals
        gram = own.T @ own
        spread = (own * np.square(residuals)[:, None]).T @ own
        spread += gram @ rest.inverse @ rest.meat @ rest.inverse @ gram
        values, vectors = np.linalg.eigh(spread)
        seen = values > 1e-8 * max(float(values.max()), 1e-300)
        statistic = float(np.sum(np.square(vectors[:, seen].T @ score) / values[seen]))
        p_value = float(scipy.stats.chi2.sf(statistic, max(int(seen.sum()), 1)))
        made.append(Period(name, int(rows.sum()), float(y[rows].mean()), p_value))
    return made


def periods_of_rare_rewards(
    x: Array, y: Array, labels: list[str], delta: float
) -> tuple[list[Period], float]:
    """The periods, and the chance that one of them is so unlike the others; see ``rare_rewards``."""
    names = np.array(labels)
    listed = list(dict.fromkeys(labels))
    rows = [names == name for name in listed]
    found = SimulatedPeriods(x, y, rows)
    made = [
        Period(name, int(own.sum()), float(y[own].mean()), float(p_value))
        for name, own, p_value in zip(listed, rows, found.p_values(), strict=True)
    ]
    return made, found.chance(delta) if len(made) > 1 else 1.0


def drift(found: list[Period], delta: float, chance: float | None = None) -> Finding:
    """``chance``: of a period so unlike the others, where that was simulated."""
    question = "Is one theta true for the whole log?"
    if len(found) < 2:
        return Finding(question, True, "one period only", "Give more than one period.")
    worst = min(found, key=lambda period: period.p_value)
    adjusted = min(1.0, worst.p_value * len(found)) if chance is None else chance
    said = (
        f"most unlike the others is period {worst.name}: p = {adjusted:.2g}, for all {len(found)} at once"
    )
    if adjusted >= delta:
        return Finding(question, True, said, "")
    remedy = (
        "Add features that explain the change (season, version), learn from recent rows only, or begin a "
        "new deployment regularly."
    )
    return Finding(question, False, said, remedy)

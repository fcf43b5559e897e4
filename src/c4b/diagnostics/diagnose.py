"""Runs all diagnostic tests on a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from c4b import _validate
from c4b.diagnostics.drift import Period, drift, periods, periods_of_rare_rewards
from c4b.diagnostics.finding import Finding
from c4b.diagnostics.linearity import Group, HeldOut, groups, linearity
from c4b.diagnostics.noise import noise_scale
from c4b.diagnostics.rare_rewards import is_rare
from c4b.diagnostics.ridge_fit import Effect, effects
from c4b.errors import InvalidInput

PERIODS = 8
FEWEST_ROWS = 100


@dataclass(frozen=True)
class Diagnosis:
    """What the rows say about the assumptions of a linear model."""

    rows: int
    findings: tuple[Finding, ...]
    groups: tuple[Group, ...]
    """Calibration: the predicted and observed means of groups of rows. The first groups are by
    prediction."""
    periods: tuple[Period, ...]
    effects: tuple[Effect, ...]
    """The effect of each feature, the strongest first."""

    @property
    def good(self) -> bool:
        """Whether no test found a problem.

        This is no proof of the assumptions: declare numbers with a margin.
        """
        return all(finding.good for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis as plain data for JSON."""
        return {"good": self.good, **asdict(self)}


def diagnose(
    features: object,
    rewards: object,
    *,
    noise: float,
    names: Sequence[str] | None = None,
    period_labels: Sequence[str] | None = None,
    delta: float = 0.05,
) -> Diagnosis:
    """Test the assumptions of a linear model on past rows of executed actions.

    Call this before a model is declared. Do not use these rows as evidence in a deployment whose numbers
    were chosen with them.

    Parameters
    ----------
    features: features of the executed actions, shape (rows, d).
    rewards: shape (rows,), in the order of time.
    noise: the noise scale that would be declared.
    names: names of the features.
    period_labels: the week or month of each row; by default, eight periods of equal length.
    delta: for each test, the probability that it finds a problem by chance.
    """
    y = _validate.series("rewards", rewards)
    raw = getattr(features, "shape", (0, 0))
    x = _validate.table("features", features, int(raw[1]) if len(raw) == 2 else 1)
    if len(x) != len(y):
        raise InvalidInput("features", x.shape, f"must have a row for each of the {len(y)} rewards")
    if len(y) < FEWEST_ROWS:
        raise InvalidInput("rewards", len(y), f"must be at least {FEWEST_ROWS} rows")
    noise = _validate.positive("noise", noise, "must be a positive number")
    delta = _validate.fraction("delta", delta, "must lie strictly between 0 and 1")
    named = [f"x{n}" for n in range(x.shape[1])] if names is None else list(names)
    if len(named) != x.shape[1]:
        raise InvalidInput("names", named, f"must be {x.shape[1]} names, one for each feature")
    labels = period_labels
    if labels is None:
        labels = [f"{n * PERIODS // len(y) + 1} of {PERIODS}" for n in range(len(y))]
    if len(labels) != len(y):
        raise InvalidInput("period_labels", len(labels), f"must be {len(y)}, one for each row")
    held_out = HeldOut.of(x, y)
    compared = groups(x, y, held_out, named, delta)
    named_periods, chance = [str(label) for label in labels], None
    if is_rare(y):
        by_period, chance = periods_of_rare_rewards(x, y, named_periods, delta)
    else:
        by_period = periods(x, y, named_periods)
    found = (
        linearity(compared),
        noise_scale(y - held_out.predicted, noise, delta),
        drift(by_period, delta, chance),
    )
    return Diagnosis(len(y), found, tuple(compared), tuple(by_period), tuple(effects(x, y, named)))

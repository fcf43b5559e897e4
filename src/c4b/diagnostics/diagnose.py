"""All questions at once."""

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
    """The calibration: groups of rows, predicted and observed means. The first are by prediction."""
    periods: tuple[Period, ...]
    effects: tuple[Effect, ...]
    """Which features matter, the strongest first."""

    @property
    def good(self) -> bool:
        """Nothing was found. A test that finds nothing proves nothing: declare with a margin."""
        return all(finding.good for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    """Look at past rows of executed actions before a model is declared.

    features: shape (rows, d), of what was executed. rewards: shape (rows,), in the order of time.
    noise: the scale that would be declared. names: of the features.
    period_labels: the week or month of each row; without them, eight periods of equal length.
    delta: the probability that one of the questions is answered "no" by chance, for each question.

    These rows are for choosing: do not use them as evidence of a deployment whose numbers they chose.
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

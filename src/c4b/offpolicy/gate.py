"""Decides from a log whether another policy reaches a fraction of the logging policy's value."""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.offpolicy.one_sided_sequence import OneSidedSequence, Range
from c4b.offpolicy.weight_alarm import WeightAlarm


@dataclass(frozen=True)
class OffPolicyReport:
    """What the rows so far say about V(π) - c·V(h), in units of reward.

    Each of ``lower`` and ``upper`` holds at all rows at once with probability 1 - delta.
    """

    rows: int
    fraction: float
    delta: float
    estimate: float
    """Mean over the rows: unbiased, without an error bound."""
    lower: float
    upper: float
    deploy: bool
    """Whether the log proves, at level delta, that V(π) is at least fraction·V(h)."""
    deployed_at_row: int | None
    """The row (the first is 1) at which this was proved; 0 if the declared range alone proves it; None if
    it is not proved."""
    refused_at_row: int | None
    """The row at which the opposite was proved, counted in the same way; None if it is not proved."""
    alarm: str | None
    """Why the rows contradict the declaration, or None. With an alarm, ``deploy`` is False."""
    value: float
    """Weighted mean of the rewards, an estimate of V(π)."""
    logging_value: float
    """Mean of the rewards, an estimate of V(h)."""
    mean_weight: float
    effective_rows: float
    """Effective sample size: the number of rows of π's own traffic that the weighted log is worth."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON."""
        return asdict(self)


class OffPolicyGate:
    """Anytime bounds of V(π) - c·V(h) from rows (weight, reward) written by the policy h.

    A row's weight is the probability that π takes the logged action, divided by the probability with
    which h took it. The bounds hold at every row at once, so you may look at them, and stop, at any time.

    Assumptions: rewards lie in ``reward_range``; weights are at most ``max_weight`` and have mean 1 (π
    takes no action that h never takes, and the propensities are right); all rows come from one
    distribution; all arguments were chosen before looking at the rows.

    Parameters
    ----------
    fraction: c. 0.95 asks for 95 % of the logging policy's value, 1 for its whole value; 0 bounds V(π)
        itself.
    delta: the probability of a wrong deployment, and of a wrong bound on either side.
    reward_range: smallest and largest possible reward.
    max_weight: the largest possible weight, for example the number of actions under uniform logging. If
        it is unknown, leave it out: that is safe, and needs more rows.
    predictions: whether rows also have predictions of the reward (see ``extend``).

    >>> gate = OffPolicyGate(fraction=0.9, max_weight=2.0)
    >>> gate.extend([2.0, 0.0] * 200, [1.0, 0.0] * 200)  # two actions, and π takes the better one
    >>> report = gate.report()
    >>> report.deploy, report.deployed_at_row
    (True, 18)
    """

    def __init__(
        self,
        *,
        fraction: float = 0.95,
        delta: float = 0.05,
        reward_range: tuple[float, float] = (0.0, 1.0),
        max_weight: float = math.inf,
        predictions: bool = False,
    ) -> None:
        self.fraction = _validate.nonnegative(
            "fraction", fraction, "must be a number of at least 0, e.g. 0.95"
        )
        self.delta = _validate.fraction("delta", delta, "must lie strictly between 0 and 1")
        self.low, self.high = _reward_range(reward_range)
        if max_weight != math.inf:
            max_weight = _validate.number(
                "max_weight", max_weight, "must be a number of at least 1, or inf"
            )
            if max_weight < 1.0:
                raise InvalidInput("max_weight", max_weight, "must be at least 1: weights have mean 1")
        self.max_weight = float(max_weight)
        self.predictions = predictions
        self._goal = -self.low * (1.0 - self.fraction) / (self.high - self.low)
        """V(π) = c·V(h), for rewards rescaled to [0, 1]."""
        values = tested_values(self._goal, self.fraction)
        row_range = Range(self.fraction, self.max_weight, predictions)
        self._lower = OneSidedSequence(values, 1.0, self.delta, row_range)
        self._upper = OneSidedSequence(values, -1.0, self.delta, row_range)
        self._weight_alarm = WeightAlarm(self.max_weight)
        self._values = values
        self._rows = 0
        self._sums = np.zeros(4)  # weight, weight², reward, weight·reward

    def __copy__(self) -> OffPolicyGate:
        """Return a deep copy, also for ``copy.copy``: copy and original take rows independently."""
        return copy.deepcopy(self)

    def extend(
        self, weights: object, rewards: object, predicted: object = None, predicted_value: object = None
    ) -> None:
        """Add rows in the order of the log.

        predicted, predicted_value: with ``predictions=True``, for each row the predicted mean reward of
        the logged action, and that of π (the mean over its actions). The predictions must come from a
        model of earlier rows or of other data. Bad predictions make the bounds wider, not invalid.
        """
        w = _validate.series("weights", weights)
        raw = _validate.series("rewards", rewards, len(w))
        most = self.max_weight * (1.0 + 1e-9)  # a quotient of probabilities is rounded
        self._check_rows("weights", w, 0.0, most, "must lie between 0 and max_weight")
        self._check_rows("rewards", raw, self.low, self.high, "must lie in reward_range")
        r = self._scaled(raw)
        y = w * r - self.fraction * r
        if (predicted is not None and predicted_value is not None) != self.predictions:
            raise InvalidInput(
                "predictions", self.predictions, "predictions come with every row, or with none"
            )
        if self.predictions:
            q = self._predicted("predicted", predicted, len(w))
            value = self._predicted("predicted_value", predicted_value, len(w))
            y = w * (r - q) + value - self.fraction * r
        self._weight_alarm.extend(w)
        self._lower.extend(w, y)
        self._upper.extend(w, y)
        self._rows += len(w)
        self._sums += [w.sum(), np.square(w).sum(), raw.sum(), (w * raw).sum()]

    def _predicted(self, argument: str, given: object, rows: int) -> Array:
        q = _validate.series(argument, given, rows)
        self._check_rows(
            argument, q, self.low, self.high, "must lie in reward_range; clip predictions to it"
        )
        return self._scaled(q)

    def _scaled(self, rewards: Array) -> Array:
        return np.clip((rewards - self.low) / (self.high - self.low), 0.0, 1.0)

    def _check_rows(self, argument: str, given: Array, low: float, high: float, remedy: str) -> None:
        wrong = np.flatnonzero((given < low) | (given > high))
        if len(wrong):
            row = int(wrong[0])
            at = f"{argument}[{self._rows + row}]"
            raise InvalidInput(at, float(given[row]), f"{remedy}, here [{low:g}, {high:g}]")

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return self._rows

    def report(self) -> OffPolicyReport:
        """Report what the rows so far prove."""
        lower_at, upper_at = self._lower.reached(), self._upper.reached()
        lower = self._values[lower_at > 0][-1] if lower_at[0] else -self.fraction
        upper = self._values[upper_at > 0][0] if upper_at[-1] else 1.0
        alarm = None
        if self._weight_alarm.raised:
            alarm = (
                "the weights do not have mean 1: propensities are wrong, or the policy takes actions "
                "that were never logged"
            )
        elif lower_at[-1] or upper_at[0] or lower > upper:
            alarm = "the rows refute every possible value: what is declared is wrong, or rows change"
        deployed_at = self._row_of(lower_at) if self._goal > -self.fraction else 0
        refused_at = self._row_of(upper_at) if self._goal < 1.0 else 0
        weight, squares, reward, weighted = self._sums.tolist()
        rows = max(self._rows, 1)
        mean = float(self._lower.moments[3]) / rows
        return OffPolicyReport(
            rows=self._rows,
            fraction=self.fraction,
            delta=self.delta,
            estimate=self._unscaled(mean) if self._rows else math.nan,
            lower=self._unscaled(float(lower)),
            upper=self._unscaled(float(upper)),
            deploy=deployed_at is not None and alarm is None,
            deployed_at_row=deployed_at if alarm is None else None,
            refused_at_row=refused_at if alarm is None else None,
            alarm=alarm,
            value=weighted / rows if self._rows else math.nan,
            logging_value=reward / rows if self._rows else math.nan,
            mean_weight=weight / rows if self._rows else math.nan,
            effective_rows=weight * weight / squares if squares > 0.0 else 0.0,
        )

    def bounds(self) -> tuple[Array, Array]:
        """The lower and the upper bound after each row so far: two arrays with one number per row."""
        low_start, high_start = self._unscaled(-self.fraction), self._unscaled(1.0)
        lower, upper = np.full(self._rows, low_start), np.full(self._rows, high_start)
        values = self._values
        for row, value in zip(self._lower.reached(), values, strict=True):
            if row:
                lower[row - 1 :] = self._unscaled(float(value))
        for row, value in zip(self._upper.reached()[::-1], values[::-1], strict=True):
            if row:
                upper[row - 1 :] = self._unscaled(float(value))
        return lower, upper

    def _row_of(self, reached_at: NDArray[np.int64]) -> int | None:
        at = int(np.searchsorted(self._values, self._goal))
        row = int(reached_at[at]) if at < len(reached_at) else 0  # beyond all that is possible
        return row or None

    def _unscaled(self, value: float) -> float:
        return self.low * (1.0 - self.fraction) + (self.high - self.low) * value


def evaluate(
    weights: object,
    rewards: object,
    *,
    fraction: float = 0.95,
    delta: float = 0.05,
    reward_range: tuple[float, float] = (0.0, 1.0),
    max_weight: float = math.inf,
) -> OffPolicyReport:
    """Evaluate a whole log of (weight, reward) at once.

    The arguments are those of :class:`OffPolicyGate`.

    >>> evaluate([1.0] * 50, [0.5] * 50, fraction=0.5).deploy
    True
    """
    gate = OffPolicyGate(fraction=fraction, delta=delta, reward_range=reward_range, max_weight=max_weight)
    gate.extend(weights, rewards)
    return gate.report()


def tested_values(goal: float, fraction: float) -> Array:
    """The tested values of V(π) - c·V(h), ascending from -c to 1 and including a goal that lies there.

    They are fixed in advance. Around the goal, or the end that is next to it, their spacing is 3 % of
    their distance from it, at least 1e-5 and at most 0.005.
    """
    goal = min(max(goal, -fraction), 1.0)
    distances = [1e-4]
    reach = 1.0 + fraction
    while distances[-1] < reach:
        last = distances[-1]
        distances.append(last + min(0.005 * max(1.0, fraction), max(0.03 * last, 1e-5)))
    beside = np.array(distances)
    inner = np.concatenate([goal - beside[::-1], [goal], goal + beside])
    inner = inner[(inner > -fraction) & (inner < 1.0)]
    return np.concatenate([[-fraction], inner, [1.0]])


def _reward_range(given: object) -> tuple[float, float]:
    remedy = "must be two numbers (smallest, largest) with smallest < largest"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidInput("reward_range", given, remedy)
    low, high = (_validate.number("reward_range", each, remedy) for each in given)
    if not low < high or max(abs(low), abs(high)) > _validate.LARGEST:
        raise InvalidInput("reward_range", given, remedy)
    return low, high

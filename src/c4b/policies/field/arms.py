"""``cucb`` and ``cucb-unknown`` as gates in Python: what journals of earlier versions have recorded.

By these names compositions over the set ``box`` decide now, with the same numbers.

Features are unit vectors. Every arm has a mean of at least 0 and the interval ``[max(0, m - D), m + D]``,
D = sigma sqrt(psi(n)/n) after n rewards with average m; without any, [0, inf). The choice of psi,
2 log(2 zeta(3) k n^3 / delta), makes all intervals of k arms hold at all times with probability at least
1 - delta: docs/theory.md, "The field".
"""

from __future__ import annotations

import numpy as np

from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.policies.catalogue.promise import ONE_HOT
from c4b.policies.catalogue.registry import register_former_gate
from c4b.policies.field.field_gate import REVISION, UNIT, Choice, FieldGate, best
from c4b.policies.gate import GateTerms, Played
from c4b.policies.rounds.round import BASELINE_MEAN, Round

NO_ARM = -1.0
TWO_ZETA_3 = 2.40411380631918857
"""Twice the sum of n^-3 over all n."""


def psi(counts: Array, arms: int, delta: float) -> Array:
    """(n,) the squared half-width of an arm's interval times n / sigma^2, at n >= 1."""
    values: Array = 2.0 * np.log(TWO_ZETA_3 * arms * counts**3 / delta)
    return values


class Arms(FieldGate):
    """What gates over arms share: one-hot rows, averages, the box of intervals."""

    bounded_arms = 0

    def __init__(self, terms: GateTerms, revision: int = REVISION) -> None:
        super().__init__(terms, revision)
        dim = terms.model.dim
        self.facts |= {"counts": np.zeros(dim), "sums": np.zeros(dim)}

    def check_row(self, argument: str, row: Array) -> None:
        ones = np.flatnonzero(row)
        if len(ones) != 1 or row[ones[0]] != 1.0:
            remedy = f"must be a unit vector (one 1, else 0): {self.name} knows arms, not features"
            raise InvalidInput(argument, row, remedy)

    def learn(self, features: Array, rewards: Array) -> None:
        for n, row in enumerate(features):
            self.check_row(f"features[{n}]", row)
        super().learn(features, rewards)

    def absorb(self, features: Array, reward: float) -> None:
        arm = int(np.argmax(features))
        self.facts["counts"][arm] += 1.0
        self.facts["sums"][arm] += reward
        self.facts["observations"][0] += 1.0

    def box(self) -> tuple[Array, Array]:
        """Lower and upper ends (d,) of the arms' intervals."""
        counts, model = self.facts["counts"], self.terms.model
        n = np.maximum(counts, 1.0)
        width = model.noise * np.sqrt(psi(n, self.bounded_arms, model.delta) / n)
        middle = self.facts["sums"] / n
        low = np.where(counts > 0, np.maximum(middle - width, 0.0), 0.0)
        return low, np.where(counts > 0, middle + width, np.inf)

    def lower(self, row: Array) -> float:
        return float(self.box()[0][int(np.argmax(row))])

    @property
    def estimate(self) -> Array:
        average: Array = self.facts["sums"] / np.maximum(self.facts["counts"], 1.0)
        return average

    def covers(self, theta: Array) -> bool:
        low, high = self.box()
        return bool(np.all((low <= theta) & (theta <= high)))

    def _proposal(self, round_: Round, high: Array) -> tuple[Array, Array, int | None]:
        """Arms (K,) and their upper ends, and the candidate of the highest one, lowest arm on ties."""
        arms = round_.candidates.argmax(axis=1) if len(round_.candidates) else np.empty(0, int)
        ucb = high[arms]
        return arms, ucb, best(ucb, arms) if len(arms) else None


@register_former_gate("cucb", REVISION, needs=frozenset({BASELINE_MEAN, ONE_HOT}))
class Cucb(Arms):
    """The baseline is one arm for good, whose mean is told; the intervals of the others share delta."""

    name = "cucb"

    def __init__(self, terms: GateTerms, revision: int = REVISION) -> None:
        super().__init__(terms, revision)
        self.bounded_arms = max(terms.model.dim - 1, 1)
        self.money |= {"plays": np.zeros(terms.model.dim), "baseline": np.array([NO_ARM])}

    def told_interval(self, baseline: Array) -> tuple[float, float] | None:
        arm, model = int(baseline.argmax()), self.terms.model
        count = self.facts["counts"][arm : arm + 1]
        if not count[0]:
            return None
        width = model.noise * float(np.sqrt(psi(count, 1, model.delta) / count)[0])
        return float(self.estimate[arm]) - width, float(self.estimate[arm]) + width

    def choose(self, round_: Round) -> Choice:
        arm, mean = int(round_.baseline.argmax()), round_.baseline_mean
        assert mean is not None
        if self.money["baseline"][0] not in (NO_ARM, arm):
            remedy = f"must be arm {self.money['baseline'][0]:.0f} as before: one arm's mean is told"
            raise InvalidInput(f"{round_.argument}baseline", round_.baseline, remedy)
        low, high = self.box()
        arms, ucb, top = self._proposal(round_, high)
        gained = float(self.money["plays"] @ low)
        margins = self.credit(mean) + gained + low[arms]
        plays = top is not None and margins[top] >= 0.0
        own = self.credit() + gained + self.terms.alpha * mean
        return Choice(top if plays else None, margins, ucb, ucb, own)

    def enter(self, played: Played, sign: float) -> None:
        self.enter_told(played, sign)
        self.money["baseline"][0] = np.argmax(played.baseline)
        if not played.is_baseline:
            self.money["plays"] += sign * played.features

    def value(self) -> float:
        return self.credit() + float(self.money["plays"] @ self.box()[0])


@register_former_gate("cucb-unknown", needs=frozenset({ONE_HOT}))
class CucbUnknown(Arms):
    """The claim is L(Z + x(a) - c x(b)) over the box, Z the sum of all executed contrasts."""

    name = "cucb-unknown"

    def __init__(self, terms: GateTerms) -> None:
        super().__init__(terms, revision=1)
        self.bounded_arms = terms.model.dim
        self.money |= {"plays": np.zeros(terms.model.dim), "baselines": np.zeros((2, terms.model.dim))}

    def _least(self, weights: Array) -> Array:
        """L of weights (n, d) over the box, (n,); an arm without data has a mean of at most S."""
        low, high = self.box()
        high = np.where(high < np.inf, high, self.terms.model.norm_bound)
        ends = np.where(weights > 0.0, weights * low, weights * high)
        rounding = (self.rounds + 8.0) * UNIT * np.abs(ends).sum(axis=1)
        total: Array = ends.sum(axis=1) - rounding
        return total

    def certificate(self, features: Array, is_baseline: bool, round_: Round) -> float:
        contrast = features - (1.0 - self.terms.alpha) * round_.baseline
        return float(self._least(contrast[None, :])[0])

    def _prefix(self) -> Array:
        displaced, fallback = self.money["baselines"]
        alpha = self.terms.alpha
        prefix: Array = self.money["plays"] + alpha * fallback - (1.0 - alpha) * displaced
        return prefix

    def choose(self, round_: Round) -> Choice:
        alpha, reserve, prefix = self.terms.alpha, self.terms.reserve, self._prefix()
        _, high = self.box()
        _arms, ucb, top = self._proposal(round_, high)
        rows = round_.candidates.reshape(-1, self.terms.model.dim)
        margins = reserve + self._least(prefix - (1.0 - alpha) * round_.baseline + rows)
        plays = top is not None and margins[top] >= 0.0
        own = float(reserve + self._least((prefix + alpha * round_.baseline)[None, :])[0])
        return Choice(top if plays else None, margins, ucb, ucb, own)

    def enter(self, played: Played, sign: float) -> None:
        self.money["baselines"][int(played.is_baseline)] += sign * played.baseline
        if not played.is_baseline:
            self.money["plays"] += sign * played.features

    def value(self) -> float:
        return float(self.terms.reserve + self._least(self._prefix()[None, :])[0])

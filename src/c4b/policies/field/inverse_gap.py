"""C-SquareCB and C-FastCB of Deb et al. (2024): random choices over a regression, behind a sound gate.

An action is drawn by inverse gap weighting over the predictions of a ridge regression. The gate asks
nothing of the draw: docs/theory.md, "The field", proves that m absorbed plays with one-step predictions
y_i have earned at least ``sum y_i - sqrt(m W)``, W = 2 Reg + 8 sigma^2 log(1/delta), with the regret Reg
of the predictions computed from the data. A play whose outcome is open may cost S ||x||.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from c4b._validate import Array
from c4b.policies.catalogue.promise import SEED
from c4b.policies.catalogue.registry import register_gate
from c4b.policies.field.field_gate import REVISION, Choice, FieldGate
from c4b.policies.gate import GateTerms, Played
from c4b.policies.rounds.round import BASELINE_MEAN, Round

LEAST_COST = 1e-3
"""Predicted costs 1 - y below it count as this much: the weights of C-FastCB divide by them."""


class InverseGap(FieldGate):
    """The gate and the regression; a derived class turns predictions into probabilities."""

    def __init__(self, terms: GateTerms, revision: int = REVISION) -> None:
        super().__init__(terms, revision)
        dim = terms.model.dim
        self.money["sizes"] = np.zeros(1)  # sum of ||x|| over plays
        self.facts |= {
            "inverse": np.eye(dim) / terms.model.ridge,  # of lambda I + sum x x' over all outcomes
            "moment": np.zeros(dim),
            "gram": np.zeros((dim, dim)),  # of plays only, as all that follows
            "play_moment": np.zeros(dim),
            "predicted_rows": np.zeros(dim),  # sum of prediction times x
            "plays": np.zeros(6),
        }

    # m, sum of predictions, of their squares, of squared rewards, of squared errors, of ||x||
    _M, _PREDICTED, _SQUARES, _REWARDS, _ERRORS, _SIZES = range(6)

    # -- the regression ------------------------------------------------------------------------

    @property
    def estimate(self) -> Array | None:
        return self._centre()

    def _centre(self) -> Array:
        centre: Array = self.facts["inverse"] @ self.facts["moment"]
        return centre

    def absorb(self, features: Array, reward: float) -> None:
        image = self.facts["inverse"] @ features
        self.facts["inverse"] -= np.outer(image, image) / (1.0 + features @ image)
        self.facts["moment"] += features * reward
        self.facts["observations"][0] += 1.0

    def absorb_outcome(self, played: Played, reward: float) -> None:
        if not played.is_baseline:
            x, sums = played.features, self.facts["plays"]
            prediction = float(x @ self._centre())  # from earlier outcomes only
            self.facts["gram"] += np.outer(x, x)
            self.facts["play_moment"] += x * reward
            self.facts["predicted_rows"] += x * prediction
            error = (prediction - reward) ** 2
            sums += (1.0, prediction, prediction**2, reward**2, error, np.linalg.norm(x))
        self.absorb(played.features, reward)

    def regret(self) -> float:
        """Reg: squared errors of the predictions, less the least that theta within S can have."""
        model, sums = self.terms.model, self.facts["plays"]
        shape = self.facts["gram"] + model.ridge * np.eye(model.dim)
        moment = self.facts["play_moment"]
        try:
            least = float(sums[self._REWARDS] - moment @ np.linalg.solve(shape, moment))
        except np.linalg.LinAlgError:  # rounding took the ridge; squared errors are never below 0
            least = 0.0
        return float(max(sums[self._ERRORS] - least, 0.0)) + model.ridge * model.norm_bound**2

    def allowance(self) -> float:
        """W."""
        model = self.terms.model
        return 2.0 * self.regret() - 8.0 * model.noise**2 * math.log(model.delta)

    def earned(self) -> float:
        """What all plays have earned at least, those with open outcomes at their worst."""
        sums = self.facts["plays"]
        absorbed = float(sums[self._PREDICTED]) - math.sqrt(sums[self._M] * self.allowance())
        pending = max(float(self.money["sizes"][0] - sums[self._SIZES]), 0.0)
        rounding = 1e-12 * (1.0 + abs(absorbed) + float(self.money["sizes"][0]))
        return absorbed - self.terms.model.norm_bound * pending - rounding

    def lower(self, row: Array) -> float:
        return -self.terms.model.norm_bound * float(np.linalg.norm(row))

    def told_interval(self, baseline: Array) -> tuple[float, float] | None:
        """By the ellipsoid (6) of the ridge regression over all outcomes."""
        model, inverse = self.terms.model, self.facts["inverse"]
        try:
            roots = np.linalg.cholesky(inverse).diagonal()
        except np.linalg.LinAlgError:
            return None
        log_det = -2.0 * float(np.log(roots).sum()) - model.dim * math.log(model.ridge)
        gamma = math.sqrt(max(log_det, 0.0) - 2.0 * math.log(model.delta))
        beta = model.noise * gamma + math.sqrt(model.ridge) * model.norm_bound
        middle = float(baseline @ self._centre())
        width = 1.000001 * beta * math.sqrt(max(float(baseline @ inverse @ baseline), 0.0))
        return middle - width, middle + width

    def predict(self, rows: Array) -> Array:
        """Predicted means (n,) of rows (n, d)."""
        predictions: Array = rows @ self._centre()
        return predictions

    def covers(self, theta: Array) -> bool | None:
        """Whether the predictions are as near to the truth as the proof says."""
        sums, gram = self.facts["plays"], self.facts["gram"]
        apart = sums[self._SQUARES] - 2.0 * theta @ self.facts["predicted_rows"] + theta @ gram @ theta
        return bool(apart <= self.allowance() * (1.0 + 1e-9))

    # -- the gate ------------------------------------------------------------------------------

    def choose(self, round_: Round) -> Choice:
        mean, rows = round_.baseline_mean, round_.candidates
        assert mean is not None
        count, earned = len(rows), self.earned()
        own = self.credit() + earned + self.terms.alpha * mean
        if not count:
            return Choice(None, np.empty(0), np.empty(0), np.empty(0), own, 1.0)
        rows, first, same = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        worst = self.worst(rows)
        margin = self.credit(mean) + earned - worst  # the same for all: the draw decides nothing here
        predictions = self.predict(rows)
        weights = self.probabilities(predictions)
        action, propensity = None, 1.0
        if margin >= 0.0:
            drawn = self._drawn(weights)
            action, propensity = int(first[drawn]), float(weights[drawn])
        same = same.reshape(-1)
        return Choice(action, np.full(count, margin), weights[same], predictions[same], own, propensity)

    def worst(self, rows: Array) -> float:
        """The most that playing one of rows (n, d) may cost, whatever is known."""
        return self.terms.model.norm_bound * float(np.linalg.norm(rows, axis=1).max())

    def _drawn(self, weights: Array) -> int:
        """One draw for each (seed, round), from rows that are sorted and differ: neither the order of
        the candidates nor a repetition changes what is played."""
        key = np.array([self.terms.seed, self.rounds], dtype=np.uint64)
        point = np.random.Generator(np.random.Philox(key=key)).random()
        return min(int(np.searchsorted(np.cumsum(weights), point, side="right")), len(weights) - 1)

    @abstractmethod
    def probabilities(self, predictions: Array) -> Array:
        """(K,) summing to 1."""

    def rate(self, count: int) -> float:
        """gamma for K actions: where Foster and Rakhlin's bound 2 K m / gamma + gamma R / 4 of the regret
        over m plays is smallest, with R = sigma^2 d for the squared errors of the predictions."""
        model = self.terms.model
        plays = float(self.facts["plays"][self._M]) + 1.0
        return math.sqrt(8.0 * count * plays / (model.noise**2 * model.dim))

    def enter(self, played: Played, sign: float) -> None:
        self.enter_told(played, sign)
        if not played.is_baseline:
            self.money["sizes"][0] += sign * float(np.linalg.norm(played.features))

    def value(self) -> float:
        return self.credit() + self.earned()


NEEDS = frozenset({BASELINE_MEAN, SEED})


@register_gate(
    "c-squarecb",
    "Deb 2024 (C-SquareCB), told mean, randomised; ridge regression. Differs: a gate that is sound",
    needs=NEEDS,
    revision=REVISION,
)
class SquareCB(InverseGap):
    """p(a) = 1 / (K + gamma (y(best) - y(a))), the rest on the best."""

    name = "c-squarecb"

    def probabilities(self, predictions: Array) -> Array:
        gaps = predictions.max() - predictions
        return _with_rest(1.0 / (len(gaps) + self.rate(len(gaps)) * gaps), gaps)


@register_gate(
    "c-fastcb",
    "Deb 2024 (C-FastCB), told mean, randomised, costs 1 - reward. Differs: a gate that is sound",
    needs=NEEDS,
    revision=REVISION,
)
class FastCB(InverseGap):
    """p(a) = y(best) / (K y(best) + gamma (y(a) - y(best))) for costs y, the rest on the best."""

    name = "c-fastcb"

    def probabilities(self, predictions: Array) -> Array:
        costs = np.maximum(1.0 - predictions, LEAST_COST)
        least = costs.min()
        gaps = costs - least
        return _with_rest(least / (len(gaps) * least + self.rate(len(gaps)) * gaps), gaps)


def _with_rest(weights: Array, gaps: Array) -> Array:
    """What the others leave goes to those without a gap, in equal parts."""
    first = gaps <= 0.0
    others = float(weights[~first].sum())
    weights[first] = (1.0 - others) / first.sum()
    return weights

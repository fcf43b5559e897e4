"""C-SquareCB over any online regression: its guarantee is conditional on the regret that is declared.

The gate is that of ``inverse_gap``. There the regret of the predictions is computed from the data, which
a ridge regression permits. Here it is *declared*: ``Regressor.regret(m)`` bounds

    sum of (prediction - reward)^2 - sum of (mean - reward)^2

over the first m absorbed plays, each predicted from outcomes absorbed before. If that is true, m plays
have earned at least ``sum of predictions - sqrt(m W)``, W = 2 regret + 8 sigma^2 log(1/delta), with
probability at least 1 - delta for all m at once, and rewards need not be linear in the features. If it is
not true, nothing is guaranteed. Declared is also the lowest mean of any action: a play whose outcome is
open is taken to earn that. Of the model only ``noise`` and ``delta`` are used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.policies.catalogue.registry import GateFactory
from c4b.policies.field.field_gate import FieldGate
from c4b.policies.field.inverse_gap import NEEDS, SquareCB
from c4b.policies.gate import Arrays, GateTerms, Played

CONDITIONAL = "guarantee conditional on declared regret"
PLAYS = 0
"""Entry of ``facts["plays"]``: absorbed plays; the other is the sum of their predictions."""
_REGRESSOR = "facts.regressor."
"""Put before the names of the regression's arrays in a snapshot."""


class Regressor(ABC):
    """An online regression. The same updates in the same order must give the same predictions."""

    @abstractmethod
    def predict(self, rows: Array) -> Array:
        """Predicted mean rewards (n,) of rows (n, d)."""

    @abstractmethod
    def update(self, features: Array, reward: float) -> None:
        """Learn one outcome of features (d,)."""

    @abstractmethod
    def regret(self, plays: int) -> float:
        """The declared bound for so many plays; see the top of this file."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Its state; the shapes never change."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Continue from ``arrays`` bit for bit."""


class DeclaredRegret(SquareCB):
    """C-SquareCB over a ``Regressor``."""

    def __init__(self, terms: GateTerms, name: str, regressor: Regressor, lowest_mean: float) -> None:
        self.name = name
        FieldGate.__init__(self, terms, revision=1)  # none of the ridge regression's statistics
        self.regressor, self.lowest_mean = regressor, lowest_mean
        self.money["executed"] = np.zeros(1)  # plays
        self.facts["plays"] = np.zeros(2)

    def absorb(self, features: Array, reward: float) -> None:
        self.regressor.update(features, reward)
        self.facts["observations"][0] += 1.0

    def absorb_outcome(self, played: Played, reward: float) -> None:
        if not played.is_baseline:
            self.facts["plays"] += (1.0, float(self.predict(played.features[None, :])[0]))
        self.absorb(played.features, reward)

    def predict(self, rows: Array) -> Array:
        return self.regressor.predict(rows)

    @property
    def estimate(self) -> None:
        """There is no theta."""
        return

    def regret(self) -> float:
        return self.regressor.regret(int(self.facts["plays"][PLAYS]))

    def earned(self) -> float:
        plays, predicted = (float(each) for each in self.facts["plays"])
        absorbed = predicted - math.sqrt(plays * self.allowance())
        open_ = float(self.money["executed"][0]) - plays
        rounding = 1e-12 * (1.0 + abs(absorbed) + plays)
        return absorbed + self.lowest_mean * open_ - rounding

    def lower(self, row: Array) -> float:
        return self.lowest_mean

    def worst(self, rows: Array) -> float:
        return -self.lowest_mean

    def covers(self, theta: Array) -> None:
        """Whether the declared regret is true, only the regression's author can know."""
        return

    def enter(self, played: Played, sign: float) -> None:
        self.enter_told(played, sign)
        self.money["executed"][0] += 0.0 if played.is_baseline else sign

    def rate(self, count: int) -> float:
        plays = float(self.facts["plays"][PLAYS]) + 1.0
        return math.sqrt(8.0 * count * plays / max(self.regret(), self.terms.model.noise**2))

    def snapshot(self) -> Arrays:
        own = {f"{_REGRESSOR}{name}": array for name, array in self.regressor.arrays().items()}
        return super().snapshot() | own

    def restore(self, arrays: Arrays) -> None:
        own = {name: array for name, array in arrays.items() if name.startswith(_REGRESSOR)}
        shapes = {f"{_REGRESSOR}{name}": a.shape for name, a in self.regressor.arrays().items()}
        if shapes != {name: array.shape for name, array in own.items()}:
            raise ValueError(f"it holds other arrays than the regression of {self.name}")
        money = {f"ledger.{name}": array for name, array in self.money.items()}
        facts = {f"facts.{name}": array for name, array in self.facts.items()}
        for name, array in (money | facts).items():
            array[...] = arrays[name]
        self.regressor.restore({name.removeprefix(_REGRESSOR): a.copy() for name, a in own.items()})


def square_cb_over(
    name: str,
    make: Callable[[GateTerms], Regressor],
    regression: str,
    lowest_mean: float = 0.0,
) -> GateFactory:
    """A policy: C-SquareCB over the regression that ``make`` opens; ``register`` it, or name it by
    ``factory`` in a study. ``lowest_mean``: no action's mean reward is below it."""
    summary = f"Deb 2024 (C-SquareCB) over {regression}, told mean, randomised; {CONDITIONAL}"
    lowest = _validate.number("lowest_mean", lowest_mean, "must be a finite number, in units of reward")

    def opened(terms: GateTerms) -> DeclaredRegret:
        return DeclaredRegret(terms, name, make(terms), lowest)

    return GateFactory(name, opened, summary, needs=NEEDS)
